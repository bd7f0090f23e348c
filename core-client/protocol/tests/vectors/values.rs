//! What the bytes mean: decoded values against the readable form of the vectors.

use bytes::Bytes;
use iggy_protocol::batch::{self, BatchView};
use iggy_protocol::codec::Decode;
use iggy_protocol::partitioning::{key_hash, partition_of_key};
use iggy_protocol::reply::message::{PartitionRoute, PollReply, SendReply};
use iggy_protocol::request::message::{DeferredPoll, FetchMessages};
use iggy_protocol::request::session::{Credentials, Login};
use iggy_protocol::request::system::UpdateResource;
use iggy_protocol::{
    BatchBuilder, ErrorCode, EvictionHeader, Options, PackedVersion, ProducerSection, ReplyHeader, RequestHeader,
    UserHeaders, slice,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::rows::{Row, load, number, unhex};

fn rows(file: &str, kind: &str) -> Vec<Row> {
    let rows: Vec<_> = load(file).into_iter().filter(|row| row.kind == kind).collect();
    assert!(!rows.is_empty(), "{file} has rows of kind {kind}");
    rows
}

#[test]
fn given_the_error_vectors_when_compared_should_match_the_table_completely() {
    let rows = rows("errors.json", "error");
    assert_eq!(rows.len(), ErrorCode::ALL.len());
    for row in rows {
        let code = ErrorCode::known(row.number("/code") as u32).unwrap_or_else(|| panic!("{} is missing", row.name));
        assert_eq!(code.name(), row.value["name"], "{}", row.name);
        assert_eq!(code.code().to_le_bytes().to_vec(), row.bytes());
    }
}

#[test]
fn given_packed_versions_when_read_should_accept_exactly_our_own() {
    for row in rows("primitives.json", "packed_version") {
        let version = PackedVersion::parse(row.value["text"].as_str().unwrap()).unwrap();
        assert_eq!(u128::from(version.0), row.number("/packed"));
        assert_eq!(version.to_string(), row.value["text"].as_str().unwrap());
        assert_eq!(
            version.is_accepted(),
            row.value["accepted"].as_bool().unwrap(),
            "{}",
            row.name
        );
        assert_eq!(version.0.to_le_bytes().to_vec(), row.bytes());
    }
}

#[test]
fn given_keys_when_hashed_should_choose_the_partitions_of_the_vectors() {
    for row in load("partition_keys.json") {
        let bytes = row.bytes();
        match row.kind.as_str() {
            "xxh32_seed0_partition" => {
                assert_eq!(u128::from(key_hash(&bytes)), row.number("/hash"), "{}", row.name);
                for count in [1, 2, 3, 6, 10, 1000] {
                    let expected = row.number(&format!("/partition_of_{count}"));
                    assert_eq!(
                        partition_of_key(&bytes, count).map(u128::from),
                        Some(expected),
                        "{}",
                        row.name
                    );
                }
                assert_eq!(partition_of_key(&bytes, 0), None);
            }
            "xxh3_64_seed0" => assert_eq!(u128::from(xxh3_64(&bytes)), row.number("/hash"), "{}", row.name),
            "producer_id_of_session_and_index" => {
                let (session, index) = (row.number("/session") as u64, row.number("/index") as u32);
                let id = batch::producer_id(session, index).map(u128::from);
                let expected = row.value.get("producer_id").filter(|id| !id.is_null()).map(number);
                assert_eq!(id, expected, "{}", row.name);
            }
            "sequence_advance" => {
                let (base, count) = (row.number("/base") as u32, row.number("/count") as u32);
                assert_eq!(
                    u128::from(batch::next_sequence(base, count)),
                    row.number("/next"),
                    "{}",
                    row.name
                );
                assert_eq!(
                    u128::from(batch::last_sequence(base, count)),
                    row.number("/last"),
                    "{}",
                    row.name
                );
            }
            other => panic!("no test for kind '{other}'"),
        }
    }
}

fn producer(value: &serde_json::Value) -> Option<ProducerSection> {
    (!value.is_null()).then(|| ProducerSection {
        producer_id: number(&value["producer_id"]) as u64,
        epoch: number(&value["epoch"]) as u16,
        base_sequence: number(&value["base_sequence"]) as u32,
    })
}

#[test]
fn given_batch_vectors_when_built_and_stamped_should_give_their_bytes() {
    let mut stamped_rows = 0;
    for row in rows("messages.json", "batch") {
        let bytes = row.bytes();
        let batch = BatchView::parse(&bytes).unwrap();
        assert_eq!(u128::from(batch.header().base_offset.get()), row.number("/base_offset"));
        assert_eq!(
            u128::from(batch.header().batch_checksum.get()),
            row.number("/batch_checksum")
        );
        assert_eq!(batch.header().producer(), producer(&row.value["producer"]));
        let frames = row.value["frames"].as_array().unwrap();
        assert_eq!(frames.len(), batch.frames().count());
        let origin = row.number("/origin_timestamp") as u64;
        let mut builder = BatchBuilder::new();
        for (frame, expected) in batch.frames().zip(frames) {
            assert_eq!(u128::from(frame.checksum()), number(&expected["checksum"]));
            assert_eq!(frame.id(), number(&expected["id"]));
            let payload = unhex(expected["payload_hex"].as_str().unwrap());
            let headers = unhex(expected["user_headers_hex"].as_str().unwrap());
            assert_eq!((frame.payload(), frame.user_headers()), (&payload[..], &headers[..]));
            let time = origin + number(&expected["timestamp_delta"]) as u64;
            builder.push(frame.id(), &payload, &headers, time).unwrap();
        }
        if row.name.starts_with("batch_slice") {
            continue;
        }
        let mut built = builder.finish(producer(&row.value["producer"])).unwrap();
        if row.name.starts_with("batch_stamped") {
            stamped_rows += 1;
            let (offset, time) = (row.number("/base_offset") as u64, row.number("/base_timestamp") as u64);
            batch::stamp(&mut built, row.number("/partition_id") as u32, offset, time).unwrap();
        }
        assert_eq!(built.to_vec(), bytes, "{}", row.name);
    }
    assert!(stamped_rows > 0, "stamped rows were seen");
}

#[test]
fn given_a_stored_batch_when_sliced_should_give_the_bytes_of_the_vector() {
    let rows = rows("messages.json", "batch");
    let find = |name: &str| rows.iter().find(|row| row.name == name).unwrap().bytes();
    let stored = find("batch_stamped/3_mixed");
    let cut = slice(&stored, 101, 10, usize::MAX, true).unwrap().unwrap();
    let mut bytes = cut.header.to_vec();
    bytes.extend_from_slice(&stored[cut.body.clone()]);
    assert_eq!(bytes, find("batch_slice/last_two_of_three"));
    assert_eq!((cut.first_offset, cut.last_offset, cut.message_count), (101, 102, 2));
    BatchView::parse(&bytes).unwrap().verify().unwrap();

    let whole = slice(&stored, 0, 3, stored.len(), false).unwrap().unwrap();
    assert_eq!(
        (&whole.header[..], whole.body.clone()),
        (&stored[..256], 256..stored.len())
    );
    assert_eq!(slice(&stored, 103, 1, usize::MAX, true).unwrap(), None, "past the end");
    assert_eq!(slice(&stored, 100, 1, 256, false).unwrap(), None, "no room");
    let alone = slice(&stored, 100, 3, 256, true).unwrap().unwrap();
    assert_eq!(alone.message_count, 1, "an oversize first message comes alone");
    let two = slice(&stored, 100, 3, stored.len() - 1, false).unwrap().unwrap();
    assert_eq!((two.message_count, two.last_offset), (2, 101));
}

#[test]
fn given_checksum_inputs_when_hashed_should_give_the_checksums_of_the_vectors() {
    for kind in ["message_checksum", "batch_checksum"] {
        for row in rows("messages.json", kind) {
            assert_eq!(
                u128::from(xxh3_64(&row.bytes())),
                row.number("/checksum"),
                "{}",
                row.name
            );
        }
    }
}

#[test]
fn given_message_replies_when_decoded_should_hold_the_values_of_the_vectors() {
    for row in rows("messages.json", "partition_route_response") {
        let bytes = row.bytes();
        let route = PartitionRoute::from_bytes(&bytes).unwrap();
        assert_eq!(u128::from(route.incarnation), row.number("/incarnation"));
        assert_eq!(u128::from(route.metadata_op), row.number("/metadata_op"));
        assert_eq!(u128::from(route.view), row.number("/view"));
        assert_eq!(u128::from(route.partitions_count), row.number("/partitions_count"));
        assert_eq!(u128::from(route.primary_replica), row.number("/primary_replica"));
    }
    for row in rows("messages.json", "poll_messages_response") {
        let bytes = row.bytes();
        let reply = PollReply::from_bytes(&bytes).unwrap();
        assert_eq!(u128::from(reply.head.partition_id), row.number("/partition_id"));
        assert_eq!(u128::from(reply.head.current_offset), row.number("/current_offset"));
        assert_eq!(u128::from(reply.head.messages_count), row.number("/messages_count"));
        assert_eq!(
            u128::from(reply.head.context.incarnation),
            row.number("/context/incarnation")
        );
        assert_eq!(
            u128::from(reply.head.context.metadata_op),
            row.number("/context/metadata_op")
        );
    }
    for row in rows("messages.json", "send_messages_response") {
        let bytes = row.bytes();
        let reply = SendReply::from_bytes(&bytes).unwrap();
        assert_eq!(reply.confirmations.len(), row.value.as_array().unwrap().len());
        for (confirmation, expected) in reply.confirmations.iter().zip(row.value.as_array().unwrap()) {
            assert_eq!(u128::from(confirmation.base_offset), number(&expected["base_offset"]));
            assert_eq!(u128::from(confirmation.partition_id), number(&expected["partition_id"]));
        }
    }
}

#[test]
fn given_deferred_requests_when_decoded_should_hold_the_values_of_the_vectors() {
    for row in rows("messages.json", "deferred_poll_request") {
        let bytes = row.bytes();
        let poll = DeferredPoll::from_bytes(&bytes).unwrap();
        assert_eq!(u128::from(poll.wait_us), row.number("/wait_us"));
        assert_eq!(u128::from(poll.min_count), row.number("/min_count"));
        assert_eq!(u128::from(poll.max_bytes), row.number("/max_bytes"));
        assert_eq!(u128::from(poll.request_timeout_us), row.number("/request_timeout_us"));
    }
    for row in rows("messages.json", "fetch_messages_request") {
        let bytes = row.bytes();
        let fetch = FetchMessages::from_bytes(&bytes).unwrap();
        assert_eq!(u128::from(fetch.wait_us), row.number("/wait_us"));
        assert_eq!(u128::from(fetch.request_timeout_us), row.number("/request_timeout_us"));
        assert_eq!(u128::from(fetch.min_count), row.number("/min_count"));
        assert_eq!(u128::from(fetch.count), row.number("/count"));
        assert_eq!(fetch.ordinary_reply_limit() as u128, row.number("/reply_limit"));
        for (target, expected) in fetch.targets.iter().zip(row.value["targets"].as_array().unwrap()) {
            assert_eq!(u128::from(target.incarnation), number(&expected["incarnation"]));
            assert_eq!(
                u128::from(target.owner_generation),
                number(&expected["owner_generation"])
            );
        }
    }
}

#[test]
fn given_headers_when_viewed_should_hold_the_values_of_the_vectors() {
    for row in rows("session.json", "request_header") {
        let bytes = row.bytes();
        let header = RequestHeader::view(&bytes).unwrap();
        header
            .validate()
            .unwrap_or_else(|error| panic!("{}: {error}", row.name));
        assert_eq!(header.client.get(), row.number("/header/client"));
        assert_eq!(header.request_checksum.get(), row.number("/header/request_checksum"));
        assert_eq!(u128::from(header.request.get()), row.number("/header/request"));
        assert_eq!(u128::from(header.operation), row.number("/header/operation"));
        assert_eq!(u128::from(header.session.get()), row.number("/header/session"));
        assert_eq!(u128::from(header.code.get()), row.number("/header/code"));
        let context = header.partition_context();
        assert_eq!(
            u128::from(context.incarnation),
            row.number("/header/context/incarnation")
        );
        assert_eq!(
            u128::from(context.owner_generation),
            row.number("/header/context/owner_generation")
        );
        assert_eq!(
            u128::from(context.metadata_op),
            row.number("/header/context/metadata_op")
        );
    }
    for row in rows("session.json", "reply_header") {
        let bytes = row.bytes();
        let header = ReplyHeader::view(&bytes).unwrap();
        assert_eq!(u128::from(header.prefix.view.get()), row.number("/view"));
        assert_eq!(u128::from(header.prefix.replica), row.number("/replica"));
        assert_eq!(header.client.get(), row.number("/client"));
        assert_eq!(u128::from(header.op.get()), row.number("/op"));
        assert_eq!(u128::from(header.commit.get()), row.number("/commit"));
        assert_eq!(u128::from(header.status.get()), row.number("/status"));
        assert_eq!(u128::from(header.committed), row.number("/committed"));
        assert_eq!(
            u128::from(header.partition_incarnation.get()),
            row.number("/partition_incarnation")
        );
    }
    for row in rows("session.json", "eviction_header") {
        let bytes = row.bytes();
        let header = EvictionHeader::view(&bytes).unwrap();
        assert_eq!(u128::from(header.reason), row.number("/reason"));
        assert_eq!(u128::from(header.server_protocol_version.get()), row.number("/max"));
        assert_eq!(u128::from(header.server_protocol_version_min.get()), row.number("/min"));
    }
}

#[test]
fn given_login_bodies_when_decoded_should_tell_passwords_from_tokens() {
    for row in rows("session.json", "login_register_request") {
        let bytes = row.bytes();
        let login = Login::from_bytes(&bytes).unwrap();
        let Credentials::Password { username, password } = login.credentials else {
            panic!("{} has a password", row.name)
        };
        assert_eq!(username.as_str(), row.value["username"]);
        assert_eq!(password.expose(), row.value["password"]);
    }
    for row in rows("session.json", "login_register_with_pat_request") {
        let bytes = row.bytes();
        let Credentials::Token(token) = Login::from_bytes(&bytes).unwrap().credentials else {
            panic!("{} has a token", row.name)
        };
        assert_eq!(token.expose(), row.value["token"]);
    }
}

#[test]
fn given_options_and_headers_when_decoded_should_hold_the_values_of_the_vectors() {
    for row in rows("options.json", "options") {
        let bytes = row.bytes();
        let options = Options::from_bytes(&bytes).unwrap();
        let expected = row.value.as_array().unwrap();
        assert_eq!(options.len(), expected.len(), "{}", row.name);
        for ((key, value), expected) in options.iter().zip(expected) {
            assert_eq!(key.as_str(), expected["key"]);
            assert_eq!(u128::from(value.kind().code()), number(&expected["kind"]));
            assert_eq!(
                value.bytes(),
                &Bytes::from(unhex(expected["value_hex"].as_str().unwrap()))
            );
        }
    }
    for row in rows("user_headers.json", "user_headers") {
        let bytes = row.bytes();
        let headers = UserHeaders::from_bytes(&bytes).unwrap();
        for expected in row.value.as_array().into_iter().flatten() {
            let Some(text) = expected.get("value_text").and_then(|text| text.as_str()) else {
                continue;
            };
            if number(&expected["key_kind"]) != 2 || number(&expected["value_kind"]) == 1 {
                continue;
            }
            let value = headers.get_str(expected["key"].as_str().unwrap()).unwrap();
            assert_eq!(value.to_string(), text, "{}", row.name);
        }
    }
}

#[test]
fn given_update_requests_when_decoded_should_hold_what_is_set_and_reset() {
    for row in rows("resources.json", "update_resource_request") {
        let bytes = row.bytes();
        let update = UpdateResource::from_bytes(&bytes).unwrap();
        assert_eq!(u128::from(update.resource.scope() as u8), row.number("/scope"));
        let reset: Vec<_> = update.reset.iter().map(|key| key.as_str().to_owned()).collect();
        assert_eq!(serde_json::json!(reset), row.value["reset"]);
        assert_eq!(update.set.len(), row.value["options"].as_array().unwrap().len());
    }
}
