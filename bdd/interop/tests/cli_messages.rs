//! The published command line: messages, consumer offsets and consumer groups.

use interop::{PublishedCli, World};

async fn started(partitions: &str) -> (World, PublishedCli) {
    let world = World::start().await;
    let cli = PublishedCli::new(&world.server);
    cli.succeeds(&["stream", "create", "s1"]);
    cli.succeeds(&["topic", "create", "s1", "t1", partitions, "none"]);
    (world, cli)
}

#[tokio::test(flavor = "multi_thread")]
async fn given_sent_messages_should_poll_them_from_each_start() {
    let (_world, cli) = started("3").await;
    cli.succeeds(&["message", "send", "s1", "t1", "-p", "0", "hello", "world"]);
    let all = cli.succeeds(&["message", "poll", "s1", "t1", "0", "-f", "-m", "10"]);
    assert!(all.contains("hello") && all.contains("world"), "{all}");
    let second = cli.succeeds(&["message", "poll", "s1", "t1", "0", "-o", "1", "-m", "5"]);
    assert!(!second.contains("hello") && second.contains("world"), "{second}");
    let last = cli.succeeds(&["m", "p", "s1", "t1", "0", "-l", "-m", "1"]);
    assert!(!last.contains("hello") && last.contains("world"), "{last}");
    let next = ["message", "poll", "s1", "t1", "0", "-n", "-m", "1", "-a", "-c", "c9"];
    assert!(cli.succeeds(&next).contains("hello"));
    assert!(
        cli.succeeds(&next).contains("world"),
        "the first poll committed its offset"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn given_each_partitioning_should_arrive_somewhere() {
    let (world, cli) = started("3").await;
    cli.succeeds(&["message", "send", "s1", "t1", "-m", "key1", "keyed"]);
    cli.succeeds(&["message", "send", "s1", "t1", "rr1", "rr2", "rr3"]);
    let topic = interop::named("t1");
    let details = iggy::prelude::TopicClient::get_topic(&world.client, &interop::named("s1"), &topic).await;
    assert_eq!(details.unwrap().unwrap().messages_count, 4);
    assert!(
        cli.succeeds(&["message", "poll", "s1", "t1", "0", "-f", "-m", "10"])
            .contains("rr3")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn given_headers_should_show_them_when_asked() {
    let (_world, cli) = started("2").await;
    let headers = "k1:string:v1,k2:uint64:7,k3:bool:true";
    cli.succeeds(&["m", "s", "s1", "t1", "-p", "1", "-H", headers, "withheaders"]);
    let shown = cli.succeeds(&["message", "poll", "s1", "t1", "1", "-f", "-m", "10", "-s"]);
    for part in ["withheaders", "k1", "v1", "k2", "k3"] {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn given_messages_in_a_file_should_send_them_as_they_were_polled() {
    let (_world, cli) = started("2").await;
    cli.succeeds(&["message", "send", "s1", "t1", "-p", "0", "hello", "world"]);
    let file = cli.folder().join("messages");
    let file = file.to_str().unwrap();
    cli.succeeds(&[
        "message",
        "poll",
        "s1",
        "t1",
        "0",
        "-f",
        "-m",
        "10",
        "--output-file",
        file,
    ]);
    cli.succeeds(&["message", "send", "s1", "t1", "-p", "1", "--input-file", file]);
    let copied = cli.succeeds(&["message", "poll", "s1", "t1", "1", "-f", "-m", "10"]);
    assert!(copied.contains("hello") && copied.contains("world"), "{copied}");
}

#[tokio::test(flavor = "multi_thread")]
async fn given_consumer_offsets_should_set_show_and_refuse_them() {
    let (_world, cli) = started("1").await;
    cli.succeeds(&["message", "send", "s1", "t1", "-p", "0", "a", "b", "c"]);
    cli.succeeds(&["consumer-offset", "set", "c9", "s1", "t1", "0", "1"]);
    assert!(
        cli.succeeds(&["consumer-offset", "get", "c9", "s1", "t1", "0"])
            .contains('1')
    );
    assert!(
        cli.succeeds(&["o", "get", "nobody", "s1", "t1", "0"])
            .contains("not found")
    );
    cli.is_refused(
        &["consumer-offset", "set", "c9", "s1", "t1", "0", "999"],
        "Invalid offset",
    );
    cli.succeeds(&[
        "consumer-offset",
        "set",
        "-k",
        "external-group",
        "ext",
        "s1",
        "t1",
        "0",
        "1",
    ]);
    cli.succeeds(&["consumer-offset", "get", "-k", "external-group", "ext", "s1", "t1", "0"]);
    cli.succeeds(&["consumer-group", "create", "s1", "t1", "g1"]);
    cli.is_refused(
        &[
            "consumer-offset",
            "set",
            "-k",
            "consumer-group",
            "g1",
            "s1",
            "t1",
            "0",
            "1",
        ],
        "does not own partition",
    );
    cli.is_refused(
        &["consumer-offset", "get", "-k", "consumer-group", "g1", "s1", "t1", "0"],
        "does not own partition",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn given_consumer_groups_should_create_show_and_delete_them() {
    let (_world, cli) = started("1").await;
    cli.succeeds(&["consumer-group", "create", "s1", "t1", "g1"]);
    cli.is_refused(&["consumer-group", "create", "s1", "t1", "g1"], "already exists");
    assert!(
        cli.succeeds(&["consumer-group", "get", "s1", "t1", "g1"])
            .contains("g1")
    );
    assert!(cli.succeeds(&["g", "list", "s1", "t1"]).contains("g1"));
    cli.succeeds(&["consumer-group", "delete", "s1", "t1", "g1"]);
    assert!(
        cli.succeeds(&["consumer-group", "get", "s1", "t1", "g1"])
            .contains("not found")
    );
}
