//! What the kernel counts of this process, under the names that every Prometheus client uses.
//!
//! Elsewhere than on Linux only the start time is known, and the rest is left out.

use std::{
    fmt, fs,
    time::{SystemTime, UNIX_EPOCH},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

/// This process as the kernel sees it.
#[derive(Debug)]
pub(super) struct Machine {
    /// Seconds since 1970.
    started: f64,
}

impl Machine {
    pub(super) fn new() -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            started: started.unwrap_or_default().as_secs_f64(),
        }
    }
}

impl Collector for Machine {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut gauge = |name, help, unit: Option<&Unit>, value: f64| {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)
        };
        gauge(
            "process_start_time",
            "When the process started, in seconds since 1970",
            Some(&Unit::Seconds),
            self.started,
        )?;
        if let Some(pages) = read("/proc/self/statm").and_then(|text| resident_pages(&text)) {
            let bytes = pages * number(rustix::param::page_size() as u64);
            gauge(
                "process_resident_memory",
                "Memory that is in use, in bytes",
                Some(&Unit::Bytes),
                bytes,
            )?;
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            let count = number(open.count() as u64);
            gauge(
                "process_open_fds",
                "Open files and connections; every watch is one",
                None,
                count,
            )?;
        }
        if let Some(ticks) = read("/proc/self/stat").and_then(|text| cpu_ticks(&text)) {
            let seconds = ticks / number(rustix::param::clock_ticks_per_second());
            let counter = ConstCounter::new(seconds);
            counter.encode(encoder.encode_descriptor(
                "process_cpu",
                "Processor time used, in seconds",
                Some(&Unit::Seconds),
                counter.metric_type(),
            )?)?;
        }
        Ok(())
    }
}

fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The second number of `statm`.
fn resident_pages(statm: &str) -> Option<f64> {
    statm.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// User and system time of `stat`. The program's name comes before them, in parentheses and with whatever it contains.
fn cpu_ticks(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut times = rest.split_ascii_whitespace().skip(11);
    let user: f64 = times.next()?.parse().ok()?;
    let system: f64 = times.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_have_any_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 900 0 0 0 130 20 0 0 20 0 9 0 77 1 2 3";
        assert_eq!(cpu_ticks(stat), Some(150.0));
        assert_eq!(cpu_ticks("42 (a) S 1"), None);
        assert_eq!(resident_pages("100 25 7 3 0 50 0"), Some(25.0));
        assert_eq!(resident_pages(""), None);
    }
}
