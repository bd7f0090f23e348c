//! The least that a send can cost on this machine: the same bytes over loopback, written to a file, and a small answer.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of the answer: a reply header with a send confirmation.
const ANSWER: usize = 280;

/// What the receiving side does with the bytes before it answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Storing {
    /// Nothing: a bare round trip.
    Nothing,
    /// Hands them to the operating system.
    Write,
    /// Also waits for the disk.
    Sync,
}

/// Measures `requests` round trips of `bytes` bytes, one at a time, each after a pause; files go to `directory`. A machine
/// that was idle takes longer to wake its threads: what is measured after pauses has a floor with the same pauses.
pub fn measure(
    storing: Storing,
    bytes: usize,
    requests: usize,
    pause: Duration,
    directory: &Path,
) -> io::Result<Vec<Duration>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let file = tempfile::tempfile_in(directory)?;
    let receiver = receive(listener, storing, bytes, file);
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let request = vec![7; bytes];
    let mut answer = [0; ANSWER];
    let mut samples = Vec::with_capacity(requests);
    for _ in 0..requests {
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
        let began = Instant::now();
        stream.write_all(&request)?;
        stream.read_exact(&mut answer)?;
        samples.push(began.elapsed());
    }
    stream.shutdown(Shutdown::Both)?;
    receiver
        .join()
        .map_err(|_| io::Error::other("the receiving thread panicked"))??;
    Ok(samples)
}

fn receive(listener: TcpListener, storing: Storing, bytes: usize, mut file: File) -> JoinHandle<io::Result<()>> {
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
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
    })
}
