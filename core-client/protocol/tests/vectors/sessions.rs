//! Every frame of the recorded sessions is understood: header, body and the pairing of replies with requests.

use std::collections::HashMap;

use iggy_protocol::codec::{Decode, Encode};
use iggy_protocol::header::{COMMAND_EVICTION, COMMAND_REPLY, COMMAND_REQUEST, command_of, frame_size};
use iggy_protocol::reply::{group, message, offset, session, stream, system, topic};
use iggy_protocol::request::message::{DeferredPoll, FetchMessages, GetPartitionRoute, SendMessages};
use iggy_protocol::request::session::{BindSession, Login};
use iggy_protocol::{Command, EvictionHeader, Operation, ReplyHeader, RequestHeader, ResultSection, request};
use serde::Deserialize;

use crate::rows::{folder, unhex};

#[derive(Deserialize)]
struct Frame {
    dir: String,
    conn: u32,
    name: String,
    hex: String,
}

#[test]
fn given_recorded_sessions_when_read_should_be_understood_frame_by_frame() {
    let mut sessions = 0;
    for entry in std::fs::read_dir(folder().join("sessions")).unwrap() {
        let path = entry.unwrap().path();
        let frames: Vec<Frame> = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut requests: HashMap<(u32, u64), Vec<u8>> = HashMap::new();
        let mut replies = 0;
        for frame in &frames {
            let bytes = unhex(&frame.hex);
            let place = format!("{} {}", path.display(), frame.name);
            let header = bytes.first_chunk::<256>().unwrap();
            assert_eq!(frame_size(header, u32::MAX).unwrap() as usize, bytes.len(), "{place}");
            match (frame.dir.as_str(), command_of(header)) {
                ("c2s", COMMAND_REQUEST) => {
                    let request = RequestHeader::view(&bytes).unwrap();
                    request.validate().unwrap_or_else(|error| panic!("{place}: {error}"));
                    read_request(request, &bytes[256..], &place);
                    if request.code.get() != Command::CancelDeferred.code() {
                        requests.insert((frame.conn, request.request.get()), bytes.clone());
                    }
                }
                ("s2c", COMMAND_REPLY) => {
                    let reply = ReplyHeader::view(&bytes).unwrap();
                    let request = requests.get(&(frame.conn, reply.request.get()));
                    let request = request.unwrap_or_else(|| panic!("{place}: answers no request"));
                    read_reply(RequestHeader::view(request).unwrap(), reply, &bytes[256..], &place);
                    replies += 1;
                }
                ("s2c", COMMAND_EVICTION) => EvictionHeader::view(&bytes).unwrap().validate().unwrap(),
                (direction, command) => panic!("{place}: command {command} from {direction}"),
            }
        }
        assert!(replies > 0, "{} holds replies", path.display());
        sessions += 1;
    }
    assert!(sessions >= 8, "all sessions were found");
}

fn same<'a, T: Decode<'a> + Encode>(body: &'a [u8], place: &str) {
    let value = T::from_bytes(body).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(value.to_bytes().to_vec(), body, "{place}");
}

fn optional<'a, T: Decode<'a> + Encode>(body: &'a [u8], place: &str) {
    if !body.is_empty() {
        same::<T>(body, place);
    }
}

fn read_request(header: &RequestHeader, body: &[u8], place: &str) {
    let command = Command::of_header(header.operation().unwrap(), header.code.get()).unwrap();
    match command {
        Command::Login => same::<Login>(body, place),
        Command::BindSession => same::<BindSession>(body, place),
        Command::SendMessages => {
            let send = SendMessages::from_bytes(body).unwrap();
            send.batch()
                .unwrap()
                .verify()
                .unwrap_or_else(|error| panic!("{place}: {error}"));
        }
        Command::GetPartitionRoute => same::<GetPartitionRoute>(body, place),
        Command::PollMessagesDeferred => same::<DeferredPoll>(body, place),
        Command::FetchMessages => same::<FetchMessages>(body, place),
        Command::CreateStream => same::<request::stream::CreateStream>(body, place),
        Command::CreateTopic => same::<request::topic::CreateTopic>(body, place),
        Command::GetStream => same::<request::stream::GetStream>(body, place),
        Command::DeleteStream => same::<request::stream::DeleteStream>(body, place),
        Command::GetTopic => same::<request::topic::GetTopic>(body, place),
        Command::CreatePartitions => same::<request::partition::CreatePartitions>(body, place),
        Command::DeletePartitions => same::<request::partition::DeletePartitions>(body, place),
        Command::StoreConsumerOffset => same::<request::offset::StoreConsumerOffset>(body, place),
        Command::GetConsumerOffset => same::<request::offset::GetConsumerOffset>(body, place),
        Command::DeleteConsumerOffset => same::<request::offset::DeleteConsumerOffset>(body, place),
        Command::CreateConsumerGroup => same::<request::group::CreateConsumerGroup>(body, place),
        Command::GetConsumerGroup
        | Command::JoinConsumerGroup
        | Command::LeaveConsumerGroup
        | Command::SyncConsumerGroup
        | Command::DeleteConsumerGroup => same::<request::group::GetConsumerGroup>(body, place),
        _ => assert!(body.is_empty(), "{place}: no decoder for the body of {command}"),
    }
}

fn read_reply(request: &RequestHeader, reply: &ReplyHeader, body: &[u8], place: &str) {
    if reply.status.get() != 0 {
        assert!(body.is_empty() && reply.committed == 0, "{place}");
        return;
    }
    let operation = reply.operation().unwrap();
    if reply.committed == 1 {
        assert!(reply.proves_commit_of(request), "{place} proves its commit");
    }
    let framed = operation.is_result_framed() && !(operation == Operation::Register && body.is_empty());
    let payload = match framed.then(|| ResultSection::decode(body).unwrap()) {
        None => body,
        Some(ResultSection::Success(payload)) => payload,
        Some(ResultSection::Rejected(_)) => return,
    };
    let command = Command::of_header(request.operation().unwrap(), request.code.get()).unwrap();
    match command {
        Command::Login | Command::BindSession => same::<session::LoginReply>(payload, place),
        Command::GetClusterMetadata => same::<system::ClusterMetadata>(payload, place),
        Command::GetStreams => same::<stream::Streams>(payload, place),
        Command::GetMe => same::<system::ClientDetails>(payload, place),
        Command::SendMessages => same::<message::SendReply>(payload, place),
        Command::GetPartitionRoute => same::<message::PartitionRoute>(payload, place),
        Command::PollMessagesDeferred => {
            message::PollReply::from_bytes(payload)
                .unwrap()
                .validate()
                .unwrap_or_else(|error| panic!("{place}: {error}"));
        }
        Command::FetchMessages => {
            message::FetchReply::from_bytes(payload)
                .unwrap()
                .validate()
                .unwrap_or_else(|error| panic!("{place}: {error}"));
        }
        Command::CreateStream | Command::GetStream => optional::<stream::StreamDetails>(payload, place),
        Command::CreateTopic | Command::GetTopic => optional::<topic::TopicDetails>(payload, place),
        Command::GetConsumerOffset => optional::<offset::ConsumerOffset>(payload, place),
        Command::CreateConsumerGroup | Command::GetConsumerGroup => {
            optional::<group::ConsumerGroupDetails>(payload, place);
        }
        Command::SyncConsumerGroup => optional::<group::Assignment>(payload, place),
        _ => assert!(payload.is_empty(), "{place}: no decoder for the reply to {command}"),
    }
}
