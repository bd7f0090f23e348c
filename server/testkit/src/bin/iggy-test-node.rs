//! A node for scenarios of any language: reads one word per line and answers each with one line.
//!
//! `start` and `restart` answer `ready ADDRESS DATA_DIRECTORY`, `stop` and `kill` answer `stopped`. What goes wrong is
//! answered with `failed REASON`. The node ends with its input. Arguments are settings: `tcp.tls.enabled=true`.
//!
//! `member STREAM TOPIC GROUP` answers `joined` once a process beside the node is a member of that group, and
//! `kill-member` answers `killed`.

use std::io::{BufRead, Write};

use anyhow::{Context, Result, bail};
use iggy_testkit::{MemberProcess, TestServer};

fn ready(server: &TestServer) -> String {
    format!("ready {} {}", server.tcp_address(), server.data_directory().display())
}

async fn join(server: &TestServer, names: &str) -> Result<MemberProcess> {
    let names: Vec<&str> = names.split(' ').collect();
    let [stream, topic, group] = names[..] else {
        bail!("a member is told its stream, its topic and its group, with a space between them");
    };
    let program = std::env::current_exe()?.with_file_name("iggy-bdd-member");
    MemberProcess::start(&program, server.tcp_address(), stream, topic, group).await
}

async fn obey(server: &mut Option<TestServer>, member: &mut Option<MemberProcess>, line: &str) -> Result<String> {
    let (word, names) = line.split_once(' ').unwrap_or((line, ""));
    match (word, server.as_mut()) {
        ("member", Some(running)) => {
            *member = Some(join(running, names).await?);
            Ok("joined".to_owned())
        }
        ("kill-member", Some(_)) => {
            member.take().context("there is no member to kill")?.kill().await?;
            Ok("killed".to_owned())
        }
        ("start", None) => {
            let mut builder = TestServer::builder();
            for setting in std::env::args().skip(1) {
                let (key, value) = setting.split_once('=').context("a setting is KEY=VALUE")?;
                builder = builder.config(key, value);
            }
            Ok(ready(server.insert(builder.start().await?)))
        }
        ("start", Some(running)) => {
            running.restart().await?;
            Ok(ready(running))
        }
        ("restart", Some(running)) => {
            running.stop().await?;
            running.restart().await?;
            Ok(ready(running))
        }
        ("stop", Some(running)) => {
            running.stop().await?;
            Ok("stopped".to_owned())
        }
        ("kill", Some(running)) => {
            running.kill().await?;
            Ok("stopped".to_owned())
        }
        ("restart" | "stop" | "kill" | "member" | "kill-member", None) => bail!("the node was not started"),
        _ => bail!("'{word}' is no command; known are start, restart, stop, kill, member and kill-member"),
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let (mut server, mut member) = (None, None);
    let (lines, mut words) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    while let Some(word) = words.recv().await {
        let answer = match obey(&mut server, &mut member, word.trim()).await {
            Ok(answer) => answer,
            Err(error) => format!("failed {error:#}").replace('\n', " "),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}
