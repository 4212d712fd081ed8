//! What a backup has pinned in a tree file stays as it was.

#![expect(clippy::unwrap_used, reason = "helpers of tests say what they expect by unwrapping")]

use std::path::Path;
use std::sync::Arc;

use pando_base::DictId;
use pando_storage::vfs::{FaultKind, SimVfs, Vfs};
use pando_storage::{Extent, Place, Superblock, TreeFile};

const DICT: DictId = DictId(7);
const EXTENT: u64 = 64 << 10;

fn create() -> (Arc<SimVfs>, Arc<TreeFile>) {
    let vfs = SimVfs::new(1);
    let files: Arc<dyn Vfs> = vfs.clone();
    (vfs, TreeFile::create(&files, Path::new("/main.pando"), DICT).unwrap())
}

fn allocate(file: &Arc<TreeFile>, fill: u8) -> Extent {
    let extent = file.allocate(EXTENT).unwrap();
    file.write(extent.place().offset, &vec![fill; EXTENT as usize]).unwrap();
    extent
}

fn checkpoint(file: &TreeFile, root: &Extent) -> pando_base::Result<()> {
    file.sync()?;
    file.write_superblock(&Superblock { root: Some(root.place()), ..Superblock::default() })
}

fn is_filled_with(file: &TreeFile, place: Place, fill: u8) -> bool {
    file.read(place).unwrap().iter().all(|byte| *byte == fill)
}

#[test]
fn what_was_there_is_not_reused_and_what_came_later_is() {
    let (_vfs, file) = create();
    let (root, spilled) = (allocate(&file, 1), allocate(&file, 2));
    checkpoint(&file, &root).unwrap();
    let pin = file.pin().unwrap();
    assert!(file.pin().is_none(), "one at a time");
    let (old, private) = (root.place(), spilled.place());
    assert_eq!(pin.superblock().root, Some(old));

    let mut next = allocate(&file, 3);
    checkpoint(&file, &next).unwrap();
    drop((root, spilled));
    assert_eq!(pin.held_bytes(), 2 * EXTENT);
    let bytes = file.file_bytes();
    for fill in 4..40 {
        let newer = allocate(&file, fill);
        checkpoint(&file, &newer).unwrap();
        next = newer;
        file.reclaim().unwrap();
    }
    assert!(file.file_bytes() <= bytes + 3 * EXTENT, "later extents are used again");
    assert!(is_filled_with(&file, old, 1) && is_filled_with(&file, private, 2));
    assert_eq!(pin.held_bytes(), 2 * EXTENT);

    drop(pin);
    let again: Vec<Extent> = (0..2).map(|_| allocate(&file, 50)).collect();
    assert!(again.iter().any(|extent| extent.place() == old || extent.place() == private));
    drop(next);
    assert!(file.pin().is_some());
}

#[test]
fn a_pin_is_of_the_checkpoint_that_counts_also_while_the_next_one_is_in_doubt() {
    let (vfs, file) = create();
    let root = allocate(&file, 1);
    checkpoint(&file, &root).unwrap();
    let next = allocate(&file, 2);
    file.sync().unwrap();
    vfs.fail_io_after(1, FaultKind::Error);
    let failed = file.write_superblock(&Superblock { root: Some(next.place()), ..Superblock::default() });
    assert!(failed.is_err());
    let pin = file.pin().unwrap();
    assert_eq!(pin.superblock().root, Some(root.place()));
    let old = root.place();
    // The next try succeeds, which ends the doubt, and not the pin.
    file.write_superblock(&Superblock { root: Some(next.place()), ..Superblock::default() }).unwrap();
    drop(root);
    let others: Vec<Extent> = (0..8).map(|_| allocate(&file, 9)).collect();
    assert!(is_filled_with(&file, old, 1));
    drop((others, pin));
    assert_eq!(file.used_bytes(), EXTENT);
}

#[test]
fn a_pinned_file_is_opened_as_it_was() {
    let (vfs, file) = create();
    let root = allocate(&file, 1);
    checkpoint(&file, &root).unwrap();
    let pin = file.pin().unwrap();
    let next = allocate(&file, 2);
    checkpoint(&file, &next).unwrap();
    let files: Arc<dyn Vfs> = vfs.clone();
    let opened = TreeFile::open_pinned(&files, Path::new("/main.pando"), pin.superblock()).unwrap();
    let extent = opened.adopt(root.place()).unwrap();
    assert!(is_filled_with(&opened, extent.place(), 1));
    let other = Superblock { dict: DictId(8), ..pin.superblock().clone() };
    assert!(TreeFile::open_pinned(&files, Path::new("/main.pando"), &other).is_err());
}
