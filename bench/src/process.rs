//! What another process has used, as the kernel counts it.

use anyhow::Context;
use std::time::Duration;

/// Ticks of a second in `/proc`; the kernel shows every machine the same.
const TICKS_PER_SECOND: u32 = 100;

/// Processor time that a process has used, in user and kernel, over all its threads.
pub fn cpu_time(pid: u32) -> anyhow::Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    ticks(&stat)
        .map(|ticks| Duration::from_secs(ticks) / TICKS_PER_SECOND)
        .with_context(|| format!("{path} looks unlike any known kernel's"))
}

/// What a process has used so far.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Processor time.
    pub cpu: Duration,
    /// Most memory that it ever had in use, in bytes.
    pub memory_max: u64,
}

/// What a process of this machine has used; none where there is no such process.
pub fn usage(pid: u32) -> Option<Usage> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = peak.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(Usage {
        cpu: cpu_time(pid).ok()?,
        memory_max: kibibytes << 10,
    })
}

/// User and kernel ticks: the 14th and 15th field. The second one is a name and may hold anything, spaces and brackets
/// included.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let kernel: u64 = fields.next()?.parse().ok()?;
    Some(user + kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_name_with_brackets_and_spaces_when_read_should_find_the_ticks() {
        let stat = "42 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 300 40 0 0 20 0 8";
        assert_eq!(ticks(stat), Some(340));
        assert_eq!(ticks("42 (cut) S 1 2"), None);
    }

    #[test]
    fn given_this_process_when_it_works_should_use_more_and_more() {
        let before = cpu_time(std::process::id()).unwrap();
        let mut sum = 0_u64;
        while cpu_time(std::process::id()).unwrap() == before {
            sum = (0..1_000_000).fold(sum, |sum: u64, more| sum.wrapping_mul(31).wrapping_add(more));
        }
        std::hint::black_box(sum);
    }
}
