//! What a workload is told.

use anyhow::ensure;
use clap::{Args, ValueEnum};
use iggy::prelude::*;
use rand::Rng;
use serde::Serialize;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A number, or a range of which each use draws one: `1000` or `500..1500`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// Smallest.
    pub min: u32,
    /// Largest.
    pub max: u32,
}

impl Span {
    /// One of its numbers.
    pub fn draw(self) -> u32 {
        if self.min == self.max {
            self.min
        } else {
            rand::rng().random_range(self.min..=self.max)
        }
    }

    /// The number in its middle.
    pub fn middle(self) -> u32 {
        self.min.midpoint(self.max)
    }

    fn within(self, name: &str, allowed: RangeInclusive<u32>) -> anyhow::Result<()> {
        ensure!(
            self.min <= self.max && allowed.contains(&self.min) && allowed.contains(&self.max),
            "{name} is a number from {} to {}, or a range of them such as 500..1500",
            allowed.start(),
            allowed.end()
        );
        Ok(())
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (min, max) = text.split_once("..").unwrap_or((text, text));
        let number = |text: &str| {
            text.parse()
                .map_err(|_| format!("'{text}' is no number; a number or a range such as 500..1500 is wanted"))
        };
        Ok(Self {
            min: number(min)?,
            max: number(max)?,
        })
    }
}

/// How clients reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Plain TCP, or TLS over it where the connection string says so
    Tcp,
}

/// What all workloads have in common.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Options {
    /// Bytes of a message: a number or a range, 1 to 64000000
    #[arg(long, short = 'm', default_value = "1000")]
    pub message_size: Span,

    /// Messages in a request: a number or a range, 1 to 100000
    #[arg(long, short = 'P', default_value = "250")]
    pub messages_per_batch: Span,

    /// Batches of each producer or consumer
    #[arg(long, short = 'b', default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub message_batches: u32,

    /// Bytes of payload of all producers or consumers together (8GB), in place of a number of batches
    #[arg(long, short = 'T', conflicts_with = "message_batches", value_parser = bytes)]
    pub total_data: Option<u64>,

    /// Bytes of payload per second (100MB) of all producers together, and of all consumers
    #[arg(long, short = 'r', value_parser = bytes)]
    pub rate_limit: Option<u64>,

    /// Seconds in which everybody works and nothing is counted
    #[arg(long, short = 'w', default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=600))]
    pub warmup_time: u64,

    /// Producers and consumers of the client in place of single requests
    #[arg(long, short = 'H')]
    pub high_level_api: bool,

    /// What an acknowledgement promises: replicated or persisted
    #[arg(long, default_value = "replicated", value_parser = durability)]
    #[serde(serialize_with = "as_word")]
    pub durability: Durability,

    /// How clients reach the server
    #[arg(long, default_value = "tcp")]
    pub transport: Transport,

    /// Measure no floor
    #[arg(long)]
    pub no_floor: bool,

    /// Folder for the files of the floor; take one on the server's disk
    #[arg(long, default_value = ".")]
    #[serde(skip)]
    pub floor_directory: PathBuf,

    /// Write report.json and report.html into this folder
    #[arg(long, short = 'o')]
    #[serde(skip)]
    pub output: Option<PathBuf>,

    /// Whose machine this is, for the report
    #[arg(long)]
    pub identifier: Option<String>,

    /// A remark for the report
    #[arg(long)]
    pub remark: Option<String>,

    /// The source that was built, for the report
    #[arg(long)]
    pub gitref: Option<String>,
}

impl Options {
    /// Refuses what makes no sense.
    pub fn validate(&self) -> anyhow::Result<()> {
        self.message_size.within("--message-size", 1..=64_000_000)?;
        self.messages_per_batch.within("--messages-per-batch", 1..=100_000)?;
        let largest = u64::from(self.message_size.max) * u64::from(self.messages_per_batch.max);
        ensure!(
            largest <= 60_000_000,
            "a batch of up to {largest} bytes is larger than a request may be: keep it under 60000000"
        );
        Ok(())
    }

    /// Bytes of payload of a batch in the middle of both ranges.
    pub fn batch_bytes(&self) -> u64 {
        u64::from(self.message_size.middle()) * u64::from(self.messages_per_batch.middle())
    }

    /// Batches of each of `actors`.
    pub fn batches(&self, actors: u32) -> u32 {
        match self.total_data {
            None => self.message_batches,
            Some(bytes) => {
                let batches = bytes.div_ceil(self.batch_bytes()).div_ceil(actors.into());
                u32::try_from(batches).unwrap_or(u32::MAX).max(1)
            }
        }
    }

    /// Time that each of `actors` takes for a batch where there is a limit.
    pub fn pace(&self, actors: u32) -> Option<Duration> {
        let rate = self.rate_limit?.max(1);
        let bytes = u128::from(self.batch_bytes()) * u128::from(actors);
        let nanos = bytes * 1_000_000_000 / u128::from(rate);
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// The warm-up.
    pub fn warmup(&self) -> Duration {
        Duration::from_secs(self.warmup_time)
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    let size = IggyByteSize::from_str(text).map_err(|error| error.to_string())?;
    match size.as_bytes_u64() {
        0 => Err("more than 0 bytes are wanted".to_owned()),
        bytes => Ok(bytes),
    }
}

fn durability(text: &str) -> Result<Durability, String> {
    match text {
        "replicated" => Ok(Durability::Replicated),
        "persisted" => Ok(Durability::Persisted),
        _ => Err("replicated or persisted is wanted".to_owned()),
    }
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn as_word<S: serde::Serializer>(durability: &Durability, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(match durability {
        Durability::Replicated => "replicated",
        Durability::Persisted => "persisted",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn parsed(arguments: &[&str]) -> Options {
        Line::parse_from(["bench"].iter().chain(arguments)).options
    }

    #[test]
    fn given_a_number_or_a_range_should_draw_from_it() {
        let one: Span = "7".parse().unwrap();
        assert_eq!((one.draw(), one.middle()), (7, 7));
        let range: Span = "5..9".parse().unwrap();
        assert!((5..=9).contains(&range.draw()));
        assert_eq!(range.middle(), 7);
        assert!("5...9".parse::<Span>().is_err());
    }

    #[test]
    fn given_ranges_that_make_no_sense_should_be_refused() {
        for wrong in [
            ["--message-size", "0"],
            ["--message-size", "9..5"],
            ["--messages-per-batch", "100001"],
            ["--message-size", "1000000"],
        ] {
            assert!(parsed(&wrong).validate().is_err(), "{wrong:?}");
        }
        assert!(parsed(&[]).validate().is_ok());
    }

    #[test]
    fn given_an_amount_or_a_rate_should_share_it_among_actors() {
        let options = parsed(&["--total-data", "1GB"]);
        assert_eq!(options.batches(4), 1000);
        assert_eq!(parsed(&["-b", "7"]).batches(4), 7);
        let options = parsed(&["--rate-limit", "100MB"]);
        assert_eq!(options.pace(20), Some(Duration::from_millis(50)));
    }
}
