//! Where partitions are served: a bounded cache with the merge rules of wire 14.3.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use iggy_protocol::Identifier;
use iggy_protocol::reply::message::PartitionRoute;

/// A partition as the caller spells it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RouteKey {
    /// The stream.
    pub stream: Identifier,
    /// The topic.
    pub topic: Identifier,
    /// The partition.
    pub partition_id: u32,
}

#[derive(Debug, Clone)]
struct Entry {
    route: PartitionRoute,
    epoch: u64,
    stale: bool,
    /// Views below this are known to be over.
    floor: u32,
    /// Who to ask first.
    hint: Option<u8>,
    looked_up: u64,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<RouteKey, Entry>,
    clock: u64,
}

/// Routes a client remembers at most.
const MAX_ROUTES: usize = 4096;

/// The routes a client knows.
#[derive(Debug, Default)]
pub struct Routes {
    table: Mutex<Table>,
}

impl Routes {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A route that may be used: not stale, of this session, and not older than the metadata this session has seen.
    pub fn usable(&self, key: &RouteKey, epoch: u64, watermark: u64) -> Option<PartitionRoute> {
        let table = self.table();
        let entry = table.entries.get(key)?;
        let usable = !entry.stale && entry.epoch == epoch && entry.route.metadata_op >= watermark;
        usable.then(|| entry.route.clone())
    }

    /// Partitions of a topic, from any usable route of it.
    pub fn partitions_count(&self, stream: &Identifier, topic: &Identifier, epoch: u64, watermark: u64) -> Option<u32> {
        let table = self.table();
        let of_topic = |key: &RouteKey| key.stream == *stream && key.topic == *topic;
        let usable = |entry: &Entry| !entry.stale && entry.epoch == epoch && entry.route.metadata_op >= watermark;
        table
            .entries
            .iter()
            .find(|(key, entry)| of_topic(key) && usable(entry))
            .map(|(_, entry)| entry.route.partitions_count)
    }

    /// Takes in an answer to a lookup. Returns the route to use, or `None` when the answer is older than what is known.
    pub fn merge(&self, key: &RouteKey, new: PartitionRoute, epoch: u64) -> Option<PartitionRoute> {
        let mut table = self.table();
        table.clock += 1;
        let clock = table.clock;
        let floor = match table.entries.get(key) {
            Some(old) if old.epoch == epoch && !accepts(old, &new) => return None,
            Some(old) if old.epoch == epoch && old.route.incarnation == new.incarnation => old.floor,
            _ => 0,
        };
        let mut route = new;
        if let Some(old) = table.entries.get(key)
            && old.epoch == epoch
            && old.route.incarnation == route.incarnation
            && old.route.metadata_op > route.metadata_op
        {
            // Another replica's metadata may lag behind what we know; its view of the partition does not.
            route.metadata_op = old.route.metadata_op;
            route.partitions_count = old.route.partitions_count;
        }
        table.entries.insert(
            key.clone(),
            Entry {
                route: route.clone(),
                epoch,
                stale: false,
                floor,
                hint: None,
                looked_up: clock,
            },
        );
        if table.entries.len() > MAX_ROUTES
            && let Some(oldest) = table
                .entries
                .iter()
                .min_by_key(|(_, entry)| entry.looked_up)
                .map(|(key, _)| key.clone())
        {
            table.entries.remove(&oldest);
        }
        Some(route)
    }

    /// A replica said it does not lead the partition: views up to the one that led there are over.
    pub fn refused_by_primary(&self, key: &RouteKey, view: u32) {
        if let Some(entry) = self.table().entries.get_mut(key) {
            entry.floor = entry.floor.max(view.saturating_add(1));
            entry.hint = Some(entry.route.primary_replica);
            entry.stale = true;
        }
    }

    /// The node to ask first about a partition.
    pub fn hint(&self, key: &RouteKey) -> Option<u8> {
        self.table().entries.get(key)?.hint
    }

