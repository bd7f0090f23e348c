//! Every operation, by name and through JSON, against a real server.

use iggy::IggyClient;
use iggy::operations::OPERATIONS;
use iggy_ffi::{Failure, operations, settings};
use iggy_testkit::TestServer;
use serde_json::{Value, json};

/// Operations that bindings offer as objects or with messages, positions or bytes, and so bind by themselves.
const BOUND_NATIVELY: &[&str] = &[
    "builder",
    "builder_from_connection_string",
    "consumer",
    "consumer_group",
    "delete_consumer_position",
    "from_connection_string",
    "poll_messages",
    "producer",
    "reader",
    "send_binary_request",
    "send_binary_request_to_replica",
    "send_binary_request_to_replica_with_deadline",
    "send_binary_request_with_deadline",
    "send_messages",
    "send_producer_messages",
    "store_consumer_position",
    "subscribe_events",
];

#[test]
fn given_the_operations_of_the_core_when_compared_should_be_served_here_or_bound_natively() {
    for operation in OPERATIONS {
        let (served, native) = (
            operations::is_served(operation.name),
            BOUND_NATIVELY.contains(&operation.name),
        );
        assert!(served != native, "{}", operation.name);
    }
    for name in operations::NAMES.iter().copied().flatten() {
        assert!(OPERATIONS.iter().any(|operation| operation.name == *name), "{name}");
    }
}

struct Caller {
    client: IggyClient,
    called: Vec<String>,
}

impl Caller {
    async fn call(&mut self, operation: &str, arguments: Value) -> Value {
        self.called.push(operation.to_owned());
        let result = operations::invoke_text(&self.client, operation, &arguments.to_string()).await;
        let text = result.unwrap_or_else(|failure| panic!("{operation}: {failure}"));
        serde_json::from_str(&text).unwrap()
    }

    async fn fails(&mut self, operation: &str, arguments: Value) -> Failure {
        let result = operations::invoke(&self.client, operation, arguments).await;
        result.expect_err(operation)
    }
}

async fn resources(caller: &mut Caller) {
    let created = caller.call("create_stream", json!({ "name": "orders" })).await;
    assert_eq!(created["name"], "orders");
    let id = &created["id"];
    let options = json!({ "message_expiry": "1h", "durability": "persisted", "segment_size": 1 << 20 });
    let topic = json!({ "stream": id, "name": "created", "partitions_count": 3, "options": options });
    let topic = caller.call("create_topic", topic).await;
    assert_eq!(topic["partitions"].as_array().unwrap().len(), 3);
    assert_eq!(topic["options"]["durability"], "persisted");
    let of_topic = json!({ "stream": "orders", "topic": "created" });
    assert_eq!(caller.call("get_topic", of_topic.clone()).await["id"], topic["id"]);
    assert_eq!(
        caller.call("get_topics", json!({ "stream": "orders" })).await[0]["name"],
        "created"
    );
    assert_eq!(
        caller.call("get_stream", json!({ "stream": id })).await["topics_count"],
        1
    );
    assert_eq!(caller.call("get_streams", json!({})).await[0]["name"], "orders");
    let count = json!({ "stream": "orders", "topic": "created", "count": 1 });
    caller.call("create_partitions", count.clone()).await;
    caller.call("delete_partitions", count).await;
    let segments = json!({ "stream": "orders", "topic": "created", "partition_id": 0, "count": 1 });
    caller.call("delete_segments", segments).await;
    let update = json!({ "stream": "orders", "topic": "created", "options": { "name": "placed" } });
    caller.call("update_topic", update).await;
    let update = json!({ "stream": "orders", "options": { "name": "sales" } });
    caller.call("update_stream", update).await;
    assert_eq!(
        caller
            .call("get_topic", json!({ "stream": "sales", "topic": "created" }))
            .await,
        Value::Null
    );
}

