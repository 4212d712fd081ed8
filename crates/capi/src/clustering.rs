//! Whether the entries of an index hold rows.

use pandodb::Clustering;

/// Whether the entries of an index hold rows.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoClustering {
    /// They do not.
    None = 0,
    /// The value of an entry is the row, as in dictionary 0.
    Row = 1,
    /// The value of an entry is the row, the size of a tail as a number (seven bits a byte), the tail, and its size once more in
    /// two bytes, little-endian. Of entries that have the same key, the tail tells which row it is.
    Tailed = 2,
}

crate::member::members! {
    PandoClustering: None Row Tailed;
}

impl From<PandoClustering> for Clustering {
    fn from(clustering: PandoClustering) -> Clustering {
        match clustering {
            PandoClustering::None => Clustering::None,
            PandoClustering::Row => Clustering::Row,
            PandoClustering::Tailed => Clustering::Tailed,
        }
    }
}

impl From<Clustering> for PandoClustering {
    fn from(clustering: Clustering) -> PandoClustering {
        match clustering {
            Clustering::None => PandoClustering::None,
            Clustering::Row => PandoClustering::Row,
            Clustering::Tailed => PandoClustering::Tailed,
        }
    }
}
