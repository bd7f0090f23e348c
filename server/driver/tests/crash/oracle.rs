//! What clients were told, and what must therefore be so.

use bytes::Bytes;
use iggy_consensus::Durability;
use iggy_driver::request::Reply;
use iggy_protocol::error_code::ErrorCode;
use std::collections::BTreeMap;

/// A batch a client made; it may be in the log at most once, whatever was resent.
pub struct Batch {
    pub bytes: Bytes,
    pub ids: Vec<u128>,
    pub payloads: Vec<Vec<u8>>,
    /// Client, epoch and base sequence, for a batch of an idempotent producer.
    pub producer: Option<(u64, u16, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Index of the batch.
    Send(usize),
    Store {
        consumer: u32,
        offset: u64,
    },
    Delete {
        consumer: u32,
    },
}

/// What a committed reply said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    pub op: u64,
    pub timestamp: u64,
    pub body: Vec<u8>,
    /// Losses known when it was given.
    pub losses: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Asked, not answered.
    InFlight,
    /// May or may not have been applied.
    Unknown,
    /// Certainly not applied, unless it was asked again.
    Refused,
    Acked(Ack),
}

pub struct Request {
    pub client: usize,
    pub number: u64,
    pub kind: Kind,
    pub status: Status,
    /// Times it was asked and not answered yet.
    pub open: usize,
    /// Never in doubt: every answer so far said that nothing was written.
    pub never_written: bool,
}

#[derive(Default)]
pub struct Oracle {
    pub requests: Vec<Request>,
    pub batches: Vec<Batch>,
    /// Message ids at the offsets that a reader saw, with the losses known then.
    pub seen: BTreeMap<u64, (u128, u64)>,
    /// Where the metadata ordered the log to be cut, and up to where it may be cut at all.
    pub truncated_before: u64,
    pub may_start_at: u64,
    /// Offset stored by the last read that was answered, and whether a later one may have stored another.
    read: Option<u64>,
    read_in_doubt: bool,
    /// Losses known.
    pub losses: u64,
    /// Newest owner generation ordered.
    pub generation: u64,
}

/// A broken promise.
pub type Broken = String;

impl Oracle {
    pub fn promise(kind: Kind, messages: Durability, offsets: Durability) -> Durability {
        match kind {
            Kind::Send(_) => messages,
            Kind::Store { .. } | Kind::Delete { .. } => offsets,
        }
    }

    /// The process has died: whoever waited was told nothing.
    pub fn died(&mut self, reading: bool) {
        self.read_in_doubt |= reading;
        for request in &mut self.requests {
            request.never_written &= request.open == 0;
            request.open = 0;
            if request.status == Status::InFlight {
                request.status = Status::Unknown;
            }
        }
    }

    /// A recovered log ends at `end` under `losses`: whatever was acknowledged beyond must have been allowed to go.
    pub fn recovered(
        &mut self,
        end: u64,
        losses: u64,
        next_offset: u64,
        messages: Durability,
        offsets: Durability,
    ) -> Result<(), Broken> {
        if losses > self.losses {
            self.losses = losses;
            self.read_in_doubt |= offsets == Durability::Replicated;
            // An order to cut meant what is gone, not what will stand there.
            self.may_start_at = self.may_start_at.min(next_offset);
        }
        for (index, request) in self.requests.iter_mut().enumerate() {
            let Status::Acked(ack) = &request.status else { continue };
            if ack.op <= end && ack.losses == losses {
                continue;
            }
            let promise = Self::promise(request.kind, messages, offsets);
            let may_be_lost = promise == Durability::Replicated && losses > ack.losses;
            if ack.op > end {
                if !may_be_lost {
                    return Err(format!(
                        "request {index} ({:?}, promised {promise:?}) was acknowledged at op {} and the log ends at {end} with {losses} losses",
                        request.kind, ack.op
                    ));
                }
                request.status = Status::Unknown;
            } else if let Status::Acked(ack) = &mut request.status {
                // What a loss did not reach is part of the new history.
                ack.losses = losses;
            }
        }
        let gone: Vec<u64> = self.seen.range(next_offset..).map(|(offset, _)| *offset).collect();
        for offset in gone {
            let (id, known) = self.seen[&offset];
            if messages == Durability::Persisted || losses == known {
                return Err(format!(
                    "message {id:x} was read at {offset} and the log ends at {next_offset} with {losses} losses"
                ));
            }
            self.seen.remove(&offset);
        }
        self.seen.values_mut().for_each(|(_, known)| *known = losses);
        Ok(())
    }

    /// Takes the answer to request `index`.
    pub fn answered(&mut self, index: usize, reply: &Reply, losses: u64) -> Result<(), Broken> {
        let newest = self.newest_applied(self.requests[index].client);
        let request = &mut self.requests[index];
        request.open -= 1;
        let header = &reply.header;
        if header.committed == 1 {
            let ack = Ack {
                op: header.op.get(),
                timestamp: header.timestamp.get(),
                body: reply.body.concat(),
                losses,
            };
            if let Status::Acked(first) = &request.status
                && *first != ack
            {
                return Err(format!("request {index} was answered {first:?} and then {ack:?}"));
            }
            request.status = Status::Acked(ack);
            return Ok(());
        }
        let code = ErrorCode::from_u32(header.status.get());
        match (&request.status, code) {
            // Its receipt has been pushed out by newer ones.
            (Status::Acked(_), ErrorCode::RequestTooOld) if newest >= request.number + 16 => {}
            (Status::Acked(_), ErrorCode::TransientNotAccepted) => {}
            (Status::Acked(_), _) => {
                return Err(format!("request {index} was acknowledged and is now refused: {code:?}"));
            }
            // A newer one came first: it can never be applied, but it may have been.
            (_, ErrorCode::TransientNotCommitted | ErrorCode::RequestTooOld) => {
                request.status = Status::Unknown;
                request.never_written &= code == ErrorCode::RequestTooOld;
            }
            // The same request, asked twice, still waits.
            _ if request.open > 0 => {}
            _ if request.never_written => request.status = Status::Refused,
            _ => request.status = Status::Unknown,
        }
        Ok(())
    }

