<?php

declare(strict_types=1);

namespace Iggy\Tests;

/** A php-fpm with two workers, and just enough of FastCGI to ask it. */
final class Fpm
{
    private readonly string $folder;
    /** @var resource */
    private $process;

    public function __construct()
    {
        $this->folder = sys_get_temp_dir() . '/iggy-fpm-' . bin2hex(random_bytes(6));
        mkdir($this->folder);
        $root = posix_geteuid() === 0 ? "user = root\ngroup = root\n" : '';
        file_put_contents("{$this->folder}/fpm.conf", <<<CONF
            [global]
            error_log = {$this->folder}/log
            daemonize = no
            [www]
            {$root}listen = {$this->folder}/socket
            pm = static
            pm.max_children = 2
            catch_workers_output = yes
            clear_env = no
            CONF);
        $program = getenv('IGGY_FPM') ?: 'php-fpm' . PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION;
        $extension = 'extension=' . getenv('IGGY_EXTENSION');
        $command = [$program, '-R', '-n', '-d', $extension, '-y', "{$this->folder}/fpm.conf"];
        $this->process = proc_open($command, [['file', '/dev/null', 'r'], STDERR, ['file', "{$this->folder}/errors", 'w']], $pipes);
        while (!str_contains($this->log(), 'ready to handle connections')) {
            if (!proc_get_status($this->process)['running']) {
                throw new \RuntimeException($this->log());
            }
            usleep(10_000);
        }
    }

    public function log(): string
    {
        $log = "{$this->folder}/log";
        return is_file($log) ? (string) file_get_contents($log) : '';
    }

    private static function record(int $type, string $content): string
    {
        return pack('CCnnCC', 1, $type, 1, strlen($content), 0, 0) . $content;
    }

    /** What a program of tests/programs writes, with a query. */
    public function request(string $program, string $query): string
    {
        $socket = stream_socket_client("unix://{$this->folder}/socket");
        stream_set_timeout($socket, 60);
        $parameters = '';
        $given = [
            'SCRIPT_FILENAME' => __DIR__ . "/programs/$program.php",
            'REQUEST_METHOD' => 'GET',
            'QUERY_STRING' => 'address=' . rawurlencode($query),
        ];
        foreach ($given as $name => $value) {
            $parameters .= pack('CC', strlen($name), strlen($value) | 0) . $name . $value;
        }
        $begin = self::record(1, pack('nCx5', 1, 0));
        fwrite($socket, $begin . self::record(4, $parameters) . self::record(4, '') . self::record(5, ''));
        $output = '';
        while (strlen($head = (string) stream_get_contents($socket, 8)) === 8) {
            ['type' => $type, 'length' => $length, 'padding' => $padding] = unpack('Cversion/Ctype/nid/nlength/Cpadding', $head);
            $content = (string) stream_get_contents($socket, $length + $padding);
            if ($type === 3) {
                break;
            }
            $output .= substr($content, 0, $length);
        }
        fclose($socket);
        return explode("\r\n\r\n", $output, 2)[1] ?? $output;
    }

    /** Stops it gracefully; its status. */
    public function stop(): int
    {
        proc_terminate($this->process, 3);
        $status = proc_close($this->process);
        return $status;
    }
}
