//! The least that a send can cost on this machine: the same bytes over loopback to another process, written to a file,
//! and a small answer.
//!
//! The other process is this program again, started for the measurement. It sleeps in its read until bytes come, as the
//! measured side does: each round trip pays for two wake-ups.

use anyhow::Context;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes of the answer: a reply header with a send confirmation.
const ANSWER: usize = 280;

/// What the receiving side does with the bytes before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Storing {
    /// Nothing: a bare round trip.
    Nothing,
    /// Hands them to the operating system.
    Write,
    /// Also waits for the disk.
    Sync,
}

/// Options of the receiving process.
#[derive(clap::Args)]
pub struct EchoArguments {
    /// What to do with the bytes
    #[arg(long)]
    storing: Storing,

    /// Bytes of a request
    #[arg(long)]
    bytes: usize,

    /// Folder of the file
    #[arg(long)]
    directory: PathBuf,

    /// Wait in tasks, as a server does, not in a blocked thread; stores nothing
    #[arg(long)]
    tasks: bool,
}

/// The receiving process; ends when it is dropped.
struct Receiver(Child);

impl Drop for Receiver {
    fn drop(&mut self) {
        // Fails when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(storing: Storing, bytes: usize, directory: &Path, tasks: bool) -> anyhow::Result<(Receiver, SocketAddr)> {
    let program = std::env::current_exe().context("finding this program")?;
    let mut command = Command::new(program);
    command.arg("echo").arg("--bytes").arg(bytes.to_string());
    command.arg("--directory").arg(directory);
    command.args([
        "--storing",
        match storing {
            Storing::Nothing => "nothing",
            Storing::Write => "write",
            Storing::Sync => "sync",
        },
    ]);
    command.args(tasks.then_some("--tasks"));
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut receiver = Receiver(spawned.context("starting the receiving process")?);
    let output = receiver
        .0
        .stdout
        .take()
        .context("the receiving process has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let address = line
        .trim()
        .parse()
        .context("the receiving process did not say where it listens")?;
    Ok((receiver, address))
}

/// Round trips of blocked threads: the raw floor.
pub struct Floor {
    stream: TcpStream,
    request: Vec<u8>,
    _receiver: Receiver,
}

impl Floor {
    /// Starts the receiving process for requests of `bytes` bytes; its file goes to `directory`.
    pub fn start(storing: Storing, bytes: usize, directory: &Path) -> anyhow::Result<Self> {
        let (receiver, address) = start(storing, bytes, directory, false)?;
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            request: vec![7; bytes],
            _receiver: receiver,
        })
    }

    /// Measures `requests` round trips, one at a time, each after a pause. A machine that was idle takes longer to wake its
    /// threads: what is measured after pauses has a floor with the same pauses.
    pub fn measure(&mut self, requests: usize, pause: Duration) -> io::Result<Vec<Duration>> {
        let mut answer = [0; ANSWER];
        let mut samples = Vec::with_capacity(requests);
        for _ in 0..requests {
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
            let began = Instant::now();
            self.stream.write_all(&self.request)?;
            self.stream.read_exact(&mut answer)?;
            samples.push(began.elapsed());
        }
        Ok(samples)
    }
}

/// Round trips of tasks, which is what the runtime of client and server adds to the raw floor.
pub struct TaskFloor {
    stream: tokio::net::TcpStream,
    request: Vec<u8>,
    _receiver: Receiver,
}

impl TaskFloor {
    /// Starts the receiving process for requests of `bytes` bytes.
    pub async fn start(bytes: usize, directory: &Path) -> anyhow::Result<Self> {
        let (receiver, address) = start(Storing::Nothing, bytes, directory, true)?;
        let stream = tokio::net::TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            request: vec![7; bytes],
            _receiver: receiver,
        })
    }

    /// As [`Floor::measure`].
    pub async fn measure(&mut self, requests: usize, pause: Duration) -> io::Result<Vec<Duration>> {
        let mut answer = [0; ANSWER];
        let mut samples = Vec::with_capacity(requests);
        for _ in 0..requests {
            tokio::time::sleep(pause).await;
            let began = Instant::now();
            self.stream.write_all(&self.request).await?;
            self.stream.read_exact(&mut answer).await?;
            samples.push(began.elapsed());
        }
        Ok(samples)
    }
}

/// Runs the receiving process until its only connection ends, or until whoever started it is gone.
pub fn echo(arguments: &EchoArguments) -> anyhow::Result<()> {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?);
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    if arguments.tasks {
        stream.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(async {
            let stream = tokio::net::TcpStream::from_std(stream)?;
            let served = tokio::spawn(echo_in_task(stream, arguments.bytes));
            Ok(served.await??)
        });
    }
    let file = tempfile::tempfile_in(&arguments.directory)?;
    Ok(echo_in_thread(stream, arguments.storing, arguments.bytes, file)?)
}

fn echo_in_thread(mut stream: TcpStream, storing: Storing, bytes: usize, mut file: File) -> io::Result<()> {
    let mut request = vec![0; bytes];
    loop {
        match stream.read_exact(&mut request) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        if storing != Storing::Nothing {
            file.write_all(&request)?;
        }
        if storing == Storing::Sync {
            file.sync_data()?;
        }
        stream.write_all(&[0; ANSWER])?;
    }
}

async fn echo_in_task(mut stream: tokio::net::TcpStream, bytes: usize) -> io::Result<()> {
    let mut request = vec![0; bytes];
    loop {
        match stream.read_exact(&mut request).await {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        stream.write_all(&[0; ANSWER]).await?;
    }
}
