//! Stored offsets and positions.

use cucumber::{given, then, when};
use iggy::prelude::*;

use crate::world::{BddWorld, DEADLINE};

fn consumer(name: &str) -> Consumer {
    Consumer::new(Identifier::named(name).unwrap())
}

impl BddWorld {
    pub async fn stored_offset(&self, name: &str, partition: u32) -> Option<u64> {
        let client = self.client();
        let stored = client
            .get_consumer_offset(&consumer(name), &self.stream_id(), &self.topic_id(), partition)
            .await;
        stored.unwrap().map(|stored| stored.stored_offset)
    }

    async fn store(&self, name: &str, offset: u64, partition: u32) -> Result<(), IggyError> {
        let client = self.client();
        client
            .store_consumer_offset(&consumer(name), &self.stream_id(), &self.topic_id(), partition, offset)
            .await
    }

    async fn store_checkpoint(&mut self, name: &str, checkpoint: Checkpoint) {
        let client = self.client();
        let stored = client
            .store_consumer_position(&consumer(name), &self.stream_id(), &self.topic_id(), &checkpoint)
            .await;
        self.keep(stored);
    }
}

#[given(regex = r#"^the consumer "(.*)" stored the offset (\d+) in partition (\d+)$"#)]
async fn stored(world: &mut BddWorld, name: String, offset: u64, partition: u32) {
    world.store(&name, offset, partition).await.unwrap();
}

#[when(regex = r#"^the consumer "(.*)" stores the offset (\d+) in partition (\d+)$"#)]
async fn store(world: &mut BddWorld, name: String, offset: u64, partition: u32) {
    let stored = world.store(&name, offset, partition).await;
    world.keep(stored);
}

#[when(regex = r#"^the offset of "(.*)" in partition (\d+) is deleted$"#)]
async fn delete(world: &mut BddWorld, name: String, partition: u32) {
    let client = world.client();
    let deleted = client
        .delete_consumer_offset(&consumer(&name), &world.stream_id(), &world.topic_id(), partition)
        .await;
    world.keep(deleted);
}

#[when(regex = r#"^the checkpoint of the poll is stored for "(.*)"$"#)]
async fn store_last(world: &mut BddWorld, name: String) {
    let checkpoint = world.polled().reply.checkpoint().expect("a checkpoint");
    world.store_checkpoint(&name, checkpoint).await;
}

#[when(regex = r#"^the checkpoint of message (\d+) of the poll is stored for "(.*)"$"#)]
async fn store_at(world: &mut BddWorld, index: usize, name: String) {
    let checkpoint = world.polled().reply.checkpoint_at(index).expect("a checkpoint");
    world.store_checkpoint(&name, checkpoint).await;
}

#[then(regex = r#"^the stored offset of "(.*)" in partition (\d+) is (\d+)$"#)]
async fn stored_is(world: &mut BddWorld, name: String, partition: u32, offset: u64) {
    world.expect_no_error();
    assert_eq!(world.stored_offset(&name, partition).await, Some(offset));
}

#[then(regex = r#"^the stored offset of "(.*)" in partition (\d+) comes to be (\d+)$"#)]
async fn stored_comes_to_be(world: &mut BddWorld, name: String, partition: u32, offset: u64) {
    world.expect_no_error();
    let comes = async { while world.stored_offset(&name, partition).await != Some(offset) {} };
    tokio::time::timeout(DEADLINE, comes).await.expect("the offset");
}

#[then(regex = r#"^the consumer "(.*)" has no stored offset in partition (\d+)$"#)]
async fn nothing_stored(world: &mut BddWorld, name: String, partition: u32) {
    world.expect_no_error();
    assert_eq!(world.stored_offset(&name, partition).await, None);
}
