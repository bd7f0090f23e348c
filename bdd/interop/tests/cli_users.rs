//! The published command line: users, permissions, tokens, sign-in and contexts.

use interop::{PublishedCli, World};

#[tokio::test(flavor = "multi_thread")]
async fn given_user_commands_should_do_as_they_say() {
    let world = World::start().await;
    let cli = PublishedCli::new(&world.server);
    cli.succeeds(&[
        "user",
        "create",
        "bob",
        "secretpw",
        "-u",
        "active",
        "-g",
        "poll_messages,send_messages",
    ]);
    cli.succeeds(&[
        "user",
        "create",
        "eve",
        "secretpw",
        "-s",
        "0:r_str,p_msg#1:s_msg,m_top#2",
        "-s",
        "1:m_str",
    ]);
    assert!(cli.succeeds(&["user", "get", "eve"]).contains("eve"));
    assert!(cli.succeeds(&["user", "get", "bob"]).contains("bob"));
    let listed = cli.succeeds(&["user", "list"]);
    assert!(
        ["iggy", "bob", "eve"].iter().all(|name| listed.contains(name)),
        "{listed}"
    );
    cli.succeeds(&["user", "name", "bob", "bobby"]);
    cli.succeeds(&["user", "status", "bobby", "inactive"]);
    cli.succeeds(&["user", "status", "bobby", "active"]);
    cli.succeeds(&["user", "password", "bobby", "secretpw", "newpw123"]);
    cli.succeeds(&["user", "permissions", "eve", "-g", "m_srv"]);
    cli.succeeds(&["user", "permissions", "eve"]);
    cli.succeeds(&["user", "delete", "eve"]);
    assert!(cli.succeeds(&["user", "get", "eve"]).contains("not found"));
    let bobby = cli.with_credentials(&["-u", "bobby", "-p", "newpw123"]);
    bobby.succeeds(&["me"]);
    bobby
        .with_credentials(&["-u", "bobby", "-p", "secretpw"])
        .is_refused(&["me"], "Invalid credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn given_permissions_should_allow_what_they_name_and_no_more() {
    let world = World::start().await;
    let root = PublishedCli::new(&world.server);
    root.succeeds(&["stream", "create", "s1"]);
    root.succeeds(&["topic", "create", "s1", "t1", "1", "none"]);
    root.succeeds(&["message", "send", "s1", "t1", "-p", "0", "hello"]);
    root.succeeds(&["user", "create", "bob", "secretpw", "-g", "poll_messages,send_messages"]);
    let bob = root.with_credentials(&["-u", "bob", "-p", "secretpw"]);
    bob.is_refused(&["stream", "list"], "Unauthorized");
    bob.is_refused(&["topic", "create", "s1", "t2", "1", "none"], "Unauthorized");
    assert!(
        bob.succeeds(&["message", "poll", "s1", "t1", "0", "-f"])
            .contains("hello")
    );
    bob.with_credentials(&["-u", "bob", "-p", "wrong"])
        .is_refused(&["stream", "list"], "Invalid credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn given_token_commands_should_create_list_and_sign_in() {
    let world = World::start().await;
    let root = PublishedCli::new(&world.server);
    let created = root.succeeds(&["pat", "create", "tok1", "1h"]);
    let token = created
        .split_whitespace()
        .map(|word| word.trim_matches('"'))
        .find(|word| word.len() >= 40);
    let token = token.unwrap_or_else(|| panic!("no token in\n{created}")).to_owned();
    root.succeeds(&["pat", "create", "tok2", "none"]);
    let listed = root.succeeds(&["pat", "list"]);
    assert!(listed.contains("tok1") && listed.contains("tok2"), "{listed}");
    root.is_refused(&["pat", "create", "tok1"], "already exists");
    let by_token = root.with_credentials(&["-t", &token]);
    by_token.succeeds(&["me"]);
    let root = by_token.with_credentials(&["-u", "iggy", "-p", "iggy"]);
    // Without a system keyring the program ends with 1 after the server has deleted the token.
    root.run(&["pat", "delete", "tok1"]);
    assert!(!root.succeeds(&["pat", "list"]).contains("tok1"));
    root.with_credentials(&["-t", &token])
        .is_refused(&["me"], "Invalid personal access token");
}

#[tokio::test(flavor = "multi_thread")]
async fn given_no_credentials_should_only_ping() {
    let world = World::start().await;
    let cli = PublishedCli::new(&world.server).with_credentials(&[]);
    cli.succeeds(&["ping", "-c", "1"]);
    assert_ne!(cli.run(&["stream", "list"]).status, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_logout_and_session_commands_should_end_well() {
    let world = World::start().await;
    let cli = PublishedCli::new(&world.server);
    cli.succeeds(&["logout"]);
    cli.succeeds(&["session", "status"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_context_should_sign_in_from_it() {
    let world = World::start().await;
    let cli = PublishedCli::new(&world.server).with_credentials(&[]);
    let address = world.server.tcp_address().to_string();
    cli.succeeds(&[
        "context",
        "create",
        "ctx1",
        "--transport",
        "tcp",
        "--tcp-server-address",
        &address,
        "-u",
        "iggy",
        "-p",
        "iggy",
    ]);
    cli.succeeds(&["context", "list"]);
    cli.succeeds(&["context", "use", "ctx1"]);
    cli.succeeds(&["me"]);
    cli.succeeds(&["context", "show", "ctx1"]);
    cli.succeeds(&["context", "use", "default"]);
    cli.succeeds(&["context", "delete", "ctx1"]);
}
