//! Statistics of the process and its machine, and the diagnostic archive.

use crate::node::{Node, SERVER_VERSION};
use bytes::{Bytes, BytesMut};
use iggy_protocol::codec::Encode;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::reply::system::{Stats, StatsNumbers};
use iggy_protocol::request::system::{GetSnapshot, SnapshotCompression, SnapshotType};
use iggy_protocol::version::PackedVersion;
use std::fmt::Write as _;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write as _};
use std::path::Path;
use sysinfo::{Disks, Pid, ProcessesToUpdate, System};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Log bytes of an archive; older lines stay out.
const LOG_BYTES_MAX: u64 = 4 << 20;

/// The body of a statistics reply (wire 11.2).
pub fn stats(node: &Node) -> Bytes {
    let mut body = BytesMut::new();
    gather(node).encode(&mut body);
    body.freeze()
}

fn gather(node: &Node) -> Stats {
    let mut system = System::new();
    system.refresh_memory();
    system.refresh_cpu_usage();
    let pid = Pid::from_u32(std::process::id());
    system.refresh_processes(ProcessesToUpdate::Some(&[pid]), true);
    let process = system.process(pid);
    let usage = process.map(sysinfo::Process::disk_usage);
    let sample = node.sample();
    let disk = disk_of(&node.config.path);
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let micros = |seconds: u64| seconds.saturating_mul(1_000_000);
    Stats {
        numbers: StatsNumbers {
            process_id: std::process::id(),
            cpu_usage: process.map_or(0.0, sysinfo::Process::cpu_usage),
            total_cpu_usage: system.global_cpu_usage(),
            memory_usage: process.map_or(0, sysinfo::Process::memory),
            total_memory: system.total_memory(),
            available_memory: system.available_memory(),
            run_time: u64::try_from(node.started.elapsed().as_micros()).unwrap_or(u64::MAX),
            start_time: process.map_or(0, |process| micros(process.start_time())),
            read_bytes: usage.as_ref().map_or(0, |usage| usage.total_read_bytes),
            written_bytes: usage.as_ref().map_or(0, |usage| usage.total_written_bytes),
            messages_size_bytes: sample.messages_bytes,
            streams_count: narrow(sample.streams),
            topics_count: narrow(sample.topics),
            partitions_count: narrow(sample.partitions),
            segments_count: narrow(sample.segments),
            messages_count: sample.messages,
            clients_count: narrow(sample.clients),
            consumer_groups_count: narrow(sample.consumer_groups),
        },
        hostname: System::host_name().unwrap_or_default(),
        os_name: System::name().unwrap_or_default(),
        os_version: System::os_version().unwrap_or_default(),
        kernel_version: System::kernel_version().unwrap_or_default(),
        iggy_server_version: SERVER_VERSION.to_owned(),
        iggy_server_semver: PackedVersion::parse(SERVER_VERSION).map_or(0, |version| version.0),
        cache_metrics: Vec::new(),
        threads_count: entries_of("/proc/self/task") as u32,
        free_disk_space: disk.0,
        total_disk_space: disk.1,
        open_files_count: entries_of("/proc/self/fd"),
        open_files_limit: rlimit::Resource::NOFILE.get().map_or(0, |(soft, _)| soft),
    }
}

fn entries_of(directory: &str) -> u64 {
    std::fs::read_dir(directory).map_or(0, |entries| entries.count() as u64)
}

/// Free and total bytes of the disk that holds `path`.
fn disk_of(path: &Path) -> (u64, u64) {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let disks = Disks::new_with_refreshed_list();
    let holds = disks.iter().filter(|disk| path.starts_with(disk.mount_point()));
    let nearest = holds.max_by_key(|disk| disk.mount_point().as_os_str().len());
    nearest.map_or((0, 0), |disk| (disk.available_space(), disk.total_space()))
}

/// A ZIP archive of what helps to understand a node (wire 11.3).
pub fn snapshot(node: &Node, asked: &GetSnapshot) -> Result<Bytes, ErrorCode> {
    let method = match asked.compression {
        SnapshotCompression::Stored => CompressionMethod::Stored,
        SnapshotCompression::Deflated => CompressionMethod::Deflated,
        SnapshotCompression::Bzip2 => CompressionMethod::Bzip2,
        SnapshotCompression::Zstd => CompressionMethod::Zstd,
        SnapshotCompression::Xz => CompressionMethod::Xz,
        // No writer of this method is in our library.
        SnapshotCompression::Lzma => return Err(ErrorCode::FeatureUnavailable),
    };
    archive(node, &asked.types, method).map_err(|error| {
        tracing::error!(%error, "the diagnostic archive could not be written");
        ErrorCode::SnapshotFileCompletionFailed
    })
}

/// A file of the archive: what it holds, its name, and how it is made.
type Part<'a> = (SnapshotType, &'static str, &'a dyn Fn() -> Vec<u8>);

fn archive(node: &Node, types: &[SnapshotType], method: CompressionMethod) -> io::Result<Bytes> {
    let all = types.is_empty() || types.contains(&SnapshotType::All);
    let parts: [Part<'_>; 6] = [
        (SnapshotType::FilesystemOverview, "filesystem_overview.txt", &|| {
            filesystem(&node.config.path)
        }),
        (SnapshotType::ProcessList, "process_list.txt", &processes),
        (SnapshotType::ResourceUsage, "resource_usage.txt", &|| {
            format!("{:#?}\n", gather(node)).into_bytes()
        }),
        (SnapshotType::Test, "test.txt", &|| b"test\n".to_vec()),
        (SnapshotType::ServerLogs, "server_logs.txt", &|| logs(node)),
        (SnapshotType::ServerConfig, "server_config.toml", &|| {
            node.effective_config.clone().into_bytes()
        }),
    ];
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (kind, name, content) in parts {
        if all || types.contains(&kind) {
            zip.start_file(name, options)?;
            zip.write_all(&content())?;
        }
    }
    Ok(zip.finish()?.into_inner().into())
}

fn filesystem(root: &Path) -> Vec<u8> {
    let mut text = String::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let _ = writeln!(text, "{:>16} {}", metadata.len(), entry.path().display());
            if metadata.is_dir() {
                directories.push(entry.path());
            }
        }
    }
    text.into_bytes()
}

fn processes() -> Vec<u8> {
    let mut system = System::new();
    system.refresh_processes(ProcessesToUpdate::All, true);
    let mut lines: Vec<(u32, String)> = Vec::new();
    for (pid, process) in system.processes() {
        let name = process.name().to_string_lossy();
        lines.push((
            pid.as_u32(),
            format!("{:>8} {:>16} {name}\n", pid.as_u32(), process.memory()),
        ));
    }
    lines.sort();
    lines.into_iter().flat_map(|(_, line)| line.into_bytes()).collect()
}

/// The newest lines of the newest log file.
fn logs(node: &Node) -> Vec<u8> {
    let folder = crate::logging::folder(&node.config.logging, &node.config.path);
    let newest = std::fs::read_dir(folder).ok().and_then(|entries| {
        entries
            .flatten()
            .max_by_key(|entry| entry.metadata().and_then(|metadata| metadata.modified()).ok())
    });
    let Some(file) = newest.and_then(|entry| std::fs::File::open(entry.path()).ok()) else {
        return Vec::new();
    };
    tail(file).unwrap_or_default()
}

fn tail(mut file: std::fs::File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}
