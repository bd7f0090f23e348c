//! Every row of a known kind decodes and encodes back to the same bytes; a kind without a codec fails the test.

use bytes::BytesMut;
use iggy_protocol::batch::BatchView;
use iggy_protocol::codec::{Decode, Encode};
use iggy_protocol::reply::message::{FetchReply, PollReply, put_fetch_table};
use iggy_protocol::reply::metadata_record::{Change, Item};
use iggy_protocol::reply::{self, group, message, metadata_changes, offset, stream, system, topic, user};
use iggy_protocol::request::message::SendMessages;
use iggy_protocol::request::{self as ask};
use iggy_protocol::{
    Consumer, EvictionHeader, Identifier, Options, PartitionContext, Partitioning, Permissions, PollingStrategy,
    ReplyHeader, RequestHeader, ResultSection, UserHeaders,
};

use crate::rows::{Row, load};

const FILES: &[&str] = &[
    "primitives.json",
    "user_headers.json",
    "messages.json",
    "offsets_groups.json",
    "options.json",
    "resources.json",
    "users.json",
    "system.json",
    "metadata_changes.json",
    "session.json",
];

fn again<'a, T: Decode<'a> + Encode>(bytes: &'a [u8]) -> Result<Vec<u8>, String> {
    T::from_bytes(bytes)
        .map(|value| value.to_bytes().to_vec())
        .map_err(|error| error.to_string())
}

#[test]
fn given_every_golden_row_when_decoded_and_encoded_should_give_the_same_bytes() {
    for file in FILES {
        for row in load(file) {
            let bytes = row.bytes();
            match round_trip(&row, &bytes) {
                Ok(encoded) => assert_eq!(encoded, bytes, "{file} {}", row.name),
                Err(error) => panic!("{file} {}: {error}", row.name),
            }
        }
    }
}

fn round_trip(row: &Row, bytes: &[u8]) -> Result<Vec<u8>, String> {
    macro_rules! by_kind {
        ($($($kind:literal)|+ => $type:ty,)*) => {
            match row.kind.as_str() {
                $($($kind)|+ => return again::<$type>(bytes),)*
                _ => {}
            }
        };
    }
    by_kind! {
        "identifier" | "get_stream_request" | "delete_stream_request" | "get_topics_request" | "get_user_request" | "delete_user_request" => Identifier,
        "consumer" => Consumer,
        "polling_strategy" => PollingStrategy,
        "partitioning" => Partitioning,
        "partition_context" => PartitionContext,
        "permissions" => Permissions,
        "name" | "delete_personal_access_token_request" => ask::token::DeletePersonalAccessToken,
        "user_headers" => UserHeaders,
        "options" => Options,
        "send_messages_response" => message::SendReply,
        "partition_route_request" => ask::message::GetPartitionRoute,
        "partition_route_response" => message::PartitionRoute,
        "poll_messages_request" => ask::message::PollMessages,
        "deferred_poll_request" => ask::message::DeferredPoll,
        "fetch_messages_request" => ask::message::FetchMessages,
        "get_consumer_offset_request" => ask::offset::GetConsumerOffset,
        "store_consumer_offset_request" => ask::offset::StoreConsumerOffset,
        "delete_consumer_offset_request" => ask::offset::DeleteConsumerOffset,
        "get_consumer_offset_response" => offset::ConsumerOffset,
        "create_consumer_group_request" => ask::group::CreateConsumerGroup,
        "get_consumer_groups_request" => ask::group::GetConsumerGroups,
        "get_consumer_group_request" => ask::group::GetConsumerGroup,
        "delete_consumer_group_request" => ask::group::DeleteConsumerGroup,
        "join_consumer_group_request" => ask::group::JoinConsumerGroup,
        "leave_consumer_group_request" => ask::group::LeaveConsumerGroup,
        "sync_consumer_group_request" => ask::group::SyncConsumerGroup,
        "sync_consumer_group_response" => group::Assignment,
        "consumer_group_details_response" => group::ConsumerGroupDetails,
        "consumer_groups_response" => group::ConsumerGroups,
        "create_stream_request" => ask::stream::CreateStream,
        "create_topic_request" => ask::topic::CreateTopic,
        "get_topic_request" => ask::topic::GetTopic,
        "delete_topic_request" => ask::topic::DeleteTopic,
        "create_partitions_request" => ask::partition::CreatePartitions,
        "delete_partitions_request" => ask::partition::DeletePartitions,
        "delete_segments_request" => ask::segment::DeleteSegments,
        "streams_response" => stream::Streams,
        "stream_details_response" => stream::StreamDetails,
        "topics_response" => topic::Topics,
        "topic_details_response" => topic::TopicDetails,
        "update_resource_request" => ask::system::UpdateResource,
        "client_version_info" => ask::session::ClientVersionInfo,
        "login_register_request" | "login_register_with_pat_request" => ask::session::Login,
        "bind_session_request" => ask::session::BindSession,
        "describe_options_request" => ask::system::DescribeOptions,
        "describe_options_response" => system::OptionDescriptions,
        "get_client_request" => ask::system::GetClient,
        "get_snapshot_request" => ask::system::GetSnapshot,
        "client_details_response" => system::ClientDetails,
        "clients_response" => system::Clients,
        "cluster_metadata_response" => system::ClusterMetadata,
        "stats_response" => system::Stats,
        "create_user_request" => ask::user::CreateUser,
        "update_permissions_request" => ask::user::UpdatePermissions,
        "user_details_response" => user::UserDetails,
        "users_response" => user::Users,
        "change_password_request" => ask::user::ChangePassword,
        "create_personal_access_token_request" => ask::token::CreatePersonalAccessToken,
        "raw_personal_access_token_response" => user::RawPersonalAccessToken,
        "personal_access_tokens_response" => user::PersonalAccessTokens,
        "metadata_change_cursor" => ask::metadata_changes::Cursor,
        "metadata_page_token" => ask::metadata_changes::PageToken,
        "metadata_changes_request" => ask::metadata_changes::GetMetadataChanges,
        "metadata_changes_response" => metadata_changes::MetadataChanges,
    }
    special(row, bytes)
}