async fn groups_and_offsets(caller: &mut Caller) {
    let group = json!({ "stream": "sales", "topic": "placed", "group": "billing" });
    let new = json!({ "stream": "sales", "topic": "placed", "name": "billing" });
    caller.call("create_consumer_group", new).await;
    caller.call("join_consumer_group", group.clone()).await;
    let found = caller.call("get_consumer_group", group.clone()).await;
    assert_eq!(found["members"][0]["partitions"], json!([0, 1, 2]));
    let assigned = caller.call("sync_consumer_group", group.clone()).await;
    assert_eq!(assigned["partitions"], json!([0, 1, 2]));
    let listed = caller
        .call("get_consumer_groups", json!({ "stream": "sales", "topic": "placed" }))
        .await;
    assert_eq!(listed[0]["members_count"], 1);
    caller.call("leave_consumer_group", group.clone()).await;
    caller.call("delete_consumer_group", group).await;

    let (stream, topic) = (
        iggy::Identifier::named("sales").unwrap(),
        iggy::Identifier::named("placed").unwrap(),
    );
    let messages = [
        iggy::IggyMessage::new("one").unwrap(),
        iggy::IggyMessage::new("two").unwrap(),
    ];
    let to = settings::partitioning(json!({ "partition": 1 })).unwrap();
    caller
        .client
        .send_messages(&stream, &topic, &to, &messages)
        .await
        .unwrap();
    let of = json!({ "consumer": { "id": "audit" }, "stream": "sales", "topic": "placed", "partition_id": 1 });
    let mut store = of.clone();
    store["offset"] = 1.into();
    caller.call("store_consumer_offset", store).await;
    assert_eq!(caller.call("get_consumer_offset", of.clone()).await["stored_offset"], 1);
    caller.call("delete_consumer_offset", of.clone()).await;
    assert_eq!(caller.call("get_consumer_offset", of).await, Value::Null);
    caller
        .call("delete_topic", json!({ "stream": "sales", "topic": "placed" }))
        .await;
    caller.call("delete_stream", json!({ "stream": "sales" })).await;
}

async fn access(caller: &mut Caller) {
    let permissions = json!({
        "global": ["read_streams"],
        "streams": { "7": { "granted": ["poll_messages"], "topics": { "1": ["send_messages"] } } },
    });
    let alice = json!({ "username": "alice", "password": "secret123", "permissions": permissions });
    assert_eq!(caller.call("create_user", alice).await["permissions"], permissions);
    let of_alice = json!({ "user": "alice" });
    caller
        .call(
            "update_permissions",
            json!({ "user": "alice", "permissions": { "global": ["read_users"] } }),
        )
        .await;
    let found = caller.call("get_user", of_alice.clone()).await;
    assert_eq!(found["permissions"]["global"], json!(["read_users"]));
    caller
        .call("update_user", json!({ "user": "alice", "status": "inactive" }))
        .await;
    assert_eq!(caller.call("get_users", json!({})).await[1]["status"], "inactive");
    let change = json!({ "user": "alice", "current": "secret123", "new": "another123" });
    caller.call("change_password", change).await;
    caller.call("delete_user", of_alice).await;

    let token = caller
        .call("create_personal_access_token", json!({ "name": "build" }))
        .await;
    assert_eq!(
        caller.call("get_personal_access_tokens", json!({})).await[0]["name"],
        "build"
    );
    caller.call("logout_user", json!({})).await;
    assert_eq!(caller.call("user_id", json!({})).await, Value::Null);
    caller
        .call("login_with_personal_access_token", json!({ "token": token }))
        .await;
    let signed_in = caller
        .call("login_user", json!({ "username": "iggy", "password": "iggy" }))
        .await;
    assert_eq!(caller.call("user_id", json!({})).await, signed_in["user_id"]);
    caller
        .call("delete_personal_access_token", json!({ "name": "build" }))
        .await;
}

