//! What one thread does for the links of its node: a share of the dialing, and the links that belong here.
//!
//! Link i of every peer runs on lane i modulo the number of lanes. The first lane also listens, and gives the signs of
//! life.

use crate::dialing;
use crate::link;
use crate::listening::{self, Arrival};
use crate::switchboard::Links;
use std::net::TcpListener;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::task::TaskTracker;

/// Connections that may wait for their lane.
const ARRIVALS_MAX: usize = 64;

/// See the module's page.
pub struct Lane {
    links: Arc<Links>,
    index: usize,
    arrivals: mpsc::Receiver<Arrival>,
    /// The way to every lane.
    lanes: Vec<mpsc::Sender<Arrival>>,
}

/// The lanes of a node.
pub fn lanes(links: &Arc<Links>, count: usize) -> Vec<Lane> {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| mpsc::channel(ARRIVALS_MAX)).unzip();
    let lane = |(index, arrivals)| Lane {
        links: Arc::clone(links),
        index,
        arrivals,
        lanes: senders.clone(),
    };
    receivers.into_iter().enumerate().map(lane).collect()
}

impl Lane {
    /// Runs until the links are stopped and the last one has ended. `listener` is for the first lane.
    ///
    /// # Errors
    ///
    /// When the listener cannot be used.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn run(mut self, listener: Option<TcpListener>) -> std::io::Result<()> {
        let tasks = TaskTracker::new();
        if let Some(listener) = listener {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let lanes = std::mem::take(&mut self.lanes);
            tasks.spawn(listening::listen(Arc::clone(&self.links), listener, lanes));
            tasks.spawn(pulse(Arc::clone(&self.links)));
        }
        self.dial(&tasks);
        loop {
            let arrival = tokio::select! {
                () = self.links.stop.cancelled() => break,
                arrival = self.arrivals.recv() => arrival,
            };
            let Some(arrival) = arrival else { break };
            tasks.spawn(link::serve_arrival(Arc::clone(&self.links), arrival));
        }
        tasks.close();
        tasks.wait().await;
        Ok(())
    }

    fn dial(&self, tasks: &TaskTracker) {
        let own = self.links.config.identity.replica;
        let nodes = self.links.config.addresses.len();
        let count = self.links.config.limits.connections_per_peer;
        let lanes = self.links.inbound.shards.len();
        for peer in usize::from(own) + 1..nodes {
            for link in (0..count).filter(|link| usize::from(*link) % lanes == self.index) {
                tasks.spawn(dialing::keep_up(Arc::clone(&self.links), peer as u8, link));
            }
        }
    }
}

/// Tells every peer, at every interval, that this node lives.
async fn pulse(links: Arc<Links>) {
    let mut ticks = tokio::time::interval(links.config.limits.pulse);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = links.stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        for peer in links.all_peers() {
            peer.beats.pulse();
            peer.bell.notify_one();
        }
    }
}
