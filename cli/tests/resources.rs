//! Streams, topics, groups, users and the rest, through the real program and a real server.

mod program;

use program::{Program, ends_with};

#[tokio::test]
async fn given_a_stream_should_follow_it_from_creation_to_deletion() {
    let program = Program::start().await;
    assert!(program.succeeds(&["stream", "create", "shop"]).contains("`shop`"));
    assert_eq!(program.json(&["stream", "get", "shop"])["name"], "shop");
    program.succeeds(&["stream", "update", "shop", "-n", "store"]);
    assert_eq!(program.json(&["stream", "list"])[0]["name"], "store");
    assert!(
        program
            .fails(&["stream", "get", "shop"])
            .contains("the stream shop was not found")
    );
    assert!(
        program
            .fails(&["stream", "create", "store"])
            .contains("stream_name_already_exists")
    );
    assert_eq!(program.succeeds(&["-q", "stream", "delete", "store"]), "");
    assert_eq!(program.json(&["stream", "list"]), serde_json::json!([]));
    assert_eq!(program.succeeds(&["stream", "list"]), "none\n");
}

#[tokio::test]
async fn given_topic_options_should_show_what_was_set() {
    let program = Program::start().await;
    program.succeeds(&["stream", "create", "shop"]);
    let create = "topic create shop orders 2 gzip 1day 2h -m 2GiB --durability persisted --set segment_size=1048576";
    program.succeeds(&create.split(' ').collect::<Vec<_>>());
    let topic = program.json(&["topic", "get", "shop", "orders"]);
    assert_eq!(topic["partitions"].as_array().unwrap().len(), 2);
    let option = |topic: &serde_json::Value, key: &str| {
        let options = topic["options"].as_array().unwrap();
        options.iter().find(|option| option["key"] == key).unwrap().clone()
    };
    assert_eq!(option(&topic, "durability")["value"], "persisted");
    assert_eq!(option(&topic, "message_expiry")["value"], 26 * 3_600_000_000_u64);
    assert_eq!(option(&topic, "max_topic_size")["value"], 2_u64 << 30);
    assert_eq!(option(&topic, "segment_size")["origin"], "set");

    program.succeeds(&["topic", "update", "shop", "orders", "-e", "1h", "-r", "max_topic_size"]);
    let topic = program.json(&["topic", "get", "shop", "orders"]);
    assert_eq!(option(&topic, "message_expiry")["value"], 3_600_000_000_u64);
    assert_eq!(option(&topic, "max_topic_size")["value"], "unlimited");
    let twice = [
        "topic",
        "update",
        "shop",
        "orders",
        "-m",
        "1GiB",
        "--set",
        "max_topic_size=1GiB",
    ];
    assert!(program.fails(&twice).contains("given twice"));
    let fixed = ["topic", "update", "shop", "orders", "--set", "segment_size=2097152"];
    assert!(program.fails(&fixed).contains("option_not_updatable"));
}

#[tokio::test]
async fn given_partitions_and_segments_should_add_and_remove_them() {
    let program = Program::with_topic("1").await;
    program.succeeds(&["partition", "create", "shop", "orders", "2"]);
    assert_eq!(program.json(&["topic", "get", "shop", "orders"])["partitions_count"], 3);
    program.succeeds(&["partition", "delete", "shop", "orders", "1"]);
    assert_eq!(program.json(&["topic", "get", "shop", "orders"])["partitions_count"], 2);
    program.succeeds(&["segment", "delete", "shop", "orders", "0", "1"]);
}

#[tokio::test]
async fn given_groups_and_offsets_should_keep_them() {
    let program = Program::with_topic("1").await;
    program.succeeds(&["message", "send", "shop", "orders", "-p", "0", "a", "b", "c"]);
    program.succeeds(&["consumer-group", "create", "shop", "orders", "billing"]);
    assert_eq!(
        program.json(&["g", "get", "shop", "orders", "billing"])["members_count"],
        0
    );
    assert_eq!(program.json(&["g", "list", "shop", "orders"])[0]["name"], "billing");
    program.succeeds(&["consumer-offset", "set", "reader", "shop", "orders", "0", "1"]);
    let offset = program.json(&["o", "get", "reader", "shop", "orders", "0"]);
    assert_eq!(
        (offset["stored_offset"].as_u64(), offset["current_offset"].as_u64()),
        (Some(1), Some(2))
    );
    assert!(
        program
            .fails(&["o", "set", "reader", "shop", "orders", "0", "99"])
            .contains("invalid_offset")
    );
    assert!(
        program
            .fails(&["o", "get", "nobody", "shop", "orders", "0"])
            .contains("was not found")
    );
    program.succeeds(&["g", "delete", "shop", "orders", "billing"]);
}

