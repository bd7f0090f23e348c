//! The layers together: what wins, what is refused, and that the defaults are what their comments say.

use std::path::PathBuf;
use std::time::Duration;

use super::error::Origin;
use super::layers::merge;
use super::{Config, Loaded, LoggingLevel};

fn load(file: &str, variables: &[(&str, &str)]) -> Result<Loaded, String> {
    let file = (!file.is_empty()).then(|| (Origin::File(PathBuf::from("test.toml")), file.to_owned()));
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    merge(file, variables).map_err(|error| error.to_string())
}

fn defaults() -> Config {
    load("", &[]).unwrap().config
}

#[test]
fn given_nothing_should_load_the_documented_defaults() {
    let config = defaults();
    assert_eq!(config.tcp.address, "127.0.0.1:8090".parse().unwrap());
    assert_eq!(config.logging.level, LoggingLevel::Info);
    assert_eq!(config.logging.max_file_size, 500_000_000);
    assert_eq!(config.heartbeat.interval, Duration::from_secs(30));
    assert_eq!(config.message_bus.max_message_size, 64 << 20);
    assert_eq!(config.sharding.deferred_poll_max_inflight_bytes, 64 << 20);
    assert_eq!(config.metadata.clients_table_max, 8192);
    assert_eq!(config.node.advertised_address, None);
    assert!(config.sharding.cpu_allocation >= 1);
}

#[test]
fn given_a_file_and_a_variable_should_let_the_variable_win() {
    let file = "[tcp]\naddress = \"127.0.0.1:1\"\n[sharding]\ncpu_allocation = 3\n";
    let loaded = load(
        file,
        &[
            ("IGGY_TCP_ADDRESS", "127.0.0.1:2"),
            ("IGGY_PARTITION_VALIDATE_CHECKSUM", "false"),
        ],
    )
    .unwrap();
    assert_eq!(loaded.config.tcp.address.port(), 2);
    assert_eq!(loaded.config.sharding.cpu_allocation, 3);
    assert!(!loaded.config.partition.validate_checksum);
}

#[test]
fn given_the_printed_configuration_should_load_to_the_same() {
    let first = load(
        "",
        &[("IGGY_SHARDING_CPU_ALLOCATION", "4"), ("IGGY_LOGGING_LEVEL", "warn")],
    )
    .unwrap();
    let again = load(&first.effective, &[]).unwrap();
    assert_eq!(first.config, again.config);
    assert_eq!(first.effective, again.effective);
}

#[test]
fn given_an_unknown_key_should_name_the_file_and_the_nearest_key() {
    let error = load("[tcp]\nadress = \"127.0.0.1:1\"\n", &[]).unwrap_err();
    assert_eq!(
        error,
        "the file test.toml sets the unknown key `tcp.adress`; did you mean `tcp.address`?"
    );
    let error = load("[quic]\n", &[]).unwrap_err();
    assert!(error.contains("unknown key `quic`"), "{error}");
}

#[test]
fn given_a_variable_should_refuse_it_only_when_it_names_a_section() {
    let error = load("", &[("IGGY_TCP_ADRESS", "127.0.0.1:1")]).unwrap_err();
    assert!(error.contains("IGGY_TCP_ADRESS"), "{error}");
    assert!(error.contains("did you mean `tcp.address`?"), "{error}");
    for spared in [
        "IGGY_USERNAME",
        "IGGY_TOKEN",
        "IGGY_KAFKA_ADDRESS",
        "IGGY_ROOT_PASSWORD",
        "IGGY_CONFIG_PATH",
        "TCP_ADRESS",
    ] {
        assert!(load("", &[(spared, "x")]).is_ok(), "{spared}");
    }
}

#[test]
fn given_a_removed_key_should_say_what_replaces_it() {
    for (file, variable) in [
        ("[consumer_group]\nsession_timeout = \"30 s\"\n", None),
        ("[system.logging]\nlevel = \"info\"\n", None),
        ("", Some(("IGGY_SYSTEM_PATH", "x"))),
        ("", Some(("IGGY_CONSUMER_GROUP_SESSION_TIMEOUT", "x"))),
    ] {
        let variables: Vec<_> = variable.into_iter().collect();
        let error = load(file, &variables).unwrap_err();
        assert!(error.contains("was removed"), "{error}");
    }
}

