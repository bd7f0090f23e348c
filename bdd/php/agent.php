<?php

declare(strict_types=1);

// The agent of PHP: reads steps as lines of JSON and says how each ended. See bdd/driver.

require __DIR__ . '/world.php';

/** A step of a scenario found something else than it should. */
final class StepFailed extends \Exception
{
}

function check(bool $holds, string $what): void
{
    if (!$holds) {
        throw new StepFailed($what);
    }
}

function same(mixed $expected, mixed $found, string $what = ''): void
{
    if ($expected !== $found) {
        throw new StepFailed(trim("$what expected " . json_encode($expected) . ', found ' . json_encode($found)));
    }
}

/** @var array<string, \Closure(World, array<string, mixed>): mixed> $steps */
$steps = [];
foreach (glob(__DIR__ . '/steps/*.php') ?: [] as $file) {
    $steps += require $file;
}

/**
 * @param array<string, mixed> $told
 * @return array<string, string>
 */
function answer(array $told, ?World &$world, array $steps): array
{
    try {
        if ($told['op'] === 'begin') {
            $world = new World($told['address']);
            $world->clean();
        } elseif ($told['op'] === 'end') {
            $world?->finish();
            $world = null;
        } elseif (!isset($steps[$told['name']])) {
            return ['status' => 'undefined'];
        } else {
            check($world !== null, 'no scenario began');
            $step = $steps[$told['name']];
            $told['keyword'] === 'then' ? $step($world, $told['arguments']) : $world->attempt(
                fn () => $step($world, $told['arguments']),
            );
        }
        return ['status' => 'passed'];
    } catch (\Throwable $thrown) {
        return ['status' => 'failed', 'message' => "$thrown"];
    }
}

$world = null;
while (($line = fgets(STDIN)) !== false) {
    $answered = answer(json_decode($line, true, flags: JSON_THROW_ON_ERROR), $world, $steps);
    fwrite(STDOUT, json_encode($answered, JSON_INVALID_UTF8_SUBSTITUTE | JSON_THROW_ON_ERROR) . "\n");
    fflush(STDOUT);
}
