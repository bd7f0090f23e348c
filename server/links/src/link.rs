//! A link that is up: frames in, frames out, until one side ends it.

use crate::framing::{Class, FrameError, FrameReader, prefix};
use crate::handshake::{self, Channel, Met};
use crate::listening::Arrival;
use crate::peer::{Frame, Peer};
use crate::preamble::Preamble;
use crate::switchboard::Links;
use crate::tls;
use bytes::{Buf, Bytes, BytesMut};
use iggy_consensus::codec;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Bytes after which a write takes no further frame along.
const WRITE_BYTES: usize = 1 << 20;

/// A connection between two nodes.
pub enum Transport {
    /// Without TLS.
    Plain(TcpStream),
    /// With TLS, either side.
    Tls(Box<tokio_rustls::TlsStream<TcpStream>>),
}

impl Transport {
    /// The side that dialed: says which link this is, and begins TLS where it is configured.
    pub async fn dial(
        links: &Links,
        mut stream: TcpStream,
        preamble: Preamble,
        peer: IpAddr,
    ) -> io::Result<(Self, Channel)> {
        stream.set_nodelay(true)?;
        stream.write_all(&preamble.encode()).await?;
        match &links.config.tls {
            None => Ok((Self::Plain(stream), Channel::default())),
            Some(tls) => {
                let (stream, channel) = tls::connect(tls, stream, peer).await?;
                Ok((Self::Tls(Box::new(stream)), channel))
            }
        }
    }

    async fn accept(links: &Links, stream: TcpStream) -> io::Result<(Self, Channel)> {
        stream.set_nodelay(true)?;
        match &links.config.tls {
            None => Ok((Self::Plain(stream), Channel::default())),
            Some(tls) => {
                let (stream, channel) = tls::accept(tls, stream).await?;
                Ok((Self::Tls(Box::new(stream)), channel))
            }
        }
    }
}

/// Makes a link of a connection that came in, and runs it.
pub async fn serve_arrival(links: std::sync::Arc<Links>, arrival: Arrival) {
    let (from, preamble) = (arrival.from, arrival.preamble);
    let place = arrival.place;
    let grace = links.config.limits.handshake_grace;
    let meeting = async {
        let (mut transport, channel) = Transport::accept(&links, arrival.stream).await?;
        let met = handshake::answer(&mut transport, &links.facts, preamble, &channel).await?;
        Ok::<_, handshake::HandshakeError>((transport, met))
    };
    let met = tokio::select! {
        () = links.stop.cancelled() => return,
        met = tokio::time::timeout(grace, meeting) => met,
    };
    match met {
        Ok(Ok((transport, met))) => {
            drop(place);
            run(&links, transport, met).await;
        }
        Ok(Err(error)) => {
            tracing::warn!(%from, peer = preamble.dialer, link = preamble.link, %error, "a connection did not become a link");
            // What a stranger claims is no news of a peer, unless links prove who they are.
            if let Some(peer) = links.peer(preamble.dialer).filter(|_| links.facts.keys.is_empty()) {
                peer.trouble(Some(error.to_string()));
            }
        }
        Err(_) => tracing::warn!(%from, "a connection did not become a link within {grace:?}"),
    }
}

/// Runs a link until it ends.
pub async fn run(links: &Links, transport: Transport, met: Met) {
    let Some(peer) = links.peer(met.peer) else { return };
    let end = CancellationToken::new();
    let (slot, mut queue) = peer.join(&met, end.clone());
    tracing::info!(peer = met.peer, link = met.link, "linked");
    let (source, sink) = tokio::io::split(transport);
    let limits = &links.config.limits;
    let mut reader = FrameReader::new(source, limits.read_buffer, limits.message_bytes_max, limits.silence_max);
    let mut writer = Writer {
        links,
        peer,
        sink,
        pieces: Pieces::default(),
    };
    let why = tokio::select! {
        () = links.stop.cancelled() => {
            let part = async {
                writer.finish(&mut queue).await?;
                // What the peer says meanwhile must be read: a connection that is closed over it takes back what was sent.
                while reader.next().await?.is_some() {}
                Ok::<_, FrameError>(())
            };
            let _ = tokio::time::timeout(limits.close_grace, part).await;
            "this node stops".to_owned()
        }
        () = end.cancelled() => "a newer one has taken its place".to_owned(),
        read = read(links, peer, &met, &mut reader) => match read {
            Ok(()) => "the peer ended it".to_owned(),
            Err(error) => error.to_string(),
        },
        Err(error) = writer.run(&mut queue) => error.to_string(),
    };
    peer.leave(met.link, &slot);
    // What comes now finds the queue closed; what is in it goes with the link.
    queue.close();
    let (mut frames, mut bytes) = (0, 0);
    while let Ok(frame) = queue.try_recv() {
        frames += 1;
        bytes += frame.length as u64;
    }
    peer.unqueue(frames, bytes);
    peer.counts.dropped.fetch_add(frames, Relaxed);
    tracing::info!(peer = met.peer, link = met.link, why, "the link has ended");
}

