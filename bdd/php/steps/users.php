<?php

declare(strict_types=1);

// Users, permissions, signing in, tokens, the node, and how requests ended.

use Iggy\{Client, IggyException};

$permissions = function (World $world, array $may): array {
    $streams = [];
    foreach ($may['streams'] as ['stream' => $stream, 'granted' => $granted]) {
        $number = is_int($stream) ? $stream : $world->client()->getStream($stream)['id'];
        $streams[$number] = ['granted' => $granted];
    }
    return ['global' => $may['global'], 'streams' => $streams];
};
$signIn = function (World $world, string $credentials): void {
    $client = $world->connect($credentials);
    try {
        $client->getMe();
    } finally {
        $client->shutdown();
    }
};
/** Signs in with a token that is held apart from the address. */
$byToken = function (World $world, string $token): void {
    $client = new Client(null, ['server_address' => $world->address]);
    try {
        $client->loginWithPersonalAccessToken($token);
        $client->getMe();
    } finally {
        $client->shutdown();
    }
};
$fails = function (string $name, \Closure $call): void {
    try {
        $call();
    } catch (IggyException $error) {
        same($name, $error->name);
        return;
    }
    check(false, "it did not fail with $name");
};

return [
    'sign_in' => fn (World $world) => $world->signIn(),
    'create_user' => fn (World $world, array $a) => $world->client()->createUser(
        $a['user'],
        $a['password'] ?? PASSWORD,
        isset($a['permissions']) ? $permissions($world, $a['permissions']) : null,
    ),
    'user_is_active' => function (World $world, array $a): void {
        $world->expectNoError();
        $found = $world->client()->getUser($a['user']);
        same([$a['user'], 'active'], [$found['username'] ?? null, $found['status'] ?? null]);
    },
    'deactivate_user' => fn (World $world, array $a) => $world->client()->updateUser($a['user'], status: 'inactive'),
    'delete_user' => fn (World $world, array $a) => $world->client()->deleteUser($a['user']),
    'user_is_missing' => function (World $world, array $a): void {
        $world->expectNoError();
        same(null, $world->client()->getUser($a['user']));
    },
    'set_permissions' => fn (World $world, array $a) =>
        $world->client()->updatePermissions($a['user'], $permissions($world, $a['permissions'])),
    'change_password' => fn (World $world, array $a) =>
        $world->client()->changePassword($a['user'], PASSWORD, $a['password']),
    'sign_in_succeeds' => fn (World $world, array $a) => $signIn($world, "{$a['user']}:{$a['password']}"),
    'sign_in_fails' => function (World $world, array $a) use ($fails, $signIn): void {
        $world->expectNoError();
        $fails($a['error'], fn () => $signIn($world, "{$a['user']}:{$a['password']}"));
    },
    'sign_user_in' => fn (World $world, array $a) => $world->clientOf($a['user']),
    'user_sends' => fn (World $world, array $a) => $world->sendBy(
        $world->clientOf($a['user']),
        $a['partition'],
        $world->nextMessages($a['partition'], $a['count']),
    ),
    'user_creates_stream' => fn (World $world, array $a) => $world->clientOf($a['user'])->createStream($a['stream']),
    'user_lists_users' => fn (World $world, array $a) => $world->clientOf($a['user'])->getUsers(),
    'create_token' => function (World $world, array $a): void {
        $made = $world->client()->createPersonalAccessToken($a['token']);
        $world->tokens[$a['token']] = $made;
    },
    'delete_token' => fn (World $world, array $a) => $world->client()->deletePersonalAccessToken($a['token']),
    'tokens_are' => fn (World $world, array $a) =>
        same($a['names'], array_column($world->client()->getPersonalAccessTokens(), 'name')),
    'token_signs_in' => fn (World $world, array $a) => $byToken($world, $world->tokens[$a['token']]),
    'token_is_refused' => function (World $world, array $a) use ($fails, $byToken): void {
        $world->expectNoError();
        $fails($a['error'], fn () => $byToken($world, $world->tokens[$a['token']]));
    },
    'token_text_is_refused' => fn (World $world, array $a) => $fails($a['error'], fn () => $byToken($world, $a['text'])),
    'connection_string_signs_in' => fn (World $world, array $a) => $signIn($world, $world->tokens[$a['token']]),
    'ping' => fn (World $world) => $world->client()->ping(),
    'finds_itself' => function (World $world, array $a): void {
        $me = $world->client()->getMe();
        check(in_array($me['client_id'], array_column($world->client()->getClients(), 'client_id'), true), 'among them');
        $user = $world->client()->getUser($a['user'])['id'];
        same([$user, $user], [$me['user_id'], $world->client()->getClient($me['client_id'])['user_id']]);
    },
    'statistics_are' => function (World $world, array $a): void {
        $found = $world->client()->getStats();
        foreach (['streams', 'topics', 'partitions', 'messages'] as $what) {
            same($a[$what], $found["{$what}_count"], $what);
        }
    },
    'cluster_is' => function (World $world, array $a): void {
        $nodes = $world->client()->getClusterMetadata()['nodes'];
        same($a['nodes'], count($nodes));
        $leaders = array_filter($nodes, fn (array $node) => $node['role'] === 'leader');
        same([(int) substr(strrchr($world->address, ':'), 1)], array_column($leaders, 'tcp'));
    },
    'note_changes' => function (World $world): void {
        $world->notedChanges = $world->client()->getMetadataChanges(['start' => 'latest'])['next'];
    },
    'changes_include_creations' => function (World $world): void {
        $page = $world->client()->getMetadataChanges(['start' => $world->notedChanges]);
        $kinds = array_column($page['records'], 'kind');
        [$stream, $topic] = [array_search('stream_created', $kinds, true), array_search('topic_created', $kinds, true)];
        check($stream !== false && $topic !== false && $stream < $topic, implode(' ', $kinds));
    },
    'take_snapshot' => function (World $world): void {
        $world->answer = $world->client()->snapshot(['test']);
    },
    'snapshot_is_zip' => function (World $world): void {
        $world->expectNoError();
        check(str_starts_with($world->answer, 'PK'), 'a zip archive');
    },
    'send_raw' => fn (World $world, array $a) => $world->client()->sendBinaryRequest($a['code']),
    'request_succeeds' => fn (World $world) => $world->expectNoError(),
    'request_fails' => fn (World $world, array $a) => same($a['error'], $world->takeError()->name),
];
