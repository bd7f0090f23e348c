<?php

declare(strict_types=1);

// The tests take the extension that IGGY_EXTENSION names; scripts/test php sets it.

if (!extension_loaded('iggy')) {
    fwrite(STDERR, "the extension iggy is not loaded; run scripts/test php\n");
    exit(1);
}
foreach (['Node', 'NodeTestCase', 'Fpm'] as $name) {
    require_once __DIR__ . "/$name.php";
}
