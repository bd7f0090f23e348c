<?php

// Prints the classes of the extension, or of a stub that is named, with what can be called on them.

if (isset($argv[1])) {
    require $argv[1];
}
$classes = array_filter(get_declared_classes(), fn (string $name) => str_starts_with($name, 'Iggy\\'));
$surface = [];
foreach ($classes as $name) {
    $class = new ReflectionClass($name);
    $methods = [];
    foreach ($class->getMethods(ReflectionMethod::IS_PUBLIC) as $method) {
        // ext-php-rs gives a class without a constructor one that refuses.
        $refuses = $method->isConstructor() && $method->getNumberOfParameters() === 0;
        if ($method->class !== $name || $refuses) {
            continue;
        }
        $parameters = array_map(
            fn (ReflectionParameter $each) => [$each->getName(), (string) ($each->getType() ?? 'mixed'), $each->isOptional()],
            $method->getParameters(),
        );
        $methods[$method->getName()] = [$method->isStatic(), $parameters];
    }
    ksort($methods);
    $surface[$name] = [$class->getParentClass() ? $class->getParentClass()->getName() : null, $methods];
}
ksort($surface);
echo json_encode($surface, JSON_PRETTY_PRINT);
