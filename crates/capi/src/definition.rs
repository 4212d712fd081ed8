//! The server's definitions of tables: compared, recorded, given back.

use pandodb::{Definition, DefinitionState};

use crate::buffer::PandoBuffer;
use crate::bytes::PandoBytes;
use crate::database::PandoDb;
use crate::guard::guard;
use crate::status::{run, PandoStatus};

/// A name that an index has, or is to have.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoIndexName {
    /// The position of its dictionary.
    pub dictionary: u32,
    /// The name.
    pub name: PandoBytes,
}

/// A definition of a table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoDefinition {
    /// The server's id.
    pub id: PandoBytes,
    /// A text that differs wherever columns or keys differ.
    pub shape: PandoBytes,
    /// A text that differs wherever other rows belong into the partition; empty: it is none, or that is not known.
    pub partition: PandoBytes,
    /// The server's file; empty where there is none for this very table.
    pub image: PandoBytes,
}

impl PandoDefinition {
    /// # Safety
    /// What it points to is valid for the call.
    pub(crate) unsafe fn to_definition(self) -> Definition {
        // SAFETY: the caller vouches for it.
        unsafe {
            Definition::new(self.id.to_text(), self.shape.as_slice(), self.image.as_slice())
                .with_partition(self.partition.as_slice())
        }
    }
}

/// How the definition by which a table is to be opened stands to the recorded one.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoDefinitionState {
    /// It is the recorded one, or as good.
    Current = 0,
    /// It is the table's, but the record lacks something: [`pando_definition_adopt`] completes it.
    Unrecorded = 1,
    /// It is another one; [`pando_definition_image`] has the right one.
    Outdated = 2,
    /// It is another one: rows would be read wrong.
    Incompatible = 3,
}

/// 1: the table at this path, or its partitions, are as the server's definition with this id says.
///
/// # Safety
/// `db` is open, the texts are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_table_has_definition(
    db: *const PandoDb,
    path: PandoBytes,
    definition: PandoBytes,
) -> u8 {
    // SAFETY: the caller vouches for them.
    let (db, path, definition) = unsafe { (&(*db).db, path.to_known_name(), definition.to_text()) };
    guard(|| u8::from(path.is_some_and(|path| db.has_definition(&path, &definition))))
}

/// How a definition stands to the recorded one. `may_have_image`: the server keeps a file for this very table.
///
/// # Safety
/// `db` is open; `state` may be written; the rest is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_definition_compare(
    db: *const PandoDb,
    path: PandoBytes,
    definition: *const PandoDefinition,
    may_have_image: u8,
    state: *mut PandoDefinitionState,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, path, given, state) =
        unsafe { (&(*db).db, path.to_name(), (*definition).to_definition(), &mut *state) };
    run(|| {
        *state = match db.compare_definition(&path?, &given, may_have_image != 0)? {
            DefinitionState::Current => PandoDefinitionState::Current,
            DefinitionState::Unrecorded => PandoDefinitionState::Unrecorded,
            DefinitionState::Outdated => PandoDefinitionState::Outdated,
            DefinitionState::Incompatible => PandoDefinitionState::Incompatible,
        };
        Ok(PandoStatus::Ok)
    })
}

/// Records a definition that is `Unrecorded`.
///
/// # Safety
/// `db` is open; the rest is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_definition_adopt(
    db: *const PandoDb,
    path: PandoBytes,
    definition: *const PandoDefinition,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, path, given) = unsafe { (&(*db).db, path.to_name(), (*definition).to_definition()) };
    run(|| {
        db.adopt_definition(&path?, given)?;
        Ok(PandoStatus::Ok)
    })
}

