//! Directories of the simulated disk. Each change of names is atomic, and not durable until one of the
//! directories it touches is synced; before that a power loss keeps it or undoes it, whatever
//! happens to changes of other names around it.

use super::content::Inode;
use super::events::DiskEvents;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path};

pub(super) type NodeNumber = u64;
pub(super) const ROOT: NodeNumber = 0;

/// A directory: names as they are now, and as they surely are on the disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Dir {
    pub(super) live: BTreeMap<String, NodeNumber>,
    durable: BTreeMap<String, NodeNumber>,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    File(Inode),
    Dir(Dir),
}

/// One change of names: for each (directory, name), what it leads to from then on.
type Change = Vec<(NodeNumber, String, Option<NodeNumber>)>;

/// All files and directories.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) nodes: BTreeMap<NodeNumber, Node>,
    next: NodeNumber,
    pending: Vec<Change>,
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

/// The components of a path below the root; "." and a leading "/" mean nothing here.
fn components(path: &Path) -> io::Result<Vec<&str>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => {
                names.push(name.to_str().ok_or(io::Error::from(io::ErrorKind::InvalidInput))?);
            }
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(names)
}

impl Names {
    pub(super) fn new() -> Names {
        let nodes = BTreeMap::from([(ROOT, Node::Dir(Dir::default()))]);
        Names { nodes, next: ROOT + 1, pending: Vec::new() }
    }

    pub(super) fn file(&mut self, number: NodeNumber) -> &mut Inode {
        match self.nodes.get_mut(&number) {
            Some(Node::File(inode)) => inode,
            other => unreachable!("node {number} is no file: {other:?}"),
        }
    }

    pub(super) fn dir(&self, number: NodeNumber) -> io::Result<&Dir> {
        match self.nodes.get(&number) {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(not_found()),
        }
    }

    fn dir_mut(&mut self, number: NodeNumber) -> Option<&mut Dir> {
        match self.nodes.get_mut(&number) {
            Some(Node::Dir(dir)) => Some(dir),
            _ => None,
        }
    }

    pub(super) fn is_dir(&self, number: NodeNumber) -> bool {
        matches!(self.nodes.get(&number), Some(Node::Dir(_)))
    }

    fn walk(&self, names: &[&str]) -> io::Result<NodeNumber> {
        names.iter().try_fold(ROOT, |at, name| self.dir(at)?.live.get(*name).copied().ok_or_else(not_found))
    }

    /// What a path leads to.
    pub(super) fn lookup(&self, path: &Path) -> io::Result<NodeNumber> {
        self.walk(&components(path)?)
    }

    /// The directory a path is in, and its last component.
    fn parent_of(&self, path: &Path) -> io::Result<(NodeNumber, String)> {
        let names = components(path)?;
        let (last, parents) = names.split_last().ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
        let parent = self.walk(parents)?;
        self.dir(parent)?;
        Ok((parent, (*last).to_owned()))
    }

    fn add(&mut self, node: Node) -> NodeNumber {
        let number = self.next;
        self.next += 1;
        self.nodes.insert(number, node);
        number
    }

    fn apply(&mut self, change: &Change, durable: bool) {
        for (parent, name, target) in change {
            // A directory that is gone for good needs no names.
            let Some(dir) = self.dir_mut(*parent) else { continue };
            let names = if durable { &mut dir.durable } else { &mut dir.live };
            match target {
                Some(number) => _ = names.insert(name.clone(), *number),
                None => _ = names.remove(name),
            }
        }
    }

    fn change(&mut self, change: Change) {
        self.apply(&change, false);
        self.pending.push(change);
    }

    /// Creates an empty file where there is none.
    pub(super) fn create_file(&mut self, path: &Path) -> io::Result<NodeNumber> {
        let (parent, name) = self.parent_of(path)?;
        let number = self.add(Node::File(Inode::default()));
        self.change(vec![(parent, name, Some(number))]);
        Ok(number)
    }