    /// The route is wrong: all spellings of the same history of the same partition are looked up again.
    pub fn drop_route(&self, key: &RouteKey) {
        let mut table = self.table();
        let Some(incarnation) = table.entries.get(key).map(|entry| entry.route.incarnation) else {
            return;
        };
        for (other, entry) in &mut table.entries {
            if entry.route.incarnation == incarnation && other.partition_id == key.partition_id {
                entry.stale = true;
            }
        }
    }

    /// Forgets everything: the session ended.
    pub fn clear(&self) {
        self.table().entries.clear();
    }
}

fn accepts(old: &Entry, new: &PartitionRoute) -> bool {
    if old.route.incarnation != new.incarnation {
        return new.metadata_op >= old.route.metadata_op;
    }
    new.view >= old.floor && (new.view > old.route.view || new.primary_replica == old.route.primary_replica)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(partition_id: u32) -> RouteKey {
        RouteKey {
            stream: Identifier::numeric(1),
            topic: Identifier::numeric(2),
            partition_id,
        }
    }

    fn route(incarnation: u64, metadata_op: u64, view: u32, primary_replica: u8) -> PartitionRoute {
        PartitionRoute {
            incarnation,
            metadata_op,
            view,
            partitions_count: 6,
            primary_replica,
        }
    }

    #[test]
    fn given_a_refused_view_when_merging_should_accept_only_a_later_one() {
        let routes = Routes::default();
        routes.merge(&key(0), route(700, 910, 4, 2), 1).unwrap();
        routes.refused_by_primary(&key(0), 4);
        assert_eq!(routes.usable(&key(0), 1, 0), None);
        assert_eq!(
            routes.merge(&key(0), route(700, 910, 4, 2), 1),
            None,
            "the refused view"
        );
        assert_eq!(
            routes.merge(&key(0), route(700, 905, 5, 0), 1),
            Some(route(700, 910, 5, 0)),
            "newer facts stay"
        );
        assert_eq!(routes.usable(&key(0), 1, 910), Some(route(700, 910, 5, 0)));
        assert_eq!(
            routes.usable(&key(0), 1, 911),
            None,
            "the session has seen newer metadata"
        );
        assert_eq!(routes.usable(&key(0), 2, 0), None, "another session");
    }

    #[test]
    fn given_another_incarnation_when_merging_should_accept_it_by_metadata_position() {
        let routes = Routes::default();
        routes.merge(&key(0), route(700, 910, 9, 2), 1).unwrap();
        assert_eq!(routes.merge(&key(0), route(650, 900, 99, 1), 1), None);
        assert_eq!(
            routes.merge(&key(0), route(950, 960, 0, 1), 1),
            Some(route(950, 960, 0, 1))
        );
    }

    #[test]
    fn given_two_spellings_when_one_is_dropped_should_drop_both() {
        let routes = Routes::default();
        let named = RouteKey {
            stream: Identifier::named("a").unwrap(),
            ..key(0)
        };
        routes.merge(&key(0), route(700, 1, 1, 0), 1).unwrap();
        routes.merge(&named, route(700, 1, 1, 0), 1).unwrap();
        routes.merge(&key(1), route(700, 1, 1, 0), 1).unwrap();
        routes.drop_route(&named);
        assert_eq!(routes.usable(&key(0), 1, 0), None);
        assert!(
            routes.usable(&key(1), 1, 0).is_some(),
            "another partition of the same creation"
        );
    }

    #[test]
    fn given_more_routes_than_the_limit_when_merging_should_forget_the_oldest() {
        let routes = Routes::default();
        for partition in 0..=MAX_ROUTES as u32 {
            routes.merge(&key(partition), route(1, 1, 1, 0), 1).unwrap();
        }
        assert_eq!(routes.usable(&key(0), 1, 0), None);
        assert!(routes.usable(&key(1), 1, 0).is_some());
    }
}
