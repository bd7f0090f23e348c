//! The published command line: streams, topics, partitions, segments and options.

use interop::{PublishedCli, World};

#[tokio::test(flavor = "multi_thread")]
async fn given_stream_commands_should_do_as_they_say() {
    let world = World::start().await;
    let cli = PublishedCli::new(&world.server);
    cli.succeeds(&["stream", "create", "s1"]);
    cli.succeeds(&["s", "c", "s2", "--stream-id", "77"]);
    let listed = cli.succeeds(&["stream", "list"]);
    assert!(listed.contains("s1") && listed.contains("s2"), "{listed}");
    assert!(cli.succeeds(&["stream", "list", "-l", "list"]).contains("s2"));
    assert!(cli.succeeds(&["stream", "get", "s2"]).contains("s2"));
    assert!(
        cli.succeeds(&["stream", "get", "0"]).contains("s1"),
        "ids start at 0 and --stream-id is not used"
    );
    cli.is_refused(&["stream", "create", "s1"], "already exists");
    cli.succeeds(&["stream", "update", "s2", "-n", "renamed"]);
    assert!(cli.succeeds(&["stream", "get", "renamed"]).contains("renamed"));
    cli.is_refused(
        &["stream", "update", "renamed", "--set", "foo=bar"],
        "Unsupported option key",
    );
    cli.is_refused(&["stream", "update", "renamed", "-r", "name"], "cannot be reset");
    cli.is_refused(&["stream", "delete", "nope"], "was not found");
    cli.succeeds(&["stream", "delete", "renamed"]);
    assert!(!cli.succeeds(&["stream", "list"]).contains("renamed"));
    assert!(cli.succeeds(&["stream", "get", "renamed"]).contains("not found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_stream_key_while_encryption_is_not_configured_should_be_refused() {
    let world = World::start().await;
    let cli = PublishedCli::new(&world.server);
    let key = cli.folder().join("key");
    std::fs::write(&key, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    cli.is_refused(
        &["stream", "create", "sealed", "--stream-key-file", key.to_str().unwrap()],
        "requires a server encryption key",
    );
    assert!(!cli.succeeds(&["stream", "list"]).contains("sealed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn given_topic_commands_should_do_as_they_say() {
    let world = World::start().await;
    let cli = PublishedCli::new(&world.server);
    cli.succeeds(&["stream", "create", "s1"]);
    cli.succeeds(&["topic", "create", "s1", "t1", "3", "none"]);
    cli.succeeds(&[
        "topic",
        "create",
        "s1",
        "t2",
        "2",
        "gzip",
        "1day",
        "2h",
        "-m",
        "2GiB",
        "--durability",
        "persisted",
        "--consumer-offset-durability",
        "persisted",
        "--set",
        "segment_size=1048576",
    ]);
    let listed = cli.succeeds(&["topic", "list", "s1"]);
    assert!(listed.contains("t1") && listed.contains("t2"), "{listed}");
    let details = cli.succeeds(&["topic", "get", "s1", "t2"]);
    for part in ["t2", "gzip", "persisted"] {
        assert!(details.to_lowercase().contains(part), "no {part} in\n{details}");
    }
    assert!(cli.succeeds(&["topic", "get", "0", "1"]).contains("t2"));
    cli.succeeds(&["topic", "update", "s1", "t2", "-n", "t2b", "-e", "1h", "-m", "3GiB"]);
    cli.succeeds(&["topic", "update", "s1", "t2b", "-r", "message_expiry"]);
    cli.succeeds(&["topic", "update", "s1", "t2b", "--set", "max_topic_size=5368709120"]);
    cli.is_refused(
        &["topic", "update", "s1", "t2b", "--set", "segment_size=2097152"],
        "cannot be updated after creation",
    );
    cli.succeeds(&["topic", "get", "s1", "t2b"]);
    cli.is_refused(&["topic", "create", "s1", "t1", "1", "none"], "already exists");
    cli.is_refused(&["topic", "create", "nope", "t1", "1", "none"], "was not found");
    cli.succeeds(&["topic", "delete", "s1", "t2b"]);
    assert!(cli.succeeds(&["topic", "get", "s1", "t2b"]).contains("not found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn given_partition_and_segment_commands_should_resize_what_may_be_resized() {
    let world = World::start().await;
    let cli = PublishedCli::new(&world.server);
    cli.succeeds(&["stream", "create", "s1"]);
    cli.succeeds(&["topic", "create", "s1", "t1", "1", "none"]);
    cli.succeeds(&[
        "topic",
        "create",
        "s1",
        "fixed",
        "1",
        "none",
        "--set",
        "partition_resize_policy=fixed",
    ]);
    cli.succeeds(&["partition", "create", "s1", "t1", "2"]);
    cli.succeeds(&["message", "send", "s1", "t1", "-p", "2", "hello"]);
    cli.succeeds(&["p", "delete", "s1", "t1", "1"]);
    cli.is_refused(&["message", "send", "s1", "t1", "-p", "2", "hello"], "was not found");
    cli.is_refused(&["partition", "create", "s1", "fixed", "1"], "resizing is disabled");
    cli.succeeds(&["segment", "delete", "s1", "t1", "0", "1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_each_scope_should_print_its_options() {
    let world = World::start().await;
    let cli = PublishedCli::new(&world.server);
    for (scope, key) in [("topic", "message_expiry"), ("stream", "name"), ("user", "status")] {
        assert!(cli.succeeds(&["options", scope]).contains(key), "{scope}");
    }
}
