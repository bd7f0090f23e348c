//! The published command line: the server itself.

use interop::{PublishedCli, World};

#[tokio::test(flavor = "multi_thread")]
async fn given_system_commands_should_print_what_they_are_asked_for() {
    let world = World::start().await;
    let cli = PublishedCli::new(&world.server);
    cli.succeeds(&["ping", "-c", "2"]);
    cli.succeeds(&["me"]);
    for format in ["table", "list", "json", "toml"] {
        let stats = cli.succeeds(&["stats", "-o", format]).to_lowercase();
        assert!(stats.contains("stream"), "{format}:\n{stats}");
    }
    cli.succeeds(&["cluster", "metadata"]);
    cli.succeeds(&["cl", "m", "-l", "list"]);
    cli.succeeds(&["client", "list"]);
    cli.succeeds(&["client", "list", "-l", "list"]);
    assert!(cli.succeeds(&["client", "get", "4294967295"]).contains("not found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_snapshot_should_write_an_archive() {
    let world = World::start().await;
    let cli = PublishedCli::new(&world.server);
    let folder = cli.folder().join("snapshots");
    std::fs::create_dir(&folder).unwrap();
    cli.succeeds(&[
        "snapshot",
        "-c",
        "deflated",
        "-s",
        "test",
        "-o",
        folder.to_str().unwrap(),
    ]);
    let written = std::fs::read_dir(&folder)
        .unwrap()
        .next()
        .expect("one file is written")
        .unwrap();
    assert!(std::fs::read(written.path()).unwrap().starts_with(b"PK"));
}

#[tokio::test(flavor = "multi_thread")]
async fn given_metadata_changes_should_page_from_every_start() {
    let world = World::start().await;
    let cli = PublishedCli::new(&world.server);
    cli.succeeds(&["stream", "create", "s1"]);
    cli.succeeds(&["topic", "create", "s1", "t1", "1", "none"]);
    let all = cli.succeeds(&["metadata", "changes"]);
    assert!(all.contains("s1") && all.contains("t1"), "{all}");
    cli.succeeds(&["metadata", "changes", "--from", "latest"]);
    let current = cli.succeeds(&["metadata", "changes", "--from", "current"]);
    assert!(current.contains("s1"), "{current}");
    let printed = cli.succeeds(&["md", "c", "--groups", "streams,topics", "--limit", "1"]);
    let pages: Vec<_> = printed
        .lines()
        .filter(|line| line.trim_start().starts_with('{'))
        .collect();
    assert!(pages.len() >= 2, "one page for each change:\n{printed}");
    let dated = [
        "metadata",
        "changes",
        "--from",
        "earliest",
        "--since",
        "2020-01-01T00:00:00Z",
    ];
    cli.is_usage_error(&dated);
}
