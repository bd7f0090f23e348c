//! The iggy command line.

mod arguments;
mod commands;
mod connect;
mod credentials;
mod message_text;
mod output;
mod progress;
mod prompt;
mod store;
mod view;

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use iggy::{ErrorClass, IggyError, Outcome};
use serde_json::json;

use arguments::Arguments;

/// The command did what it says.
const DONE: u8 = 0;
/// The server refused, could not be reached, or does not have what was asked for. Wrong arguments end with 2.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(shell) = arguments.global.generate {
        clap_complete::generate(shell, &mut Arguments::command(), "iggy", &mut io::stdout());
        return DONE.into();
    }
    let Some(command) = arguments.command else {
        Arguments::command()
            .error(clap::error::ErrorKind::MissingSubcommand, "a command is needed")
            .exit()
    };
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| {
            let outcome = runtime.block_on(commands::run(&arguments.global, command));
            // A thread that still reads the terminal would hold an ordinary end back until a line comes.
            runtime.shutdown_background();
            outcome
        });
    match outcome {
        Ok(()) => DONE.into(),
        // `iggy ... | head` closes the pipe when it has enough.
        Err(error) if is_broken_pipe(&error) => DONE.into(),
        Err(error) => {
            report(&error, arguments.global.json);
            FAILED.into()
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// A program may look a name up again that is about to appear; a person who mistyped it gains nothing by it.
fn may_help_again(refusal: &IggyError) -> bool {
    refusal.retryable() && refusal.class() != ErrorClass::NotFound
}

/// The error with its causes, each said once: some errors tell their cause themselves.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for said in error.chain().map(ToString::to_string) {
        if text.contains(&said) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&said);
    }
    text
}

/// Says on standard error what went wrong and, when the server or the client said it, what it means for a retry.
fn report(error: &anyhow::Error, as_json: bool) {
    let refusal = error.chain().find_map(|cause| cause.downcast_ref::<IggyError>());
    if as_json {
        let refusal = refusal.map(|refusal| {
            json!({
                "code": refusal.code() as u32,
                "name": refusal.code().name(),
                "class": format!("{:?}", refusal.class()),
                "retryable": may_help_again(refusal),
                "outcome": format!("{:?}", refusal.outcome()),
            })
        });
        eprintln!("{}", json!({ "error": sentence(error), "refusal": refusal }));
        return;
    }
    eprintln!("error: {}", sentence(error));
    if let Some(refusal) = refusal {
        let applied = match refusal.outcome() {
            Outcome::Applied => "it was applied",
            Outcome::NotApplied => "nothing was changed",
            Outcome::Unknown => "whether it was applied is unknown",
        };
        let retry = if may_help_again(refusal) {
            "; trying again may help"
        } else {
            ""
        };
        eprintln!("  {applied}{retry}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_an_error_that_tells_its_cause_should_say_the_cause_once() {
        let cause = anyhow::anyhow!("refused");
        assert_eq!(
            sentence(&cause.context("cannot connect: refused")),
            "cannot connect: refused"
        );
        let cause = anyhow::anyhow!("refused");
        assert_eq!(sentence(&cause.context("cannot connect")), "cannot connect: refused");
    }
}