/// Writes the id of a table's definition to one buffer, and the server's file to another. `NotFound`: there is no such
/// table, or no image of its definition.
///
/// # Safety
/// `db` is open, the path is valid for the call, the buffers are not in use.
#[no_mangle]
pub unsafe extern "C" fn pando_definition_image(
    db: *const PandoDb,
    path: PandoBytes,
    id: *mut PandoBuffer,
    image: *mut PandoBuffer,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, path, id, image) = unsafe { (&(*db).db, path.to_name(), &mut *id, &mut *image) };
    run(|| match db.definition_image(&path?)? {
        Some((its_id, its_image)) => {
            id.bytes.clear();
            id.bytes.extend_from_slice(its_id.as_bytes());
            image.bytes.clear();
            image.bytes.extend_from_slice(&its_image);
            Ok(PandoStatus::Ok)
        }
        None => Ok(PandoStatus::NotFound),
    })
}

/// 1: there is a table of this name.
///
/// # Safety
/// `db` is open, the path is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_table_exists(db: *const PandoDb, path: PandoBytes) -> u8 {
    // SAFETY: the caller vouches for them.
    let (db, path) = unsafe { (&(*db).db, path.to_known_name()) };
    guard(|| u8::from(path.is_some_and(|path| db.table_exists(&path))))
}

/// 1: no table has this name, and the one with this definition has another: it was renamed.
///
/// # Safety
/// `db` is open, the texts are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_table_is_renamed(db: *const PandoDb, path: PandoBytes, id: PandoBytes) -> u8 {
    // SAFETY: the caller vouches for them.
    let (db, path, id) = unsafe { (&(*db).db, path.to_known_name(), id.to_text()) };
    guard(|| u8::from(path.is_some_and(|path| db.is_renamed(&path, &id))))
}

/// The server is about to make files of the definition with this id under a name that no table has yet. Unless one gets it, they are
/// among the names of [`pando_names_gone_visit`] at the next start.
///
/// # Safety
/// `db` is open, the texts are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_name_expect(
    db: *const PandoDb,
    path: PandoBytes,
    id: PandoBytes,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, path, id) = unsafe { (&(*db).db, path.to_name(), id.to_text()) };
    run(|| {
        db.expect_name(&path?, &id)?;
        Ok(PandoStatus::Ok)
    })
}

/// Calls `visit` with `context`, each name that a table has lost by DROP or RENAME not long before the last stop, and the id
/// of the definition that it had.
///
/// # Safety
/// `db` is open, and `visit` may be called with `context`.
#[no_mangle]
pub unsafe extern "C" fn pando_names_gone_visit(
    db: *const PandoDb,
    context: *mut std::ffi::c_void,
    visit: unsafe extern "C" fn(context: *mut std::ffi::c_void, path: PandoBytes, id: PandoBytes),
) {
    // SAFETY: the caller vouches for it.
    let db = unsafe { &(*db).db };
    for (path, id) in guard(|| db.names_gone()) {
        // SAFETY: the caller vouches for it.
        unsafe {
            visit(context, PandoBytes::from_slice(path.as_bytes()), PandoBytes::from_slice(id.as_bytes()))
        };
    }
}

/// Calls `visit` with `context` and the path of each table whose definition has an image, in order: those of a database
/// (the name of its folder), or with a null pointer all.
///
/// # Safety
/// `db` is open, the name is valid for the call, and `visit` may be called with `context`.
#[no_mangle]
pub unsafe extern "C" fn pando_definitions_visit(
    db: *const PandoDb,
    database: PandoBytes,
    context: *mut std::ffi::c_void,
    visit: unsafe extern "C" fn(context: *mut std::ffi::c_void, path: PandoBytes),
) {
    // SAFETY: the caller vouches for them.
    let (db, database) = unsafe { (&(*db).db, database.as_option()) };
    let paths = guard(|| {
        let database = database.map(std::str::from_utf8);
        match database.transpose() {
            Ok(database) => db.tables_with_images(database),
            Err(_) => Vec::new(),
        }
    });
    for path in paths {
        // SAFETY: the caller vouches for it.
        unsafe { visit(context, PandoBytes::from_slice(path.as_bytes())) };
    }
}
