//! Sending from arguments, files and standard input; polling once, to the end and on.

mod program;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use program::{Program, ends_with};

#[tokio::test]
async fn given_arguments_should_poll_them_from_each_start() {
    let program = Program::with_topic("1").await;
    program.succeeds(&[
        "message",
        "send",
        "shop",
        "orders",
        "-p",
        "0",
        "-H",
        "source:string:web",
        "a",
        "b",
        "c",
    ]);
    let poll = |rest: &str| {
        let line = format!("--json message poll shop orders 0 {rest}");
        let text = program.succeeds(&line.split_whitespace().collect::<Vec<_>>());
        let payload = |line: &str| {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            message["payload"].as_str().unwrap().to_owned()
        };
        text.lines().map(payload).collect::<Vec<_>>().concat()
    };
    assert_eq!(poll("--first -m 10"), "abc");
    assert_eq!(poll("--first"), "a");
    assert_eq!(poll("--last -m 2"), "bc");
    assert_eq!(poll("--offset 1 -m 2"), "bc");
    assert_eq!(poll("--offset 9 -m 2"), "");
    assert_eq!(poll("--timestamp 1h --all"), "abc");
    assert_eq!(poll("--next -m 2 --auto-commit -c reader"), "ab");
    assert_eq!(poll("--all --auto-commit -c reader"), "c");
    assert_eq!(poll("-c reader"), "");
    let shown = program.succeeds(&["message", "poll", "shop", "orders", "0", "--first", "--show-headers"]);
    assert!(shown.contains("source=web"), "{shown}");
}

#[tokio::test]
async fn given_a_text_file_should_come_back_byte_for_byte() {
    let program = Program::with_topic("1").await;
    let mut text = String::new();
    for number in 0..5_000 {
        text.extend(["line ", &number.to_string(), "\n"]);
        if number % 7 == 0 {
            text.push('\n');
        }
    }
    text.push_str("the last line has no end");
    std::fs::write(program.file("text"), &text).unwrap();
    let send = [
        "message",
        "send",
        "shop",
        "orders",
        "-p",
        "0",
        "--lines",
        "text",
        "--keep-line-ends",
    ];
    assert!(program.succeeds(&send).contains(&format!("with {} bytes", text.len())));
    let back = program.succeeds(&["message", "poll", "shop", "orders", "0", "--first", "--all", "--raw"]);
    assert_eq!(back, text);
}

#[tokio::test]
async fn given_standard_input_should_send_each_line() {
    let program = Program::with_topic("1").await;
    program.reads(&["message", "send", "shop", "orders", "-p", "0"], b"one\r\ntwo\nthree");
    let back = program.succeeds(&["message", "poll", "shop", "orders", "0", "--first", "--all"]);
    assert_eq!(back, "0\tone\n1\ttwo\n2\tthree\n");
    let mut empty_line = program.command(&["message", "send", "shop", "orders", "-p", "0", "--lines", "bad"]);
    std::fs::write(program.file("bad"), "four\n\nsix\n").unwrap();
    let (_, error) = ends_with(&mut empty_line, 1);
    assert!(
        error.contains("after 1 messages that were sent: bad, line 2: a message cannot be empty"),
        "{error}"
    );
}

#[tokio::test]
async fn given_messages_in_a_file_should_send_them_with_ids_and_headers() {
    let program = Program::with_topic("2").await;
    let send = [
        "message",
        "send",
        "shop",
        "orders",
        "-p",
        "0",
        "-H",
        "n:uint64:7,t:bool:true",
        "a",
        "b",
    ];
    program.succeeds(&send);
    let save = [
        "message",
        "poll",
        "shop",
        "orders",
        "0",
        "--first",
        "--all",
        "--output-file",
        "saved",
    ];
    assert!(program.succeeds(&save).contains("wrote 2 messages"));
    program.succeeds(&["message", "send", "shop", "orders", "-p", "1", "--input-file", "saved"]);
    let of = |partition: &str| {
        let text = program.succeeds(&[
            "--json", "message", "poll", "shop", "orders", partition, "--first", "--all",
        ]);
        let message = |line: &str| {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            (
                message["id"].clone(),
                message["headers"].clone(),
                message["payload"].clone(),
            )
        };
        text.lines().map(message).collect::<Vec<_>>()
    };
    assert_eq!(of("0").len(), 2);
    assert_eq!(of("0"), of("1"));
}

#[tokio::test]
async fn given_no_partition_should_choose_one_by_turn_or_by_key() {
    let program = Program::with_topic("3").await;
    program.reads(
        &["message", "send", "shop", "orders", "--batch-length", "1"],
        b"a\nb\nc\n",
    );
    program.succeeds(&[
        "message",
        "send",
        "shop",
        "orders",
        "-m",
        "customer-1",
        "keyed",
        "again",
    ]);
    let counts: Vec<_> = program.json(&["topic", "get", "shop", "orders"])["partitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|partition| partition["messages_count"].as_u64().unwrap())
        .collect();
    let mut sorted = counts.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [1, 1, 3], "{counts:?}");
}

#[tokio::test]
async fn given_a_follower_should_print_what_comes_and_end_well_when_interrupted() {
    let program = Program::with_topic("1").await;
    let mut command = program.command(&["message", "poll", "shop", "orders", "0", "--first", "--follow"]);
    let mut follower = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    for text in ["first", "second"] {
        program.succeeds(&["message", "send", "shop", "orders", "-p", "0", text]);
        assert!(lines.next().unwrap().unwrap().ends_with(text));
    }
    let interrupted = std::process::Command::new("kill")
        .args(["-INT", &follower.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    assert_eq!(follower.wait().unwrap().code(), Some(0));
    assert!(lines.next().is_none());
}

#[tokio::test]
async fn given_a_follower_whose_server_hangs_when_interrupted_should_not_wait_for_the_deadline_of_a_call() {
    let program = Program::with_topic("1").await;
    program.succeeds(&["message", "send", "shop", "orders", "-p", "0", "first"]);
    let mut command = program.command(&["message", "poll", "shop", "orders", "0", "--first", "--follow"]);
    let mut follower = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().ends_with("first"));
    let signal = |name: &str, process: u32| {
        let mut kill = std::process::Command::new("kill");
        assert!(kill.args([name, &process.to_string()]).status().unwrap().success());
    };
    signal("-STOP", program.server.process_id().unwrap());
    signal("-INT", follower.id());
    let ended = follower.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("the server did not answer within 5s"), "{said}");
}

#[tokio::test]
async fn given_a_key_should_seal_what_is_stored() {
    let program = Program::with_topic("1").await;
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    program.succeeds(&[
        "--encryption-key",
        key,
        "message",
        "send",
        "shop",
        "orders",
        "-p",
        "0",
        "secret",
    ]);
    let poll = ["message", "poll", "shop", "orders", "0", "--first"];
    assert!(!program.succeeds(&poll).contains("secret"));
    assert!(
        program
            .succeeds(&[&["--encryption-key", key], &poll[..]].concat())
            .contains("secret")
    );
}