    /// A read that stores its offset was answered: what it returned is what it stored.
    pub fn read_committed(&mut self, last: Option<u64>, refused: bool) {
        self.read_in_doubt |= refused;
        if last.is_some() {
            self.read = last;
            self.read_in_doubt = false;
        }
    }

    /// Holds the offset of the reader against its reads.
    pub fn check_read(&self, stored: Option<u64>, next_offset: u64) -> Result<(), Broken> {
        if stored.is_some_and(|stored| stored >= next_offset) || (!self.read_in_doubt && stored != self.read) {
            return Err(format!(
                "the reader is stored at {stored:?}, its last read ended at {:?}, the log at {next_offset}",
                self.read
            ));
        }
        Ok(())
    }

    fn newest_applied(&self, client: usize) -> u64 {
        let acked = |request: &&Request| request.client == client && matches!(request.status, Status::Acked(_));
        self.requests
            .iter()
            .filter(acked)
            .map(|request| request.number)
            .max()
            .unwrap_or(0)
    }

    /// Holds the whole readable log against what was asked and answered.
    pub fn check_log(&mut self, log: &[(u64, u128, Vec<u8>)], log_start: u64, losses: u64) -> Result<(), Broken> {
        let mut expected: BTreeMap<u128, (usize, usize)> = BTreeMap::new();
        for (index, batch) in self.batches.iter().enumerate() {
            expected.extend(batch.ids.iter().enumerate().map(|(place, id)| (*id, (index, place))));
        }
        let mut bases: BTreeMap<usize, u64> = BTreeMap::new();
        let mut next = log_start;
        for (offset, id, payload) in log {
            if *offset != next {
                return Err(format!("offset {offset} follows {next}"));
            }
            next += 1;
            let Some((batch, place)) = expected.get(id) else {
                return Err(format!("message {id:x} at {offset} was never sent"));
            };
            if self.batches[*batch].payloads[*place] != *payload {
                return Err(format!("message {id:x} at {offset} has other bytes than were sent"));
            }
            let base = offset - *place as u64;
            if *bases.entry(*batch).or_insert(base) != base {
                return Err(format!("batch {batch} is in the log at {} and at {base}", bases[batch]));
            }
        }
        self.check_sends(&bases, log_start, next)?;
        for (offset, id, _) in log {
            if let Some((seen, known)) = self.seen.get(offset)
                && seen != id
            {
                return Err(format!(
                    "offset {offset} held {seen:x} ({known} losses) and now {id:x} ({losses})"
                ));
            }
            self.seen.insert(*offset, (*id, losses));
        }
        Ok(())
    }

    fn check_sends(&self, bases: &BTreeMap<usize, u64>, log_start: u64, end: u64) -> Result<(), Broken> {
        for (index, request) in self.requests.iter().enumerate() {
            let Kind::Send(batch) = request.kind else { continue };
            match &request.status {
                Status::Acked(ack) => {
                    let base = confirmed_offset(&ack.body).ok_or("a send was acknowledged without an offset")?;
                    let last = base + self.batches[batch].ids.len() as u64 - 1;
                    if last >= end {
                        return Err(format!(
                            "request {index} was acknowledged at {base} and the log ends at {end}"
                        ));
                    }
                    if last >= log_start && bases.get(&batch) != Some(&base) {
                        return Err(format!(
                            "request {index} was acknowledged at {base}, and its batch {batch} is at {:?}",
                            bases.get(&batch)
                        ));
                    }
                }
                Status::Refused if self.batches[batch].producer.is_none() && bases.contains_key(&batch) => {
                    return Err(format!("request {index} was refused and its batch is in the log"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Holds a stored offset against the writes of its consumer.
    pub fn check_offset(&self, consumer: u32, stored: Option<u64>, next_offset: u64) -> Result<(), Broken> {
        if let Some(stored) = stored
            && stored >= next_offset
        {
            return Err(format!(
                "consumer {consumer} is stored at {stored}, the log ends at {next_offset}"
            ));
        }
        let effect = |request: &Request| match request.kind {
            Kind::Store { consumer: of, offset } if of == consumer => Some(Some(offset)),
            Kind::Delete { consumer: of } if of == consumer => Some(None),
            _ => None,
        };
        let mut newest = (0, None);
        let mut possible = Vec::new();
        for request in &self.requests {
            let Some(value) = effect(request) else { continue };
            match &request.status {
                Status::Acked(ack) if ack.body == [0; 4] && ack.op > newest.0 => newest = (ack.op, value),
                Status::Unknown | Status::InFlight => possible.push(value),
                _ => {}
            }
        }
        possible.push(newest.1);
        if possible.contains(&stored) {
            Ok(())
        } else {
            Err(format!(
                "consumer {consumer} is stored at {stored:?}; possible is {possible:?}"
            ))
        }
    }
}

/// Base offset of a send's confirmation: the last eight bytes of its single entry (wire 7.1).
fn confirmed_offset(body: &[u8]) -> Option<u64> {
    body.last_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}
