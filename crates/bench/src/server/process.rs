//! What the kernel tells about a process. Linux only; `None` anywhere else, and where one may not look.

use std::fs;

/// Bytes that the process caused to be written to disk.
pub(super) fn written_bytes(pid: u32) -> Option<u64> {
    field(&fs::read_to_string(format!("/proc/{pid}/io")).ok()?, "write_bytes:")
}

/// The largest resident set it has had, in bytes.
pub(super) fn memory_bytes_max(pid: u32) -> Option<u64> {
    Some(field(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmHWM:")? * 1024)
}

/// Does it run? A process that has ended and waits for its parent does not.
pub(crate) fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/status"))
        .is_ok_and(|status| !status.lines().any(|line| line.starts_with("State:") && line.contains('Z')))
}

fn field(text: &str, name: &str) -> Option<u64> {
    // A name at the start of a line: "cancelled_write_bytes" ends like "write_bytes".
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let io = "wchar: 9\nread_bytes: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n";
        assert_eq!(field(io, "write_bytes:"), Some(4096));
        assert_eq!(field("VmPeak:\t 1 kB\nVmHWM:\t  12 kB\n", "VmHWM:"), Some(12));
        assert_eq!(field(io, "bytes:"), None);
    }

    #[test]
    fn this_process_is_seen() {
        let pid = std::process::id();
        assert!(is_running(pid) && memory_bytes_max(pid).is_some_and(|bytes| bytes > 1 << 16));
        assert!(!is_running(u32::MAX / 2));
    }
}