    pub(super) fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        let mut at = ROOT;
        for name in components(path)? {
            at = match self.dir(at)?.live.get(name) {
                Some(number) => *number,
                None => {
                    let number = self.add(Node::Dir(Dir::default()));
                    self.change(vec![(at, name.to_owned(), Some(number))]);
                    number
                }
            };
        }
        self.dir(at).map(|_| ())
    }

    pub(super) fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        if self.is_dir(self.lookup(path)?) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let (parent, name) = self.parent_of(path)?;
        self.change(vec![(parent, name, None)]);
        Ok(())
    }

    pub(super) fn remove_dir_all(&mut self, path: &Path) -> io::Result<()> {
        let number = self.lookup(path)?;
        let (parent, name) = self.parent_of(path)?;
        self.empty_dir(number)?;
        self.change(vec![(parent, name, None)]);
        Ok(())
    }

    fn empty_dir(&mut self, number: NodeNumber) -> io::Result<()> {
        for (name, child) in self.dir(number)?.live.clone() {
            if self.is_dir(child) {
                self.empty_dir(child)?;
            }
            self.change(vec![(number, name, None)]);
        }
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let number = self.lookup(from)?;
        let (from_dir, from_name) = self.parent_of(from)?;
        let (to_dir, to_name) = self.parent_of(to)?;
        if let Some(&replaced) = self.dir(to_dir)?.live.get(&to_name) {
            if replaced == number {
                return Ok(());
            }
            match (self.is_dir(number), self.dir(replaced)) {
                (true, Ok(dir)) if !dir.live.is_empty() => {
                    return Err(io::ErrorKind::DirectoryNotEmpty.into());
                }
                (true, Err(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                (false, Ok(_)) => return Err(io::ErrorKind::IsADirectory.into()),
                _ => {}
            }
        }
        if components(to)?.starts_with(&components(from)?) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.change(vec![(from_dir, from_name, None), (to_dir, to_name, Some(number))]);
        Ok(())
    }

    /// Makes the names of a directory durable: the changes that touch it, and those before them that
    /// touch a directory one of these touches (a rename is one change in two directories).
    pub(super) fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
        let number = self.lookup(path)?;
        self.dir(number)?;
        let mut dirs = BTreeSet::from([number]);
        let mut now = Vec::new();
        let mut later = Vec::new();
        for change in std::mem::take(&mut self.pending).into_iter().rev() {
            if change.iter().any(|(dir, ..)| dirs.contains(dir)) {
                dirs.extend(change.iter().map(|(dir, ..)| *dir));
                now.push(change);
            } else {
                later.push(change);
            }
        }
        now.iter().rev().for_each(|change| self.apply(change, true));
        later.reverse();
        self.pending = later;
        self.forget_unreachable();
        Ok(())
    }

    /// Bytes taken by the files that have a name or a handle.
    pub(super) fn used_bytes(&self) -> u64 {
        let mut named = BTreeSet::new();
        for node in self.nodes.values() {
            if let Node::Dir(dir) = node {
                named.extend(dir.live.values().copied());
            }
        }
        let files = self.nodes.iter().filter_map(|(number, node)| match node {
            Node::File(inode) if inode.handles > 0 || named.contains(number) => Some(inode),
            _ => None,
        });
        files.map(|inode| inode.live.allocated_bytes()).sum()
    }

    /// Drops what no name, now or after any power loss, and no handle can lead to.
    fn forget_unreachable(&mut self) {
        let mut seen = BTreeSet::new();
        let mut todo = vec![ROOT];
        todo.extend(self.pending.iter().flatten().filter_map(|(_, _, target)| *target));
        while let Some(number) = todo.pop() {
            if seen.insert(number) {
                if let Some(Node::Dir(dir)) = self.nodes.get(&number) {
                    todo.extend(dir.live.values().chain(dir.durable.values()));
                }
            }
        }
        self.nodes.retain(|number, node| match node {
            Node::File(inode) => inode.handles > 0 || seen.contains(number),
            Node::Dir(_) => seen.contains(number),
        });
    }

    /// The files and directories after a power loss. A change of a name is undone with the change of
    /// the same name it came after, so that a rename never leaves a file under both names.
    pub(super) fn after_power_loss(&self, rng: &mut ChaCha8Rng, events: &mut DiskEvents) -> Names {
        events.power_losses += 1;
        let likely = match rng.random_range(0..4) {
            0 => 0.0,
            1 => 1.0,
            _ => rng.random_range(0.1..0.9),
        };
        let mut undone: BTreeSet<(NodeNumber, &str)> = BTreeSet::new();
        let mut kept = Vec::new();
        for change in &self.pending {
            let depends = change.iter().any(|(dir, name, _)| undone.contains(&(*dir, name.as_str())));
            if !depends && rng.random_bool(likely) {
                kept.push(change);
            } else {
                events.names_undone += 1;
                undone.extend(change.iter().map(|(dir, name, _)| (*dir, name.as_str())));
            }
        }
        self.rebuild(&kept, |inode| inode.after_power_loss(rng, events))
    }

    /// The files and directories after the end of the process: all as it was, and no handles.
    pub(super) fn after_kill(&self) -> Names {
        let mut names = self.clone();
        for node in names.nodes.values_mut() {
            if let Node::File(inode) = node {
                inode.handles = 0;
            }
        }
        names.forget_unreachable();
        names
    }

    /// The files and directories after switching off in peace.
    pub(super) fn after_clean_stop(&self) -> Names {
        self.rebuild(&self.pending.iter().collect::<Vec<_>>(), |inode| inode.live.clone())
    }

    fn rebuild(&self, kept: &[&Change], mut content: impl FnMut(&Inode) -> super::content::Content) -> Names {
        let mut names = Names { nodes: BTreeMap::new(), next: self.next, pending: Vec::new() };
        for (number, node) in &self.nodes {
            let node = match node {
                Node::File(inode) => Node::File(Inode::with_content(content(inode))),
                Node::Dir(dir) => Node::Dir(Dir { live: dir.durable.clone(), durable: dir.durable.clone() }),
            };
            names.nodes.insert(*number, node);
        }
        for change in kept {
            names.apply(change, true);
            names.apply(change, false);
        }
        names.forget_unreachable();
        names
    }
}
