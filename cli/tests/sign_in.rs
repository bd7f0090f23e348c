//! Contexts, tokens, login and logout, exit status and the forms of errors.

mod program;

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use program::{Program, ends_with};

fn line(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[tokio::test]
async fn given_a_context_should_need_no_options() {
    let program = Program::start().await;
    let address = program.server.tcp_address();
    let run = |text: &str, status| ends_with(program.bare().args(line(text)), status);
    run(
        &format!("context create here --tcp-server-address {address} -u iggy -p iggy"),
        0,
    );
    assert!(run("me", 1).1.contains("no credentials"));
    run("context use here", 0);
    run("me", 0);
    let shown = run("context show here", 0).0;
    assert!(
        shown.contains(&address.to_string()) && shown.contains("********"),
        "{shown}"
    );
    assert!(run("context use nowhere", 1).1.contains("there are: default, here"));
    run("context delete here", 0);
    assert!(run("me", 1).1.contains("no credentials"));
}

#[tokio::test]
async fn given_tokens_should_sign_in_with_them_until_deleted() {
    let program = Program::start().await;
    let address = program.server.tcp_address();
    let token = program.json(&["pat", "create", "laptop", "1h"])["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let by_token = |token: &str, status| {
        ends_with(
            program
                .bare()
                .args(line(&format!("--tcp-server-address {address} -t {token} me"))),
            status,
        )
    };
    by_token(&token, 0);
    program.succeeds(&["pat", "create", "stored", "none", "--store-token"]);
    ends_with(
        program
            .bare()
            .args(line(&format!("--tcp-server-address {address} -n stored me"))),
        0,
    );
    assert_eq!(program.json(&["pat", "list"]).as_array().unwrap().len(), 2);
    program.succeeds(&["pat", "delete", "laptop"]);
    assert!(by_token(&token, 1).1.contains("invalid_personal_access_token"));
    program.succeeds(&["pat", "delete", "stored"]);
    let forgotten = ends_with(
        program
            .bare()
            .args(line(&format!("--tcp-server-address {address} -n stored me"))),
        1,
    );
    assert!(forgotten.1.contains("no token `stored`"), "{}", forgotten.1);
}

#[tokio::test]
async fn given_a_login_should_last_until_the_logout() {
    let program = Program::start().await;
    let address = program.server.tcp_address();
    let run = |text: &str, status| {
        ends_with(
            program
                .bare()
                .args(["--tcp-server-address", &address.to_string()])
                .args(line(text)),
            status,
        )
    };
    program.succeeds(&["login", "1h"]);
    run("me", 0);
    assert!(run("session status", 0).0.contains("yes"));
    run("logout", 0);
    assert!(run("session status", 0).0.contains("no"));
    assert!(run("me", 1).1.contains("no credentials"));
    assert!(program.json(&["pat", "list"]).as_array().unwrap().is_empty());
    program.succeeds(&["logout"]);
}

#[tokio::test]
async fn given_variables_should_sign_in_unless_options_do() {
    let program = Program::start().await;
    let address = program.server.tcp_address().to_string();
    let run = |variables: &[(&str, &str)], options: &[&str], status| {
        let mut command = program.bare();
        command
            .args(["--tcp-server-address", &address])
            .args(options)
            .arg("me")
            .envs(variables.iter().copied());
        ends_with(&mut command, status)
    };
    run(&[("IGGY_USERNAME", "iggy"), ("IGGY_PASSWORD", "iggy")], &[], 0);
    run(
        &[("IGGY_USERNAME", "iggy"), ("IGGY_PASSWORD", "wrong")],
        &["-u", "iggy", "-p", "iggy"],
        0,
    );
    run(
        &[
            ("IGGY_USERNAME", "iggy"),
            ("IGGY_PASSWORD", "iggy"),
            ("IGGY_TOKEN", "wrong"),
        ],
        &[],
        1,
    );
    assert!(
        run(&[("IGGY_USERNAME", "iggy")], &[], 1)
            .1
            .contains("without IGGY_PASSWORD")
    );
}

#[tokio::test]
async fn given_errors_should_say_what_they_mean_in_both_forms() {
    let program = Program::start().await;
    program.succeeds(&["stream", "create", "shop"]);
    let error = program.fails(&["stream", "create", "shop"]);
    assert!(
        error.contains("stream_name_already_exists") && error.contains("nothing was changed"),
        "{error}"
    );
    let error = program.fails(&["--json", "stream", "create", "shop"]);
    let error: serde_json::Value = serde_json::from_str(&error).unwrap();
    assert_eq!(
        (
            error["refusal"]["code"].as_u64(),
            error["refusal"]["retryable"].as_bool()
        ),
        (Some(1012), Some(false))
    );
    // Whoever names what is not there must name something else; asking again is no help.
    for missing in [
        &["stream", "delete", "nowhere"][..],
        &["topic", "get", "nowhere", "orders"],
    ] {
        let error = program.fails(missing);
        assert!(error.contains("not") && !error.contains("trying again"), "{error}");
    }
    ends_with(&mut program.command(&["stream", "explode"]), 2);
    let script = ends_with(program.bare().args(["--generate", "bash"]), 0).0;
    assert!(
        script.contains("iggy__subcmd__stream") || script.contains("iggy__stream"),
        "no completion of stream"
    );
}

#[tokio::test]
async fn given_no_server_should_give_up_and_say_where_it_was_looked_for() {
    let mut program = Program::start().await;
    program.succeeds(&["ping"]);
    program.server.stop().await.unwrap();
    let error = program.fails(&["--tcp-reconnection-max-retries", "0", "me"]);
    assert!(
        error.contains(&format!("cannot connect to {}", program.server.tcp_address())),
        "{error}"
    );
}

#[tokio::test]
async fn given_a_terminal_should_not_show_a_password_that_is_typed() {
    let program = Program::start().await;
    let line = format!(
        "{} --tcp-server-address {} -u iggy -p iggy user password iggy",
        env!("CARGO_BIN_EXE_iggy"),
        program.server.tcp_address()
    );
    // `script` gives the program a terminal and copies what stands on it.
    let mut command = Command::new("script");
    let mut running = command
        .args(["-qec", &line, "/dev/null"])
        .env("IGGY_HOME", program.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`script` of util-linux runs");
    let mut input = running.stdin.take().unwrap();
    let mut output = running.stdout.take().unwrap();
    let mut shown = Vec::new();
    for (question, answer) in [("Current password: ", "iggy\n"), ("New password: ", "newsecret\n")] {
        let mut byte = [0];
        while !shown.ends_with(question.as_bytes()) {
            assert_eq!(
                output.read(&mut byte).unwrap(),
                1,
                "{}",
                String::from_utf8_lossy(&shown)
            );
            shown.push(byte[0]);
        }
        input.write_all(answer.as_bytes()).unwrap();
    }
    output.read_to_end(&mut shown).unwrap();
    assert!(running.wait().unwrap().success());
    let shown = String::from_utf8_lossy(&shown);
    assert!(
        shown.contains("changed the password") && !shown.contains("newsecret"),
        "{shown}"
    );
}
