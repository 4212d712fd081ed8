//! `pando backup`, `pando restore`, and `pando verify` of a backup.

pub mod child;
pub mod chosen;
pub mod client;
pub mod copy;
pub mod files;
pub mod manifest;
pub mod progress;
pub mod restore;
pub mod stream;
pub mod take;
pub mod verify;

use std::error::Error;
use std::fmt::Display;
use std::path::Path;

/// What went wrong is for people.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// An error with this text.
pub fn fail<T>(text: impl Into<String>) -> Outcome<T> {
    Err(text.into().into())
}

/// Names the file in an error.
pub fn at<E: Display>(path: &Path) -> impl FnOnce(E) -> Box<dyn Error> + '_ {
    move |error| format!("{}: {error}", path.display()).into()
}
