//! How two nodes find out that they may link.
//!
//! The dialer says who it is and whom it wants (hello), the listener answers with its verdict (challenge), the dialer
//! closes (finish). With a secret each of the three carries a proof that covers all of them, so that none can be replayed,
//! changed, or moved to another link or connection. During a change of the secret both sides take the previous one, too.
//!
//! Cancel safety: a handshake that is dropped leaves its connection useless; it belongs to whoever drops it.

mod frames;
#[cfg(test)]
mod tests;

use crate::config::Identity;
use crate::preamble::Preamble;
pub use frames::{
    CHALLENGE_LEN, Challenge, Channel, FINISH_LEN, FrameError, HELLO_LEN, Hello, Key, PROOF_LEN, Refusal, Release,
    decode_finish, finish,
};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What a node compares with what the other side says.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Who this node is.
    pub identity: Identity,
    /// Nodes of the cluster.
    pub nodes: u8,
    /// Links between two nodes.
    pub links: u16,
    /// Version of this program.
    pub release: Release,
    /// The key of the secret, and during a change of it the one before. Empty when there is none.
    pub keys: Vec<Key>,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The connection failed.
    #[error("the connection ended during the handshake: {0}")]
    Io(#[from] io::Error),
    /// What came is no handshake.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// This side does not want it.
    #[error("this node refused the other one: {0}")]
    Refused(Refusal),
    /// The other side does not want it.
    #[error("the other node refused this one: {0}")]
    RefusedThere(Refusal),
    /// The other side could not show that it knows the secret.
    #[error("the other node does not share the secret (cluster.auth)")]
    Unproven,
}

/// What is known after a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// The node on the other side.
    pub peer: u8,
    /// Index of the link.
    pub link: u16,
    /// Start of its process.
    pub incarnation: u64,
}

/// The side that dialed `listener` for the link with this index. Attempts take turns in which secret they show first:
/// while it is being changed, nobody knows whether the other side has the new one already.
pub async fn dial<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    facts: &Facts,
    Preamble { link, .. }: Preamble,
    listener: u8,
    attempt: usize,
    channel: &Channel,
) -> Result<Met, HandshakeError> {
    let hello = Hello {
        dialer: facts.identity.replica,
        listener,
        link,
        links: facts.links,
        nodes: facts.nodes,
        proven: !facts.keys.is_empty(),
        cluster: facts.identity.cluster,
        incarnation: facts.identity.incarnation,
        release: facts.release,
        nonce: rand::random(),
    };
    let hello = hello.encode();
    let shown = facts.keys.get(attempt % facts.keys.len().max(1));
    let proof = shown.map_or([0; PROOF_LEN], |key| key.proof(&[&hello], channel));
    say(stream, &hello, &proof).await?;

    let (challenge_bytes, proof) = hear::<CHALLENGE_LEN, { CHALLENGE_LEN - PROOF_LEN }>(stream).await?;
    let challenge = Challenge::decode(&challenge_bytes)?;
    // Not proven, where the secrets differ: it only says what to look at.
    if let Some(refusal) = challenge.verdict {
        return Err(HandshakeError::RefusedThere(refusal));
    }
    let said: [&[u8]; 2] = [&hello, &challenge_bytes];
    let key = match (facts.keys.is_empty(), challenge.proven) {
        (true, false) => None,
        (false, true) => {
            let fits = |key: &&Key| key.fits(&proof, &said, channel);
            Some(facts.keys.iter().find(fits).ok_or(HandshakeError::Unproven)?)
        }
        _ => return Err(HandshakeError::Refused(Refusal::Secret)),
    };
    if challenge.release != facts.release {
        return Err(HandshakeError::Refused(Refusal::Release));
    }
    let finish = finish();
    let said: [&[u8]; 3] = [&hello, &challenge_bytes, &finish];
    let proof = key.map_or([0; PROOF_LEN], |key| key.proof(&said, channel));
    say(stream, &finish, &proof).await?;
    Ok(Met {
        peer: listener,
        link,
        incarnation: challenge.incarnation,
    })
}

/// The side that was dialed. What the dialer is refused for it is told, as long as it speaks a handshake at all.
pub async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    facts: &Facts,
    preamble: Preamble,
    channel: &Channel,
) -> Result<Met, HandshakeError> {
    let (hello_bytes, proof) = hear::<HELLO_LEN, { HELLO_LEN - PROOF_LEN }>(stream).await?;
    let hello = Hello::decode(&hello_bytes)?;
    let fits = |key: &&Key| key.fits(&proof, &[&hello_bytes], channel);
    let key = facts.keys.iter().find(fits);
    let verdict = judge(facts, preamble, &hello, key.is_some());
    let challenge = Challenge {
        verdict,
        proven: !facts.keys.is_empty(),
        incarnation: facts.identity.incarnation,
        release: facts.release,
        nonce: rand::random(),
    };
    let challenge = challenge.encode();
    let said: [&[u8]; 2] = [&hello_bytes, &challenge];
    let proof = key.map_or([0; PROOF_LEN], |key| key.proof(&said, channel));
    say(stream, &challenge, &proof).await?;
    if let Some(refusal) = verdict {
        return Err(HandshakeError::Refused(refusal));
    }

    let (finish, proof) = hear::<FINISH_LEN, { FINISH_LEN - PROOF_LEN }>(stream).await?;
    decode_finish(&finish)?;
    let said: [&[u8]; 3] = [&hello_bytes, &challenge, &finish];
    if key.is_some_and(|key| !key.fits(&proof, &said, channel)) {
        return Err(HandshakeError::Unproven);
    }
    Ok(Met {
        peer: hello.dialer,
        link: hello.link,
        incarnation: hello.incarnation,
    })
}

/// What is wrong with a hello. The secret first: a stranger learns nothing else.
fn judge(facts: &Facts, preamble: Preamble, hello: &Hello, proven: bool) -> Option<Refusal> {
    let has_secret = !facts.keys.is_empty();
    if hello.proven != has_secret || (has_secret && !proven) {
        return Some(Refusal::Secret);
    }
    if hello.cluster != facts.identity.cluster {
        return Some(Refusal::Cluster);
    }
    if hello.release != facts.release {
        return Some(Refusal::Release);
    }
    if hello.nodes != facts.nodes {
        return Some(Refusal::Roster);
    }
    let own = facts.identity.replica;
    // The lower number dials, so a dialer with a higher one, or with this node's own, follows another roster.
    let named = Preamble {
        dialer: hello.dialer,
        link: hello.link,
    };
    if hello.listener != own || hello.dialer >= own || named != preamble {
        return Some(Refusal::Node);
    }
    (hello.links != facts.links || hello.link >= facts.links).then_some(Refusal::Links)
}

async fn say<S: AsyncWrite + Unpin>(stream: &mut S, frame: &[u8], proof: &[u8; PROOF_LEN]) -> io::Result<()> {
    stream.write_all(&[frame, proof].concat()).await?;
    stream.flush().await
}

async fn hear<const ALL: usize, const SAID: usize>(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<([u8; SAID], [u8; PROOF_LEN])> {
    const { assert!(ALL == SAID + PROOF_LEN) };
    let (mut said, mut proof) = ([0; SAID], [0; PROOF_LEN]);
    stream.read_exact(&mut said).await?;
    stream.read_exact(&mut proof).await?;
    Ok((said, proof))
}
