//! The allocator of a tree file against a model: who owns which page.

use pando_base::DictId;
use pando_storage::vfs::{FaultKind, SimVfs, Vfs};
use pando_storage::{Extent, Superblock, TreeFile};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const PAGE: u64 = 4096;

#[derive(Clone, Debug)]
enum Op {
    Allocate(u64),
    Drop(usize),
    Shrink(usize, u64),
    Reclaim,
    Checkpoint,
    /// The next I/O fails, so that errors give everything back.
    Fault(FaultKind),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (1..400_000u64).prop_map(Op::Allocate),
        1 => (1_000_000..4_000_000u64).prop_map(Op::Allocate),
        6 => any::<usize>().prop_map(Op::Drop),
        2 => (any::<usize>(), 0..100u64).prop_map(|(which, percent)| Op::Shrink(which, percent)),
        1 => Just(Op::Reclaim),
        1 => Just(Op::Checkpoint),
        1 => prop_oneof![Just(FaultKind::Error), Just(FaultKind::DiskFull)].prop_map(Op::Fault),
    ]
}

/// Extents by offset; overlap and bounds are checked when one is added.
fn check(file: &TreeFile, extents: &[Extent]) -> Result<(), TestCaseError> {
    let mut owned = BTreeMap::new();
    for place in extents.iter().map(Extent::place).filter(|place| place.len > 0) {
        prop_assert!(place.offset % PAGE == 0 && place.len % PAGE == 0 && place.offset >= 4 * PAGE);
        prop_assert!(place.end() <= file.file_bytes());
        prop_assert!(owned.insert(place.offset, place.end()).is_none());
    }
    let ends = owned.values();
    prop_assert!(ends.zip(owned.keys().skip(1)).all(|(end, next)| end <= next), "two owners of a page");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn pages_have_one_owner_and_all_come_back(ops in proptest::collection::vec(op(), 1..120)) {
        let sim = SimVfs::new(1);
        let vfs: Arc<dyn Vfs> = sim.clone();
        let file = TreeFile::create(&vfs, Path::new("f"), DictId(1)).unwrap();
        let mut extents: Vec<Extent> = Vec::new();
        let mut latched = false;
        for op in ops {
            match op {
                Op::Allocate(len) => {
                    let before = (file.used_bytes(), file.file_bytes());
                    match file.allocate(len) {
                        Ok(extent) => {
                            prop_assert_eq!(extent.place().len, len.next_multiple_of(PAGE));
                            prop_assert_eq!(file.used_bytes(), before.0 + extent.place().len);
                            extents.push(extent);
                        }
                        Err(_) => prop_assert_eq!(before.0, file.used_bytes()),
                    }
                }
                Op::Drop(which) if !extents.is_empty() => drop(extents.swap_remove(which % extents.len())),
                Op::Shrink(which, percent) if !extents.is_empty() => {
                    let which = which % extents.len();
                    let len = extents[which].place().len * percent / 100;
                    extents[which].shrink_to(len);
                    prop_assert_eq!(extents[which].place().len, len.next_multiple_of(PAGE));
                }
                Op::Drop(_) | Op::Shrink(..) => {}
                Op::Reclaim => {
                    // It may write a superblock, which ends a doubt or begins one.
                    let _ = file.reclaim();
                    latched |= file.sync().is_err();
                }
                Op::Checkpoint => {
                    let _ = file.write_superblock(&Superblock::default());
                    latched |= file.sync().is_err();
                }
                Op::Fault(kind) => sim.fail_io_after(1, kind),
            }
            check(&file, &extents)?;
            let owned: u64 = extents.iter().map(|extent| extent.place().len).sum();
            prop_assert_eq!(file.used_bytes(), owned);
            prop_assert_eq!(file.used_bytes() + file.free_bytes() + 4 * PAGE, file.file_bytes());
        }
        sim.clear_faults();
        drop(extents);
        if !latched && file.write_superblock(&Superblock::default()).is_ok() {
            prop_assert_eq!(file.used_bytes(), 0);
            // What was quarantined until now still counted for the length it wrote down.
            file.write_superblock(&Superblock::default()).unwrap();
            file.reclaim().unwrap();
            prop_assert_eq!(file.file_bytes(), 4 * PAGE);
        }
    }
}
