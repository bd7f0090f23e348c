//! Fuzz targets: one function per decoder family. None may panic, loop or allocate beyond its input, whatever the bytes.
//!
//! Each also checks a law: what decodes must encode again to something that decodes to the same value.

#[cfg(test)]
mod corpus_tests;

use crate::batch::{BatchView, Records};
use crate::batch_slice::slice;
use crate::codec::{Decode, Encode};
use crate::header::{EvictionHeader, ReplyHeader, RequestHeader, frame_size};
use crate::option_catalog::{Scope, check_create, check_update};
use crate::reply::{self, metadata_record};
use crate::request::{self, message::SendMessages};
use crate::result_section::ResultSection;
use crate::user_headers::validate_user_headers;
use crate::{
    Consumer, Identifier, IggyByteSize, IggyDuration, Options, Partitioning, Permissions, PollingStrategy, UserHeaders,
};

/// A fuzz target.
pub type Target = fn(&[u8]);

/// Every target by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("headers", headers),
    ("batches", batches),
    ("primitives", primitives),
    ("requests", requests),
    ("message_requests", message_requests),
    ("replies", replies),
    ("metadata_changes", metadata_changes),
    ("options_and_headers", options_and_headers),
];

macro_rules! laws {
    ($bytes:ident: $($type:ty),* $(,)?) => { $(stable::<$type>($bytes);)* };
}

fn stable<T: for<'a> Decode<'a> + Encode>(bytes: &[u8]) {
    let Ok(value) = T::from_bytes(bytes) else { return };
    let once = value.to_bytes();
    let again = T::from_bytes(&once).unwrap_or_else(|error| panic!("an encoded value must decode: {error}"));
    assert_eq!(once, again.to_bytes(), "encoding is stable");
}

/// Frame headers.
pub fn headers(bytes: &[u8]) {
    if let Some(header) = bytes.first_chunk() {
        let _ = frame_size(header, 1 << 26);
    }
    if let Ok(request) = RequestHeader::view(bytes) {
        let _ = request.validate();
        if let Ok(reply) = ReplyHeader::view(bytes) {
            let _ = reply.proves_commit_of(request);
        }
    }
    if let Ok(eviction) = EvictionHeader::view(bytes) {
        let _ = (eviction.validate(), eviction.error());
    }
    let _ = ResultSection::decode(bytes);
}

/// Batches, slices of them and runs of them.
pub fn batches(bytes: &[u8]) {
    for record in Records::new(bytes).flatten() {
        let _ = record.verify();
    }
    let _ = slice(bytes, 1, 2, 1024, true);
    if let Ok(batch) = BatchView::parse(bytes) {
        let (first, last) = (batch.first_offset(), batch.last_offset());
        for from in [first, last] {
            let cut = slice(bytes, from, 1, usize::MAX, false)
                .expect("a valid batch")
                .expect("one message is there");
            let mut alone = cut.header.to_vec();
            alone.extend_from_slice(&bytes[cut.body]);
            let alone = BatchView::parse(&alone).expect("a slice is a batch");
            assert_eq!((alone.first_offset(), alone.message_count()), (from, 1));
            let sound = batch.verify_header().is_err() || alone.verify_header().is_ok();
            assert!(sound, "a slice of a sound batch is sound");
        }
    }
}

/// Identifiers and the like.
pub fn primitives(bytes: &[u8]) {
    laws!(bytes: Identifier, Consumer, PollingStrategy, Partitioning, Permissions);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = (text.parse::<IggyDuration>(), text.parse::<IggyByteSize>());
    }
}

/// Request bodies of everything but messages.
pub fn requests(bytes: &[u8]) {
    use request::{group, offset, partition, segment, session, stream, system, token, topic, user};
    laws!(bytes: session::Login, session::BindSession, stream::CreateStream, stream::GetStream, topic::CreateTopic, topic::GetTopic,
        partition::CreatePartitions, segment::DeleteSegments, group::CreateConsumerGroup, group::GetConsumerGroup,
        offset::GetConsumerOffset, offset::StoreConsumerOffset, offset::DeleteConsumerOffset, user::CreateUser,
        user::UpdatePermissions, user::ChangePassword, token::CreatePersonalAccessToken, system::GetSnapshot,
        system::DescribeOptions, system::UpdateResource, system::GetClient);
}

/// Sends, polls and fetches.
pub fn message_requests(bytes: &[u8]) {
    use request::message::{DeferredPoll, FetchMessages, GetPartitionRoute, PollMessages};
    laws!(bytes: DeferredPoll, FetchMessages, GetPartitionRoute, PollMessages);
    if let Ok(send) = SendMessages::from_bytes(bytes) {
        assert_eq!(send.batch_bytes, &bytes[send.batch_range.clone()]);
        let _ = send.batch().map(|batch| batch.verify());
    }
}

/// Reply bodies.
pub fn replies(bytes: &[u8]) {
    use reply::{group, message, offset, session, stream, system, topic, user};
    laws!(bytes: session::LoginReply, message::SendReply, message::PartitionRoute, offset::ConsumerOffset, group::Assignment,
        group::ConsumerGroupDetails, group::ConsumerGroups, stream::StreamDetails, stream::Streams, topic::TopicDetails,
        topic::Topics, user::UserDetails, user::Users, user::PersonalAccessTokens, user::RawPersonalAccessToken, system::Stats,
        system::ClusterMetadata, system::OptionDescriptions, system::ClientDetails, system::Clients);
    if let Ok(poll) = message::PollReply::from_bytes(bytes) {
        let _ = poll.validate();
    }
    if let Ok(fetch) = message::FetchReply::from_bytes(bytes) {
        let _ = fetch.validate();
    }
}

/// Metadata changes: pages, tokens and bodies.
pub fn metadata_changes(bytes: &[u8]) {
    use request::metadata_changes::{Cursor, GetMetadataChanges, PageToken};
    laws!(bytes: Cursor, GetMetadataChanges, PageToken, reply::metadata_changes::MetadataChanges);
    for kind in 0..=80 {
        for group in 0..=9 {
            let _ = metadata_record::Change::decode_body(group, kind, bytes);
        }
    }
    for group in 0..=9 {
        let _ = metadata_record::Item::decode_body(group, bytes);
    }
}

/// Options and user headers.
pub fn options_and_headers(bytes: &[u8]) {
    laws!(bytes: Options, UserHeaders);
    let _ = validate_user_headers(bytes);
    if let Ok(options) = Options::from_bytes(bytes) {
        for scope in [Scope::Topic, Scope::Stream, Scope::User] {
            if let Ok(canonical) = check_create(scope, &options) {
                assert_eq!(
                    check_create(scope, &canonical).as_ref(),
                    Ok(&canonical),
                    "canonical options stay as they are"
                );
            }
            let _ = check_update(scope, &options, &[]);
        }
    }
}
