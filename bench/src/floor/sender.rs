//! The measuring side of a floor.

use super::{HEADER, PREFIX, Purpose, Storing, is_sealed, seal};
use crate::workload::{Moved, Record, Recorder};
use anyhow::{Context, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// What the floor has in common with its workload.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Connections that send.
    pub senders: u32,
    /// Connections that read.
    pub readers: u32,
    /// Whether those that send read it back.
    pub echoes: bool,
    /// Batches of each connection.
    pub batches: u32,
    /// Bytes of payload of a batch.
    pub payload: usize,
    /// Messages of a batch.
    pub messages: u64,
    /// Bytes of a batch beside its payload.
    pub overhead: usize,
    /// What becomes of what is sent.
    pub storing: Storing,
    /// Time of a batch of a sender, and of a reader, where there is a limit.
    pub pace: [Option<Duration>; 2],
    /// Folder of the files.
    pub directory: PathBuf,
}

impl Plan {
    fn frame(&self) -> usize {
        PREFIX + self.payload + self.overhead
    }
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

fn start(plan: &Plan) -> anyhow::Result<(Receiver, SocketAddr)> {
    let program = std::env::current_exe().context("finding this program")?;
    let storing = match plan.storing {
        Storing::Write => "write",
        Storing::Sync => "sync",
    };
    let mut command = Command::new(program);
    command.args(["floor-receiver", "--storing", storing]);
    command.arg("--bytes").arg(plan.frame().to_string());
    command.arg("--directory").arg(&plan.directory);
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

/// Runs every connection to its end. Records of senders come first.
pub fn measure(plan: &Plan, moved: &Moved) -> anyhow::Result<Vec<Record>> {
    let (_receiver, address) = start(plan)?;
    let begin = Arc::new(Barrier::new((plan.senders + plan.readers) as usize));
    let threads: Vec<_> = (0..plan.senders + plan.readers)
        .map(|number| {
            let (plan, begin, moved) = (plan.clone(), Arc::clone(&begin), Arc::clone(moved));
            let purpose = match (number < plan.senders, plan.echoes) {
                (true, false) => Purpose::Send,
                (true, true) => Purpose::Echo,
                (false, _) => Purpose::Read,
            };
            std::thread::spawn(move || connection(&plan, address, purpose, &begin, moved))
        })
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        .collect()
}

fn connection(
    plan: &Plan,
    address: SocketAddr,
    purpose: Purpose,
    begin: &Barrier,
    moved: Moved,
) -> anyhow::Result<Record> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.write_all(&[purpose.byte()])?;
    if purpose == Purpose::Read {
        stream.read_exact(&mut [0])?;
    }
    let payload = vec![b'x'; plan.payload];
    let mut frame = vec![0; plan.frame()];
    let mut header = [0; HEADER];
    begin.wait();
    let mut recorder = Recorder::start(moved);
    let mut due = Instant::now();
    for _ in 0..plan.batches {
        if let Some(pace) = plan.pace[usize::from(purpose == Purpose::Read)] {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            due += pace;
        }
        let asked = Instant::now();
        if purpose != Purpose::Read {
            frame[PREFIX..][..plan.payload].copy_from_slice(&payload);
            seal(&mut frame);
            stream.write_all(&frame)?;
            stream.read_exact(&mut header)?;
        }
        if purpose != Purpose::Send {
            stream.write_all(&header)?;
            stream.read_exact(&mut frame)?;
            ensure!(is_sealed(&frame), "a frame was damaged on its way");
        }
        recorder.batch(asked, plan.messages, plan.payload as u64);
    }
    Ok(recorder.end())
}
