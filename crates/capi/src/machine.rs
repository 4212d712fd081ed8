//! What of the machine is this process's: its memory and its processors, as control groups (containers, systemd) bound them.
//!
//! Files and their meaning: Linux's documentation of cgroups, `admin-guide/cgroup-v2.rst` and `cgroup-v1/memory.rst`. Processors are std's matter.

use std::path::{Path, PathBuf};

use crate::guard::guard;

/// Above this, version 1 means that there is no limit.
const NO_LIMIT: u64 = 1 << 60;

/// The least limit of memory of the groups that `groups` (`/proc/self/cgroup`) names and of those above them.
/// `read` gives the content of a file that is there.
fn memory_limit(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut least = None;
    for line in groups.lines() {
        // Number of the hierarchy, its controllers, and the group in it.
        let mut parts = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (mounts, file): (&[&str], _) = match number {
            "0" => (&["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (&["/sys/fs/cgroup/memory"], "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // In a container the group may be named as the host does, but its root is what is mounted.
        for mount in mounts {
            for above in Path::new(group.trim_start_matches('/')).ancestors() {
                let limit = read(&PathBuf::from(mount).join(above).join(file))
                    .and_then(|text| text.trim().parse().ok())
                    .filter(|limit| *limit < NO_LIMIT);
                least = least.into_iter().chain(limit).min();
            }
        }
    }
    least
}

/// Bytes of memory that this process may have, if a control group bounds it; 0: none does.
#[no_mangle]
pub extern "C" fn pando_memory_limit_of_group() -> u64 {
    guard(|| {
        let read = |path: &Path| std::fs::read_to_string(path).ok();
        read(Path::new("/proc/self/cgroup")).and_then(|groups| memory_limit(&groups, read)).unwrap_or(0)
    })
}

/// How many processors this process may use: those of the machine, less what affinity and the quota of a control group leave.
#[no_mangle]
pub extern "C" fn pando_processors() -> u32 {
    guard(|| u32::try_from(pandodb::processors()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        memory_limit(groups, |path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, content)| (*content).to_owned())
        })
    }

    #[test]
    fn the_least_limit_on_the_way_up_counts() {
        let files = [
            ("/sys/fs/cgroup/system.slice/memory.max", "8589934592\n"),
            ("/sys/fs/cgroup/system.slice/mariadb.service/memory.max", "max\n"),
        ];
        assert_eq!(limit("0::/system.slice/mariadb.service\n", &files), Some(8 << 30));
        assert_eq!(limit("0::/user.slice\n", &files), None);
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_root() {
        assert_eq!(limit("0::/\n", &[("/sys/fs/cgroup/memory.max", "536870912\n")]), Some(512 << 20));
        let old = [("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n")];
        assert_eq!(limit("5:cpu,cpuacct:/docker/a1\n4:memory:/docker/a1\n0::/\n", &old), Some(1 << 30));
    }

    #[test]
    fn no_limit_is_none() {
        let old = [("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")];
        assert_eq!(limit("4:memory:/\n0::/\n", &old), None);
        assert_eq!(limit("", &old), None);
        assert_eq!(limit("4:memory\nnonsense\n:::\n0::", &old), None);
    }

    #[test]
    fn this_machine_can_be_asked() {
        assert!(pando_processors() >= 1);
        let _ = pando_memory_limit_of_group();
    }
}
