//! What the report says about the machine and the time.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::report::Machine;

/// The machine, and what it does before the run.
pub(super) fn look() -> Machine {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory_kb = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    Machine {
        processor: model.map_or("unknown", |(_, name)| name.trim()).to_owned(),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: memory_kb.unwrap_or(0u64) * 1024,
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        load_before: load.split_whitespace().next().and_then(|one| one.parse().ok()).unwrap_or(0.0),
    }
}

/// Now, as 2026-11-21 19:20 UTC.
pub(super) fn now_utc() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
    let (year, month, day) = crate::workload::calendar::date_of((seconds / 86_400) as i64);
    let minutes = seconds % 86_400 / 60;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}