#[test]
fn given_values_out_of_bounds_should_name_key_value_and_bounds() {
    for (key, variable, value, allowed) in [
        (
            "logging.level",
            "IGGY_LOGGING_LEVEL",
            "loud",
            "off, error, warn, info, debug or trace",
        ),
        (
            "logging.max_file_size",
            "IGGY_LOGGING_MAX_FILE_SIZE",
            "1 KiB",
            "from 64 KiB to 4 GiB",
        ),
        (
            "heartbeat.interval",
            "IGGY_HEARTBEAT_INTERVAL",
            "2 days",
            "from 1s to 1h",
        ),
        ("heartbeat.interval", "IGGY_HEARTBEAT_INTERVAL", "30", "from 1s to 1h"),
        (
            "sharding.cpu_allocation",
            "IGGY_SHARDING_CPU_ALLOCATION",
            "0",
            "1 to 256",
        ),
        (
            "sharding.inbox_capacity",
            "IGGY_SHARDING_INBOX_CAPACITY",
            "63",
            "64 to 1048576",
        ),
        (
            "sharding.inbox_capacity",
            "IGGY_SHARDING_INBOX_CAPACITY",
            "many",
            "a whole number",
        ),
        ("tcp.enabled", "IGGY_TCP_ENABLED", "yes", "true or false"),
        (
            "tcp.address",
            "IGGY_TCP_ADDRESS",
            "localhost",
            "an IP address and a port",
        ),
        (
            "message_bus.max_message_size",
            "IGGY_MESSAGE_BUS_MAX_MESSAGE_SIZE",
            "65 MiB",
            "from 1 MiB to 64 MiB",
        ),
        (
            "partition.wal_bytes_max",
            "IGGY_PARTITION_WAL_BYTES_MAX",
            "1 MiB",
            "from 64 MiB to 64 GiB",
        ),
        (
            "node.advertised_address",
            "IGGY_NODE_ADVERTISED_ADDRESS",
            "0.0.0.0",
            "no wildcard",
        ),
        (
            "node.advertised_address",
            "IGGY_NODE_ADVERTISED_ADDRESS",
            "host:8090",
            "without a port",
        ),
        (
            "http.metrics.endpoint",
            "IGGY_HTTP_METRICS_ENDPOINT",
            "metrics",
            "begins with a slash",
        ),
        ("path", "IGGY_PATH", "", "not empty"),
    ] {
        let error = load("", &[(variable, value)]).unwrap_err();
        assert!(error.contains(&format!("`{key}` to `{value}`")), "{error}");
        assert!(error.contains(allowed), "{error}");
        assert!(error.contains(variable), "{error}");
    }
}

#[test]
fn given_settings_that_contradict_should_refuse() {
    for (variables, part) in [
        (vec![("IGGY_TCP_ENABLED", "false")], "no listener"),
        (vec![("IGGY_TCP_ADDRESS", "0.0.0.0:8090")], "node.advertised_address"),
        (vec![("IGGY_TCP_TLS_CERT_FILE", "a.pem")], "set together"),
        (
            vec![("IGGY_TCP_TLS_ENABLED", "true"), ("IGGY_TCP_TLS_SELF_SIGNED", "false")],
            "needs a certificate",
        ),
    ] {
        let error = load("", &variables).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    let advertised = [
        ("IGGY_TCP_ADDRESS", "0.0.0.0:8090"),
        ("IGGY_NODE_ADVERTISED_ADDRESS", "broker-1.example"),
    ];
    assert_eq!(
        load("", &advertised).unwrap().config.node.advertised_address.as_deref(),
        Some("broker-1.example")
    );
}

#[test]
fn given_a_file_that_is_no_toml_should_name_it() {
    let error = load("[tcp\n", &[]).unwrap_err();
    assert!(error.starts_with("the file test.toml is not valid TOML"), "{error}");
}

#[test]
fn given_the_embedded_file_should_comment_every_key() {
    let mut previous = "";
    for line in include_str!("../../config.toml").lines() {
        let is_key = line.contains(" = ") && !line.starts_with('#');
        assert!(!is_key || previous.starts_with('#'), "no comment above: {line}");
        previous = line;
    }
}
