//! The other process of a floor.

use super::{HEADER, Purpose, Storing, is_sealed, seal};
use anyhow::{Context, bail};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Bytes after which a file begins anew: what is read lies in memory, as what was just written does.
const FILE_MAX: u64 = 256 << 20;

/// Options of the receiving process.
#[derive(clap::Args)]
pub struct ReceiverArguments {
    /// What to do with the bytes
    #[arg(long)]
    storing: Storing,

    /// Bytes of a frame
    #[arg(long)]
    bytes: usize,

    /// Folder of the files
    #[arg(long)]
    directory: PathBuf,
}

/// Serves connections until whoever started it is gone.
pub fn receive(arguments: &ReceiverArguments) -> anyhow::Result<()> {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let (storing, bytes) = (arguments.storing, arguments.bytes);
        let file = tempfile::tempfile_in(&arguments.directory)?;
        std::thread::spawn(move || {
            if let Err(error) = serve(stream, storing, bytes, file) {
                eprintln!("iggy-bench: a connection of the floor failed: {error:#}");
            }
        });
    }
}

fn serve(mut stream: TcpStream, storing: Storing, bytes: usize, file: File) -> anyhow::Result<()> {
    let mut purpose = [0];
    stream.read_exact(&mut purpose)?;
    match Purpose::of(purpose[0]).context("a connection without a purpose")? {
        Purpose::Send => take(stream, storing, bytes, file, false),
        Purpose::Echo => take(stream, storing, bytes, file, true),
        Purpose::Read => give(stream, bytes, file),
    }
}

/// Whether the peer ended the connection in place of another frame.
fn ended(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(true),
        Err(error) => Err(error),
    }
}

fn take(mut stream: TcpStream, storing: Storing, bytes: usize, mut file: File, echoes: bool) -> anyhow::Result<()> {
    let mut frame = vec![0; bytes];
    let mut written = 0;
    loop {
        if ended(stream.read_exact(&mut frame))? {
            return Ok(());
        }
        if !is_sealed(&frame) {
            bail!("a frame was damaged on its way");
        }
        // What is written is what a log keeps: the batch, not the header of the request.
        file.write_all(&frame[HEADER..])?;
        let begin = written;
        written += (bytes - HEADER) as u64;
        if storing == Storing::Sync {
            file.sync_data()?;
        }
        stream.write_all(&[0; HEADER])?;
        if echoes {
            stream.read_exact(&mut [0; HEADER])?;
            file.read_exact_at(&mut frame[HEADER..], begin)?;
            stream.write_all(&frame)?;
        }
        if written > FILE_MAX {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            written = 0;
        }
    }
}

fn give(mut stream: TcpStream, bytes: usize, mut file: File) -> anyhow::Result<()> {
    let mut frame = vec![7; bytes];
    seal(&mut frame);
    let frames = (FILE_MAX / 8 / bytes as u64).max(1);
    for _ in 0..frames {
        file.write_all(&frame)?;
    }
    let mut request = [0; HEADER];
    // All is ready: the measurement may begin.
    stream.write_all(&[0])?;
    loop {
        file.seek(SeekFrom::Start(0))?;
        for _ in 0..frames {
            if ended(stream.read_exact(&mut request))? {
                return Ok(());
            }
            file.read_exact(&mut frame)?;
            stream.write_all(&frame)?;
        }
    }
}
