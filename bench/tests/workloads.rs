//! Every workload, small, against a real server. What it measures here means nothing; that it measures everything does.

use std::process::Command;

use iggy_testkit::TestServer;
use serde_json::Value;

/// Runs the program and returns its report.
fn run(server: &TestServer, line: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_iggy-bench"))
        .args(["--json", "--connection-string", &server.connection_string()])
        .args(line.split(' '))
        .args(["--floor-directory", server.data_directory().to_str().unwrap()])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn bytes(side: &Value) -> u64 {
    side["bytes"].as_u64().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_server_when_each_workload_runs_should_move_all_that_was_asked_and_measure_its_floor() {
    let server = TestServer::start().await.unwrap();
    // A batch is 10 messages of 100 bytes.
    for (line, sent, read) in [
        ("pinned-producer -p 3", 3 * 5_000, 0),
        ("pinned-consumer -c 3", 0, 3 * 5_000),
        ("pinned-producer-and-consumer -p 2 -c 3", 2 * 5_000, 3 * 5_000),
        ("balanced-producer -p 3 -s 2 --partitions 3", 3 * 5_000, 0),
        ("balanced-consumer-group -c 4 -g 2 --partitions 5", 0, 4 * 5_000),
        (
            "balanced-producer-and-consumer-group -p 2 -c 3 --partitions 4",
            2 * 5_000,
            2 * 5_000,
        ),
        ("end-to-end-producing-consumer -p 2", 2 * 5_000, 0),
        ("end-to-end-producing-consumer-group -p 2", 2 * 5_000, 0),
        (
            "pinned-producer -p 2 --high-level-api --durability persisted",
            10_000,
            0,
        ),
        ("pinned-consumer -c 2 --high-level-api", 0, 10_000),
    ] {
        let report = run(&server, &format!("{line} -m 100 -P 10 -b 5 -w 0"));
        let workload = line.split(' ').next();
        assert_eq!(report["workload"].as_str(), workload);
        assert_eq!(bytes(&report["senders"]), sent, "{line}");
        // A read may bring more than what was missing.
        assert!(bytes(&report["readers"]) >= read, "{line}: {report}");
        let floor = &report["floor"]["before"];
        assert!(bytes(&floor[0]) + bytes(&floor[1]) > 0, "{line}");
        assert!(report["server"]["cpu_seconds"].is_number(), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_folder_when_a_workload_ends_should_write_a_page_that_needs_no_network() {
    let server = TestServer::start().await.unwrap();
    let folder = server.data_directory().join("report");
    let folder_text = folder.to_str().unwrap();
    run(
        &server,
        &format!("pp -p 1 -b 3 -w 0 --remark <here> --output {folder_text}"),
    );
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("remark: &lt;here&gt;"));
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http://") && !outside.contains("https://"), "{page}");
    let report: Value = serde_json::from_slice(&std::fs::read(folder.join("report.json")).unwrap()).unwrap();
    assert_eq!(report["senders"]["messages"], 750);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_row_of_the_suite_when_chosen_should_measure_it() {
    let server = TestServer::start().await.unwrap();
    let rows = run(&server, "suite --scale 0.01 --only persisted");
    assert_eq!(rows[0]["name"], "20 producers, persisted");
    assert!(rows[0]["ratio"].as_f64().unwrap() > 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_limits_that_make_no_sense_when_started_should_name_what_is_allowed() {
    let server = TestServer::start().await.unwrap();
    for (line, wanted) in [
        ("pp -m 9..5", "--message-size is a number from 1 to 64000000"),
        ("pp -m 1000000 -P 1000", "keep it under 60000000"),
        ("pp --transport quic", "possible values: tcp"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_iggy-bench"))
            .args(["--connection-string", &server.connection_string()])
            .args(line.split(' '))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(wanted), "{line}: {said}");
    }
}
