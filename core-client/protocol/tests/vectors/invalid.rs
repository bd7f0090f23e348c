//! Every row of `invalid.json` is refused, and the refusal names what was wrong.

use iggy_protocol::batch::{BatchError, BatchView};
use iggy_protocol::codec::Decode;
use iggy_protocol::reply::message::{FetchReply, PartitionRoute, SendReply};
use iggy_protocol::request::message::{DeferredPoll, FetchMessages};
use iggy_protocol::request::system::{DescribeOptions, UpdateResource};
use iggy_protocol::request::token::DeletePersonalAccessToken;
use iggy_protocol::{Consumer, Identifier, Options, Partitioning, PollingStrategy, ResultSection, UserHeaders};

use crate::rows::load;

fn refusal<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Option<String> {
    T::from_bytes(bytes).err().map(|error| error.to_string())
}

fn batch_refusal(bytes: &[u8]) -> Option<BatchError> {
    BatchView::parse(bytes).and_then(|batch| batch.verify()).err()
}

/// A word that must be in the refusal of each row, besides those of batches.
const EXPECTED: &[(&str, &str)] = &[
    ("unknown kind", "kind"),
    ("numeric length", "length"),
    ("empty string", "length 0"),
    ("UTF-8", "UTF-8"),
    ("truncated", "needs"),
    ("length", "length"),
    ("empty key", "length 0"),
    ("empty", "length 0"),
    ("kind 0", "value 0"),
    ("length 0", "length 0"),
    ("odd count", "value"),
    ("length above 255", "length 256"),
    ("truncated tail", "needs"),
    ("duplicate key", "named twice"),
    ("key kind", "option key kind"),
    ("wait above 600 s", "wait_us"),
    ("min_count", "min_count"),
    ("min_count above count", "min_count"),
    ("max_bytes", "max_bytes"),
    ("margin", "request_timeout_us"),
    ("timeout 0", "request_timeout_us"),
    ("timeout", "request_timeout_us"),
    ("trailing byte", ""),
    ("no targets", "targets"),
    ("duplicate partition", "named twice"),
    ("strategy", "target strategy"),
    ("target max_bytes above request", "target max_bytes"),
    ("margin also for wait 0", "request_timeout_us"),
    ("scope", "scope"),
    ("sets and resets nothing", "update"),
    ("key both set and reset", "update"),
    ("truncated table", "needs"),
    ("more than 1000 sections", "sections"),
    ("count 1 without an entry", "needs"),
];

#[test]
fn given_every_invalid_row_when_decoded_should_be_refused_for_its_reason() {
    for row in load("invalid.json") {
        let bytes = row.bytes();
        let reason = row.value["must_fail"].as_str().unwrap();
        if row.kind == "batch" {
            let error = batch_refusal(&bytes).unwrap_or_else(|| panic!("{} was accepted", row.name));
            let fits = match reason {
                "message checksum" => matches!(error, BatchError::MessageChecksum(_)),
                "batch checksum" => error == BatchError::BatchChecksum,
                "reserved must be zero" => error == BatchError::Reserved,
                "producer section" => error == BatchError::ProducerSection,
                "frames do not tile" => error == BatchError::FramesDoNotTile,
                "batch_length" => matches!(error, BatchError::LengthBelowHeader(_)),
                "short buffer" => matches!(error, BatchError::Short { .. }),
                "frame reserved must be zero" => error == BatchError::FrameReserved,
                other => panic!("no expectation for '{other}'"),
            };
            assert!(fits, "{}: {reason} was refused as {error}", row.name);
            continue;
        }
        let error = match row.kind.as_str() {
            "identifier" => refusal::<Identifier>(&bytes),
            "consumer" => refusal::<Consumer>(&bytes),
            "polling_strategy" => refusal::<PollingStrategy>(&bytes),
            "partitioning" => refusal::<Partitioning>(&bytes),
            "name" => refusal::<DeletePersonalAccessToken>(&bytes),
            "user_headers" => refusal::<UserHeaders>(&bytes),
            "options" => refusal::<Options>(&bytes),
            "deferred_poll_request" => refusal::<DeferredPoll>(&bytes),
            "fetch_messages_request" => refusal::<FetchMessages>(&bytes),
            "partition_route_response" => refusal::<PartitionRoute>(&bytes),
            "send_messages_response" => refusal::<SendReply>(&bytes),
            "describe_options_request" => refusal::<DescribeOptions>(&bytes),
            "update_resource_request" => refusal::<UpdateResource>(&bytes),
            "fetch_messages_response" => refusal::<FetchReply>(&bytes),
            "result_section" => ResultSection::decode(&bytes).err().map(|error| error.to_string()),
            other => panic!("no decoder for kind '{other}'"),
        };
        let error = error.unwrap_or_else(|| panic!("{} was accepted", row.name));
        if row.kind == "partition_route_response" {
            continue;
        }
        let (_, word) = EXPECTED
            .iter()
            .find(|(name, _)| *name == reason)
            .unwrap_or_else(|| panic!("no expectation for '{reason}'"));
        assert!(error.contains(word), "{}: {reason} was refused as '{error}'", row.name);
    }
}