async fn system(caller: &mut Caller) {
    caller.call("ping", json!({})).await;
    let me = caller.call("get_me", json!({})).await;
    let found = caller.call("get_client", json!({ "client_id": me["client_id"] })).await;
    assert_eq!(found["address"], me["address"]);
    assert_eq!(caller.call("get_clients", json!({})).await.as_array().unwrap().len(), 1);
    assert_eq!(
        caller.call("get_cluster_metadata", json!({})).await["nodes"][0]["role"],
        "leader"
    );
    assert_eq!(caller.call("get_connection_info", json!({})).await["protocol"], "tcp");
    assert_eq!(caller.call("heartbeat_interval", json!({})).await, 5_000_000);
    assert!(caller.call("next_producer_id", json!({})).await.is_u64());
    assert!(caller.call("get_stats", json!({})).await["process_id"].is_u64());
    let options = caller.call("describe_options", json!({ "scope": "topic" })).await;
    assert!(
        options
            .as_array()
            .unwrap()
            .iter()
            .any(|option| option["key"] == "message_expiry")
    );
    let archive = caller.call("snapshot", json!({ "types": ["test"] })).await;
    assert!(archive.as_str().unwrap().starts_with("UEs"), "base64 of a zip archive");
    let page = caller
        .call("get_metadata_changes", json!({ "start": "earliest", "limit": 2 }))
        .await;
    let next = json!({ "start": page["next"], "limit": 2 });
    assert_ne!(
        caller.call("get_metadata_changes", next).await["records"],
        page["records"]
    );
    assert_eq!(caller.call("uncertain_operations", json!({})).await, json!([]));
}

async fn refusals(caller: &mut Caller) {
    let refused = caller.fails("get_stream", json!({ "strema": "orders" })).await;
    assert!(refused.message.contains("strema"), "{refused}");
    let refused = caller.fails("get_stream", json!({ "stream": 4_294_967_296_u64 })).await;
    assert!(refused.message.contains("4294967295"), "{refused}");
    let refused = caller.fails("make_coffee", json!({})).await;
    assert!(refused.message.contains("make_coffee"), "{refused}");
    for operation in ["resolve_operation", "abandon_operation"] {
        let arguments = if operation == "resolve_operation" {
            json!({ "operation": 1, "deadline": 1_000_000 })
        } else {
            json!({ "operation": 1 })
        };
        caller.called.push(operation.to_owned());
        assert_eq!(caller.fails(operation, arguments).await.name, "operation_not_retained");
    }
    let missing = caller.fails("delete_stream", json!({ "stream": "nowhere" })).await;
    assert_eq!((missing.class.name(), missing.code), ("not_found", 1010));
}

#[tokio::test]
async fn given_a_server_when_every_operation_is_invoked_should_do_what_it_says() {
    let server = TestServer::start().await.unwrap();
    let settings = json!({ "connection_string": server.connection_string() });
    let client = settings::client(settings, None).unwrap();
    let mut caller = Caller {
        client,
        called: Vec::new(),
    };
    caller.call("connect", json!({})).await;
    resources(&mut caller).await;
    groups_and_offsets(&mut caller).await;
    access(&mut caller).await;
    system(&mut caller).await;
    refusals(&mut caller).await;
    caller.call("disconnect", json!({})).await;
    caller.call("shutdown", json!({})).await;
    for name in operations::NAMES.iter().copied().flatten() {
        assert!(
            caller.called.iter().any(|called| called == name),
            "{name} was not called"
        );
    }
}

#[test]
fn given_settings_that_cannot_be_when_read_should_name_what_is_wrong() {
    let refused = |settings: Value| settings::client(settings, None).unwrap_err().to_string();
    assert!(refused(json!({ "adress": "x" })).contains("adress"));
    assert!(refused(json!({ "server_address": "x" })).contains("host:port"));
    assert!(refused(json!({ "username": "iggy" })).contains("password"));
    assert!(refused(json!({ "encryption": { "cipher": "rot13", "key": "" } })).contains("aes-256-gcm"));
    assert!(settings::poll_options(json!({ "count": -1 })).is_err());
    assert!(settings::strategy(json!({ "offset": "x" })).is_err());
    assert!(settings::partitioning(json!({ "key": "" })).is_err());
}