async fn read<R: AsyncRead + Unpin>(
    links: &Links,
    peer: &Peer,
    met: &Met,
    reader: &mut FrameReader<R>,
) -> Result<(), FrameError> {
    while let Some((class, frame)) = reader.next().await? {
        peer.counts.received.fetch_add(1, Relaxed);
        peer.counts.received_bytes.fetch_add(frame.len() as u64, Relaxed);
        let messages = match class {
            Class::Message => codec::decode(frame).map(|message| vec![message]),
            Class::Beats => {
                let sender = codec::beats_sender(&frame);
                codec::decode_beats(frame).inspect(|_| {
                    if let Some((from, incarnation)) = sender.filter(|(from, _)| *from == met.peer) {
                        (links.inbound.heard)(from, incarnation);
                    }
                })
            }
        };
        let messages = messages.unwrap_or_else(|error| {
            tracing::warn!(peer = met.peer, %error, "a message of a replica cannot be read");
            peer.counts.refused.fetch_add(1, Relaxed);
            Vec::new()
        });
        for message in messages {
            // A node speaks for itself alone.
            if message.from != met.peer || message.cluster != links.config.identity.cluster {
                tracing::warn!(
                    peer = met.peer,
                    from = message.from,
                    "a message in the name of another node"
                );
                peer.counts.refused.fetch_add(1, Relaxed);
                continue;
            }
            let shard = (links.inbound.shard_of)(&message.group) % links.inbound.shards.len();
            // Waiting is how a shard that is behind slows down those who send to it.
            if links.inbound.shards[shard].send(message).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

struct Writer<'a> {
    links: &'a Links,
    peer: &'a Peer,
    sink: WriteHalf<Transport>,
    /// What of the last batch is not written yet: a write may be interrupted within a frame.
    pieces: Pieces,
}

impl Writer<'_> {
    /// Writes what comes, several frames at once when they wait. Ends when it cannot.
    async fn run(&mut self, queue: &mut mpsc::Receiver<Frame>) -> io::Result<()> {
        loop {
            let first = tokio::select! {
                frame = queue.recv() => match frame {
                    Some(frame) => Some(frame),
                    None => return Ok(()),
                },
                () = self.peer.bell.notified() => None,
            };
            self.gather(first, queue);
            self.write().await?;
        }
    }

    /// Writes what waits, and ends the stream.
    async fn finish(&mut self, queue: &mut mpsc::Receiver<Frame>) -> io::Result<()> {
        queue.close();
        self.write().await?;
        while let Ok(frame) = queue.try_recv() {
            self.gather(Some(frame), queue);
            self.write().await?;
        }
        self.sink.shutdown().await
    }

    /// Takes what waits, as far as one write goes.
    fn gather(&mut self, first: Option<Frame>, queue: &mut mpsc::Receiver<Frame>) {
        let mut batch = Batch::default();
        let mut next = first;
        while let Some(frame) = next {
            batch.add(Class::Message, frame.pieces, frame.length);
            self.peer.unqueue(1, frame.length as u64);
            let room = batch.frames < self.links.config.limits.batch_max && batch.length < WRITE_BYTES;
            next = if room { queue.try_recv().ok() } else { None };
        }
        if let Some(beats) = self.peer.beats.take() {
            let identity = self.links.config.identity;
            let frame = codec::encode_beats(identity.cluster, identity.replica, identity.incarnation, &beats);
            let length = frame.len();
            batch.add(Class::Beats, vec![frame], length);
        }
        self.peer.counts.sent.fetch_add(batch.frames as u64, Relaxed);
        self.peer.counts.sent_bytes.fetch_add(batch.length as u64, Relaxed);
        self.pieces = batch.pieces();
    }

    async fn write(&mut self) -> io::Result<()> {
        let silence_max = self.links.config.limits.silence_max;
        while self.pieces.has_remaining() {
            // The deadline begins anew with whatever the peer takes.
            let written = tokio::time::timeout(silence_max, self.sink.write_buf(&mut self.pieces)).await;
            if written.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        let flushed = tokio::time::timeout(silence_max, self.sink.flush()).await;
        flushed.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

/// Frames of one write.
#[derive(Default)]
struct Batch {
    frames: usize,
    length: usize,
    /// The bytes before each frame, in one allocation for all.
    prefixes: BytesMut,
    contents: Vec<Vec<Bytes>>,
}

impl Batch {
    fn add(&mut self, class: Class, content: Vec<Bytes>, length: usize) {
        self.frames += 1;
        self.length += length;
        self.prefixes.extend_from_slice(&prefix(class, length));
        self.contents.push(content);
    }

    fn pieces(mut self) -> Pieces {
        let mut pieces = VecDeque::with_capacity(self.contents.len() * 3);
        for content in self.contents {
            pieces.push_back(self.prefixes.split_to(crate::framing::PREFIX_LEN).freeze());
            pieces.extend(content.into_iter().filter(|piece| !piece.is_empty()));
        }
        Pieces(pieces)
    }
}

/// Bytes in pieces, none of them empty.
#[derive(Default)]
struct Pieces(VecDeque<Bytes>);

impl Buf for Pieces {
    fn remaining(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    fn has_remaining(&self) -> bool {
        !self.0.is_empty()
    }

    fn chunk(&self) -> &[u8] {
        self.0.front().map_or(&[], |piece| piece)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let filled = self.0.len().min(slices.len());
        for (slice, piece) in slices.iter_mut().zip(&self.0) {
            *slice = IoSlice::new(piece);
        }
        filled
    }

    fn advance(&mut self, mut count: usize) {
        while let Some(first) = self.0.front_mut() {
            if count < first.len() {
                return first.advance(count);
            }
            count -= first.len();
            self.0.pop_front();
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
