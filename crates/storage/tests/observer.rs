//! An observer is told of files as they are opened, used, closed and removed. One test: the observer is the process's.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests say what they expect by unwrapping")]

use std::path::Path;
use std::sync::Mutex;

use pando_base::observer::{self, FileMark, FileOperation, Observer, ThreadKind, MEMORY_USES};
use pando_storage::vfs::{OpenMode, RealVfs, Vfs};

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn tell(text: String) {
    TOLD.lock().unwrap().push(text);
}

fn told() -> Vec<String> {
    std::mem::take(&mut *TOLD.lock().unwrap())
}

#[derive(Debug)]
struct Everything;

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

impl Observer for Everything {
    fn thread_begins(&self, kind: ThreadKind) {
        tell(format!("{kind:?} begins"));
    }
    fn thread_ends(&self) {
        tell("a thread ends".to_owned());
    }
    fn file_opened(&self, path: &Path) -> FileMark {
        tell(format!("{} opened", name(path)));
        FileMark::from(name(path) != "unseen") * 7
    }
    fn file_closed(&self, file: FileMark) {
        tell(format!("{file} closed"));
    }
    fn file_gone(&self, path: &Path) {
        tell(format!("{} gone", name(path)));
    }
    fn during(&self, file: FileMark, operation: FileOperation, bytes: usize, io: &mut dyn FnMut()) {
        io();
        tell(format!("{file}: {operation:?} {bytes}"));
    }
    fn memory(&self, _: &[u64; MEMORY_USES.len()]) {}
}

#[test]
fn all_that_is_done_with_a_file_is_told() {
    observer::set(Box::new(Everything));
    let dir = tempfile::tempdir().unwrap();
    let vfs = RealVfs::new(false);
    let path = dir.path().join("d/f");
    vfs.create_dir_all(&dir.path().join("d")).unwrap();
    let file = vfs.open(&path, OpenMode::Create).unwrap();
    file.write_at(b"some bytes", 0).unwrap();
    file.sync().unwrap();
    let mut bytes = [0; 4];
    assert_eq!(file.read_at(&mut bytes, 5).unwrap(), 4);
    assert_eq!(&bytes, b"byte");
    drop(file);
    assert_eq!(told(), ["f opened", "7: Write 10", "7: Sync 0", "7: Read 4", "7 closed"]);

    let unseen = vfs.open(&dir.path().join("unseen"), OpenMode::Create).unwrap();
    unseen.write_at(b"x", 0).unwrap();
    drop(unseen);
    assert_eq!(told(), ["unseen opened"], "what the observer does not look at is not told");

    vfs.rename(&path, &dir.path().join("d/g")).unwrap();
    vfs.remove_dir_all(&dir.path().join("d")).unwrap();
    vfs.remove_file(&dir.path().join("unseen")).unwrap();
    assert_eq!(told(), ["f gone", "g gone", "unseen gone"]);

    let thread = std::panic::catch_unwind(|| observer::thread(ThreadKind::Worker, || panic!("planted")));
    assert!(thread.is_err());
    assert_eq!(observer::thread(ThreadKind::Loader, || 5), 5);
    assert_eq!(told(), ["Worker begins", "a thread ends", "Loader begins", "a thread ends"]);
}
