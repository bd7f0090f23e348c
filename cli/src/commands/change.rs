//! Metadata changes, page by page.

use anyhow::Result;
use iggy_protocol::reply::metadata_changes::{ChangesStatus, MetadataChanges};
use iggy_protocol::reply::metadata_record::group;
use iggy_protocol::request::metadata_changes::{ChangesStart as Start, GetMetadataChanges};

use super::Session;
use crate::arguments::{ChangesArguments, ChangesGroup, ChangesStart, MetadataCommand};
use crate::output::print_text;
use iggy_view::changes;

impl From<ChangesGroup> for u8 {
    fn from(wanted: ChangesGroup) -> Self {
        match wanted {
            ChangesGroup::Streams => group::STREAMS,
            ChangesGroup::Topics => group::TOPICS,
            ChangesGroup::Partitions => group::PARTITIONS,
            ChangesGroup::ConsumerGroups => group::CONSUMER_GROUPS,
            ChangesGroup::ConsumerGroupMembers => group::CONSUMER_GROUP_MEMBERS,
            ChangesGroup::Users => group::USERS,
            ChangesGroup::PersonalAccessTokens => group::PERSONAL_ACCESS_TOKENS,
            ChangesGroup::Sessions => group::SESSIONS,
        }
    }
}

pub(super) async fn run(session: &Session, command: MetadataCommand) -> Result<()> {
    let MetadataCommand::Changes(arguments) = command;
    let start = match (arguments.after, arguments.from) {
        (Some(cursor), _) => Start::After(cursor),
        (None, ChangesStart::Earliest) => Start::Earliest,
        (None, ChangesStart::Latest) => Start::Latest,
        (None, ChangesStart::Current) => Start::Current(None),
    };
    let ChangesArguments {
        groups,
        since,
        until,
        limit,
        follow,
        interval,
        ..
    } = arguments;
    let groups = groups.into_iter().map(u8::from).collect();
    let mut query = GetMetadataChanges {
        start,
        since,
        until,
        limit,
        groups,
    };
    loop {
        let page = session.client.get_metadata_changes(&query).await?;
        print_text(&format!("{}\n", changes::page(&page)))?;
        match (next_start(&page), page.has_more) {
            (Some(next), true) => query.start = next,
            (next, false) if follow => {
                if let Some(next) = next {
                    query.start = next;
                }
                tokio::time::sleep(interval).await;
            }
            _ => return Ok(()),
        }
    }
}

/// Where the page after this one starts; `None`: ask for the same again.
fn next_start(page: &MetadataChanges) -> Option<Start> {
    if page.status == ChangesStatus::Behind {
        return None;
    }
    match (&page.token, &page.next) {
        (Some(token), _) => Some(Start::Current(Some(token.clone()))),
        (None, Some(cursor)) => Some(Start::After(*cursor)),
        (None, None) => None,
    }
}