fn special(row: &Row, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let text = |error: iggy_protocol::DecodeError| error.to_string();
    match row.kind.as_str() {
        "send_messages_request" => {
            let send = SendMessages::from_bytes(bytes).map_err(text)?;
            let batch = send.batch().map_err(|error| error.to_string())?;
            batch.verify().map_err(|error| error.to_string())?;
            let mut out = send.target.to_bytes();
            assert_eq!(send.batch_range, out.len()..bytes.len());
            out.extend_from_slice(batch.bytes());
            Ok(out.to_vec())
        }
        "batch" => {
            let batch = BatchView::parse(bytes).map_err(|error| error.to_string())?;
            batch.verify().map_err(|error| error.to_string())?;
            Ok(batch.bytes().to_vec())
        }
        "poll_messages_response" => {
            let reply = PollReply::from_bytes(bytes).map_err(text)?;
            reply.validate().map_err(|error| error.to_string())?;
            let mut out = reply.head.to_bytes();
            out.extend_from_slice(reply.records);
            Ok(out.to_vec())
        }
        "fetch_messages_response" => {
            let reply = FetchReply::from_bytes(bytes).map_err(text)?;
            reply.validate().map_err(|error| error.to_string())?;
            let mut out = BytesMut::new();
            let (sections, records): (Vec<_>, Vec<_>) = reply.sections.into_iter().unzip();
            put_fetch_table(&sections, &mut out);
            for bytes in records {
                out.extend_from_slice(bytes);
            }
            Ok(out.to_vec())
        }
        "login_register_response" => again::<reply::session::LoginReply>(bytes),
        "metadata_change_body" => {
            let (group, kind) = (row.number("/group") as u8, row.number("/kind") as u8);
            let change = Change::decode_body(group, kind, bytes).map_err(text)?;
            assert!(change.name().is_some(), "{} is a known kind", row.name);
            let mut out = BytesMut::new();
            change.encode_body(&mut out);
            Ok(out.to_vec())
        }
        "metadata_item_body" => {
            let item = Item::decode_body(row.number("/group") as u8, bytes).map_err(text)?;
            assert!(!matches!(item, Item::Unknown { .. }), "{} is a known group", row.name);
            let mut out = BytesMut::new();
            item.encode_body(&mut out);
            Ok(out.to_vec())
        }
        "request_header" => Ok(RequestHeader::view(bytes)
            .map_err(|error| error.to_string())?
            .as_array()
            .to_vec()),
        "reply_header" => Ok(ReplyHeader::view(bytes)
            .map_err(|error| error.to_string())?
            .as_array()
            .to_vec()),
        "eviction_header" => {
            let header = EvictionHeader::view(bytes).map_err(|error| error.to_string())?;
            header.validate().map_err(|error| error.to_string())?;
            Ok(header.as_array().to_vec())
        }
        "result_section" => match ResultSection::decode(bytes).map_err(text)? {
            ResultSection::Success(payload) => {
                assert_eq!(row.number("/code"), 0);
                let mut out = BytesMut::new();
                iggy_protocol::result_section::put_success(&mut out);
                out.extend_from_slice(payload);
                Ok(out.to_vec())
            }
            ResultSection::Rejected(code) => {
                assert_eq!(row.number("/code"), u128::from(code));
                let code = iggy_protocol::ErrorCode::known(code).expect("a known code");
                Ok(iggy_protocol::result_section::rejection(code).to_vec())
            }
        },
        // Their bytes are inputs of hashes or values of other files' tests: see `values.rs`.
        "message_checksum" | "batch_checksum" | "packed_version" => Ok(bytes.to_vec()),
        other => Err(format!("no codec is tested for kind '{other}'")),
    }
}
