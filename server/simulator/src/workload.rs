//! What clients do in a world: begin, ask, ask again, and take answers.

use crate::clients::{self, Answered, Request, Wish};
use crate::faults::Fault;
use crate::oracle::Status;
use crate::world::{Event, PATIENCE, World};
use iggy_consensus::Durability;
use iggy_driver::controller;
use iggy_driver::request::Reply;
use iggy_protocol::codec::Decode;
use iggy_protocol::reply::message::SendReply;
use iggy_protocol::result_section::ResultSection;
use rand::Rng;

impl World {
    pub(crate) fn client(&mut self, index: usize) {
        let pause = self.workload.random_range(500..12_000);
        self.schedule(self.now + pause, Event::Client(index));
        if let Some(request) = &self.clients[index].request {
            if request.deadline > self.now {
                return;
            }
            // No answer: it may have been written, and another node may know.
            self.faults.count(Fault::Retry);
            self.waiting.remove(&request.ticket);
            if self.workload.random() {
                self.clients[index].node = self.workload.random_range(0..self.plan.members);
            }
            return self.attempt(index);
        }
        if self.chaos {
            self.begin(index);
        }
    }

    fn begin(&mut self, index: usize) {
        let place = self.workload.random_range(0..self.plan.members);
        let Some(state) = self.nodes[usize::from(place)].metadata() else {
            return;
        };
        let count = state.partitions().count();
        if count == 0 {
            return;
        }
        let picked = self.workload.random_range(0..count);
        let Some((key, topic, partition)) = state.partitions().nth(picked) else {
            return;
        };
        let settings = controller::settings_of(&topic.settings, key.partition_id, topic.partitions_count());
        let history = partition.history;
        let durability: (Durability, Durability) = (settings.durability, settings.consumer_offset_durability);
        let wall = self.nodes[0].now(self.now).wall;
        let next_offset = self.nodes[usize::from(place)]
            .partition(&key)
            .map_or(0, |group| group.state().next_offset);
        let client = &mut self.clients[index];
        client.number += 1;
        let wish = match self.workload.random_range(0..10) {
            0..6 => {
                self.next_batch += 1;
                let batch = clients::batch(&mut self.workload, self.next_batch, self.plan.message_max, wall);
                let partition = self.oracle.partition(key);
                partition.durability = durability;
                partition.sent.push(batch);
                Wish::Send(partition.sent.len() - 1)
            }
            6..8 if next_offset > 0 => Wish::Store(self.workload.random_range(0..next_offset)),
            _ => Wish::Poll(self.workload.random_range(0..=next_offset)),
        };
        self.oracle.partition(key).durability = durability;
        if let Some(leader) = self.leaders.get(&key) {
            client.node = *leader;
        }
        let number = client.number;
        client.request = Some(Request {
            wish,
            key,
            number,
            incarnation: history.incarnation,
            losses: history.losses,
            ticket: 0,
            deadline: 0,
            maybe_written: false,
            attempts: 0,
        });
        self.attempt(index);
    }

    fn attempt(&mut self, index: usize) {
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        let node = self.clients[index].node;
        let Some(request) = &mut self.clients[index].request else {
            return;
        };
        request.ticket = ticket;
        request.deadline = self.now + PATIENCE;
        request.attempts += 1;
        self.waiting.insert(ticket, index);
        let at = self.now + self.network.delay();
        let client = index;
        self.schedule(at, Event::Request { node, client, ticket });
    }

    pub(crate) fn request(&mut self, index: u8, client: usize, ticket: u64) -> Result<(), String> {
        let node = &mut self.nodes[usize::from(index)];
        let now = node.now(self.now);
        let Some(process) = &mut node.process else {
            return Ok(());
        };
        let asking = &mut self.clients[client];
        let Some(mut request) = asking.request.take() else {
            return Ok(());
        };
        if request.ticket == ticket {
            let batch = match request.wish {
                Wish::Send(batch) => {
                    let sent = &mut self.oracle.partition(request.key).sent[batch];
                    if sent.status == Status::Refused {
                        sent.status = Status::Unknown;
                    }
                    Some(sent.bytes.clone())
                }
                Wish::Store(offset) => {
                    self.oracle.storing(request.key, asking.id, offset);
                    None
                }
                Wish::Poll(_) => None,
            };
            let before = std::mem::replace(&mut request.maybe_written, true);
            let origin = asking.origin(&request);
            let content = asking.content(&request, batch);
            self.trace.event(
                self.now,
                Some(index),
                "request",
                format_args!(
                    "client {} number {} {:?} {:?}",
                    asking.id, request.number, request.wish, request.key
                ),
            );
            process.shard.request(now, request.key, origin, content);
            // Whether an earlier attempt may be written is what counts once this one is refused.
            request.maybe_written = before;
        }
        asking.request = Some(request);
        self.settle(index)
    }

    pub(crate) fn answer(&mut self, index: usize, reply: &Reply) -> Result<(), String> {
        let client = &mut self.clients[index];
        let Some(mut request) = client.request.take() else {
            return Ok(());
        };
        if request.ticket != reply.ticket.0 {
            // Of an attempt that was given up; what it says is true all the same.
            client.request = Some(request);
            return Ok(());
        }
        let meaning = clients::meaning(reply);
        self.trace.event(
            self.now,
            None,
            "answer",
            format_args!(
                "client {} number {} {meaning:?} {}",
                client.id, request.number, reply.header.status
            ),
        );
        match meaning {
            Answered::Done => {
                self.leaders.insert(request.key, client.node);
                let id = client.id;
                self.done(id, &request, reply)
            }
            Answered::Elsewhere | Answered::Unknown => {
                request.maybe_written |= meaning == Answered::Unknown;
                if meaning == Answered::Elsewhere {
                    self.faults.count(Fault::RetryElsewhere);
                    client.node = (client.node + 1) % self.plan.members;
                }
                // Not at once: the group may be looking for a leader.
                request.deadline = self.now + self.workload.random_range(2_000..60_000);
                client.request = Some(request);
                Ok(())
            }
            Answered::Never | Answered::Lost => {
                if let Wish::Send(batch) = request.wish
                    && !request.maybe_written
                    && request.attempts == 1
                {
                    self.oracle.partition(request.key).sent[batch].status = Status::Refused;
                }
                Ok(())
            }
        }
    }

    fn done(&mut self, id: u32, request: &Request, reply: &Reply) -> Result<(), String> {
        if self.plan.unlimited {
            // Whatever a disk that lies has made of it.
            return Ok(());
        }
        let body = reply.body.concat();
        match request.wish {
            Wish::Send(batch) => {
                let reply = SendReply::from_bytes(&body).map_err(|error| format!("a confirmation: {error}"))?;
                let confirmed = reply.confirmations.first().ok_or("a send without a confirmation")?;
                self.oracle
                    .sent(request.key, batch, confirmed.base_offset, request.losses)
            }
            Wish::Store(offset) => {
                if let Ok(ResultSection::Success(_)) = ResultSection::decode(&body) {
                    self.oracle.stored(request.key, id, offset, request.losses);
                }
                Ok(())
            }
            Wish::Poll(_) => {
                let messages = clients::messages(reply)?;
                self.oracle.saw(request.key, &messages, request.losses)
            }
        }
    }

    /// Requests without an answer.
    pub fn open_requests(&self) -> usize {
        self.clients.iter().filter(|client| client.request.is_some()).count()
    }
}