#[tokio::test]
async fn given_a_user_should_do_what_it_is_allowed() {
    let program = Program::with_topic("1").await;
    program.succeeds(&["user", "create", "bob", "bobs-secret", "-s", "0:s_msg#0:p_msg"]);
    let bob = program.json(&["user", "get", "bob"]);
    assert_eq!(bob["permissions"][1]["granted"], serde_json::json!(["send_messages"]));
    assert_eq!(bob["permissions"][2]["scope"], "stream 0 topic 0");
    let as_bob = |password: &str, arguments: &[&str], status| {
        let address = program.server.tcp_address().to_string();
        let mut command = program.bare();
        command
            .args(["--tcp-server-address", &address, "-u", "bob", "-p", password])
            .args(arguments);
        ends_with(&mut command, status)
    };
    as_bob(
        "bobs-secret",
        &["message", "send", "shop", "orders", "-p", "0", "hello"],
        0,
    );
    assert!(as_bob("bobs-secret", &["stream", "list"], 1).1.contains("unauthorized"));
    program.succeeds(&["user", "password", "bob", "bobs-secret", "new-secret"]);
    assert!(as_bob("bobs-secret", &["me"], 1).1.contains("invalid_credentials"));
    as_bob("new-secret", &["me"], 0);
    program.reads(&["user", "password", "bob"], b"new-secret\nnewer-secret\n");
    as_bob("newer-secret", &["me"], 0);
    program.succeeds(&["user", "status", "bob", "inactive"]);
    as_bob("newer-secret", &["me"], 1);
    program.succeeds(&["user", "delete", "bob"]);
    assert_eq!(program.json(&["user", "list"]).as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn given_system_commands_should_answer() {
    let program = Program::with_topic("1").await;
    assert_eq!(program.json(&["stats"])["topics_count"], 1);
    for format in ["table", "list", "toml"] {
        assert!(
            program
                .succeeds(&["stats", "-o", format])
                .to_lowercase()
                .contains("topics"),
            "{format}"
        );
    }
    assert_eq!(program.json(&["me"])["user_id"], 0);
    let id = program.json(&["client", "list"])[0]["client_id"].to_string();
    // The list was read over a connection that is gone by now.
    assert!(program.fails(&["client", "get", &id]).contains("was not found"));
    assert_eq!(program.json(&["cluster", "metadata"])[0]["role"], "leader");
    let options = program.json(&["options", "topic"]);
    assert!(
        options
            .as_array()
            .unwrap()
            .iter()
            .any(|option| option["key"] == "message_expiry")
    );
    let file = program.json(&["snapshot", "-s", "test"])["file"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(std::fs::read(program.home().join(file)).unwrap().starts_with(b"PK"));
    let mut ping = program.bare();
    ping.args([
        "--tcp-server-address",
        &program.server.tcp_address().to_string(),
        "--json",
        "ping",
        "-c",
        "3",
    ]);
    let summary: serde_json::Value = serde_json::from_str(&ends_with(&mut ping, 0).0).unwrap();
    assert_eq!(summary["count"], 3);
}

#[tokio::test]
async fn given_changes_should_page_and_go_on_after_a_cursor() {
    let program = Program::with_topic("1").await;
    let pages = program.succeeds(&["metadata", "changes", "--groups", "streams,topics", "--limit", "1"]);
    let pages: Vec<serde_json::Value> = pages.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = pages
        .iter()
        .flat_map(|page| page["records"].as_array().unwrap())
        .collect();
    assert_eq!(
        kinds.iter().map(|record| &record["kind"]).collect::<Vec<_>>(),
        ["stream_created", "topic_created"]
    );
    let first = pages[0]["next"].as_str().unwrap();
    let rest = program.succeeds(&["md", "c", "--groups", "streams,topics", "--after", first]);
    assert!(
        !rest.contains("\"stream_created\"") && rest.contains("\"topic_created\""),
        "{rest}"
    );
    let current = program.succeeds(&["md", "c", "--from", "current", "--groups", "streams"]);
    assert!(current.contains("\"name\":\"shop\""), "{current}");
}
