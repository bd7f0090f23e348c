//! Chooses the nodes of new partitions.
//!
//! The first member of a partition leads it at first, so leaders and copies are spread apart: the leader goes to the ready
//! node that was given the fewest, each further copy to a rack that has none yet and there to the node with the fewest
//! copies. Which nodes are ready is a matter of the moment; the change records what was chosen.

use std::collections::{BTreeMap, BTreeSet};

use crate::metadata::Metadata;

/// A node that may store partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its id.
    pub node: u8,
    /// Its rack; where racks are unknown every node is one of its own.
    pub rack: Option<String>,
    /// Whether it may lead something new.
    pub is_ready: bool,
}

/// What a node was given.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    leads: u32,
    holds: u32,
}

/// Members for `count` new partitions with `factor` copies each, in member order.
pub(crate) fn place(metadata: &Metadata, places: &[Place], count: u32, factor: u32) -> Vec<Vec<u8>> {
    let mut loads: BTreeMap<u8, Load> = BTreeMap::new();
    for (_, _, partition) in metadata.partitions() {
        note(&mut loads, &partition.members);
    }
    let partition = |_| {
        let members = choose(places, &loads, factor as usize);
        note(&mut loads, &members);
        members
    };
    (0..count).map(partition).collect()
}

fn note(loads: &mut BTreeMap<u8, Load>, members: &[u8]) {
    for (index, node) in members.iter().enumerate() {
        let load = loads.entry(*node).or_default();
        load.leads += u32::from(index == 0);
        load.holds += 1;
    }
}

fn choose(places: &[Place], loads: &BTreeMap<u8, Load>, factor: usize) -> Vec<u8> {
    let load = |node: u8| loads.get(&node).copied().unwrap_or_default();
    let mut racks: BTreeSet<&str> = BTreeSet::new();
    let mut members: Vec<u8> = Vec::with_capacity(factor);
    while members.len() < factor {
        let rest = places.iter().filter(|place| !members.contains(&place.node));
        let next = if members.is_empty() {
            rest.min_by_key(|place| {
                let Load { leads, holds } = load(place.node);
                (!place.is_ready, leads, holds, place.node)
            })
        } else {
            rest.min_by_key(|place| {
                let Load { leads, holds } = load(place.node);
                let is_used = place.rack.as_deref().is_some_and(|rack| racks.contains(rack));
                (is_used, !place.is_ready, holds, leads, place.node)
            })
        };
        let Some(next) = next else { break };
        racks.extend(next.rack.as_deref());
        members.push(next.node);
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(racks: &[&str]) -> Vec<Place> {
        let place = |(node, rack): (u8, &&str)| Place {
            node,
            rack: Some(*rack).filter(|rack| !rack.is_empty()).map(str::to_owned),
            is_ready: true,
        };
        (0..).zip(racks).map(place).collect()
    }

    fn counts(placement: &[Vec<u8>], nodes: u8) -> Vec<(usize, usize)> {
        let count = |node| {
            let leads = placement.iter().filter(|members| members[0] == node).count();
            let holds = placement.iter().filter(|members| members.contains(&node)).count();
            (leads, holds)
        };
        (0..nodes).map(count).collect()
    }

    #[test]
    fn given_several_nodes_when_placing_should_spread_leaders_and_copies_evenly() {
        let placement = place(&Metadata::new(), &places(&["", "", "", "", ""]), 100, 3);
        let counts = counts(&placement, 5);
        assert!(counts.iter().all(|(leads, _)| *leads == 20), "{counts:?}");
        assert!(counts.iter().all(|(_, holds)| (59..=61).contains(holds)), "{counts:?}");
        assert!(placement.iter().all(|members| members.len() == 3));
    }

    #[test]
    fn given_a_node_that_is_not_ready_when_placing_should_let_the_others_lead() {
        let mut places = places(&["", "", ""]);
        places[0].is_ready = false;
        let placement = place(&Metadata::new(), &places, 6, 3);
        assert_eq!(counts(&placement, 3), [(0, 6), (3, 6), (3, 6)]);
        let placement = place(&Metadata::new(), &places, 6, 2);
        assert_eq!(counts(&placement, 3), [(0, 0), (3, 6), (3, 6)]);
    }

    #[test]
    fn given_no_ready_node_when_placing_should_spread_over_all() {
        let mut places = places(&["", "", ""]);
        for place in &mut places {
            place.is_ready = false;
        }
        let placement = place(&Metadata::new(), &places, 3, 1);
        assert_eq!(counts(&placement, 3), [(1, 1), (1, 1), (1, 1)]);
    }

    #[test]
    fn given_racks_when_placing_should_use_each_before_any_twice() {
        let racks = ["a", "a", "a", "b", "c"];
        let rack = |node: &u8| racks[usize::from(*node)];
        let placement = place(&Metadata::new(), &places(&racks), 30, 3);
        for members in &placement {
            let used: BTreeSet<&str> = members.iter().map(rack).collect();
            assert_eq!(used.len(), 3, "{members:?}");
        }
        // More copies than racks: what is left goes wherever there is room.
        let placement = place(&Metadata::new(), &places(&racks), 10, 4);
        assert!(placement.iter().all(|members| members.len() == 4));
    }
}
