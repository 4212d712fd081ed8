//! The server's files of partitioned tables.

use pandodb::ServerFiles;

use crate::buffer::PandoBuffer;
use crate::bytes::PandoBytes;
use crate::database::PandoDb;
use crate::guard::guard;
use crate::status::{run, PandoStatus};

/// Both files of a partitioned table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoServerFiles {
    /// `./database/table`; empty: there are none.
    pub path: PandoBytes,
    /// The server's id of the definition.
    pub id: PandoBytes,
    /// The bytes of `NAME.frm`.
    pub definition: PandoBytes,
    /// The bytes of `NAME.par`.
    pub partitions: PandoBytes,
}

impl PandoServerFiles {
    /// # Safety
    /// What it points to is valid for the call.
    pub(crate) unsafe fn to_files(self) -> Option<ServerFiles> {
        // SAFETY: the caller vouches for it.
        let (path, id, definition, partitions) = unsafe {
            (
                self.path.to_known_name()?,
                self.id.to_text(),
                self.definition.as_slice(),
                self.partitions.as_slice(),
            )
        };
        if path.is_empty() {
            return None;
        }
        ServerFiles::new(&path, &id, definition, partitions)
    }
}

/// Records the files that a table has from now on. `lazy`: a crash may lose that. `NotFound`: they are not whole files.
///
/// # Safety
/// `db` is open; the rest is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_server_files_record(
    db: *const PandoDb,
    files: *const PandoServerFiles,
    lazy: u8,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, files) = unsafe { (&(*db).db, (*files).to_files()) };
    run(|| {
        let Some(files) = files else { return Ok(PandoStatus::NotFound) };
        db.record_server_files(files, lazy != 0)?;
        Ok(PandoStatus::Ok)
    })
}

/// Writes what is recorded of a table into three buffers. `NotFound`: nothing is.
///
/// # Safety
/// `db` is open, the path is valid for the call, the buffers are not in use.
#[no_mangle]
pub unsafe extern "C" fn pando_server_files_get(
    db: *const PandoDb,
    path: PandoBytes,
    id: *mut PandoBuffer,
    definition: *mut PandoBuffer,
    partitions: *mut PandoBuffer,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, path) = unsafe { (&(*db).db, path.to_name()) };
    // SAFETY: as above.
    let (id, definition, partitions) = unsafe { (&mut *id, &mut *definition, &mut *partitions) };
    run(|| {
        let Some(files) = db.server_files(&path?) else { return Ok(PandoStatus::NotFound) };
        id.bytes.clear();
        id.bytes.extend_from_slice(files.id().as_bytes());
        definition.bytes = files.definition()?;
        partitions.bytes = files.partitions()?;
        Ok(PandoStatus::Ok)
    })
}

/// 1: the recorded files of this table have this id.
///
/// # Safety
/// `db` is open, the texts are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_server_files_are(db: *const PandoDb, path: PandoBytes, id: PandoBytes) -> u8 {
    // SAFETY: the caller vouches for them.
    let (db, path, id) = unsafe { (&(*db).db, path.to_known_name(), id.to_text()) };
    let files = || path.and_then(|path| db.server_files(&path));
    guard(|| u8::from(files().is_some_and(|files| files.id() == id)))
}

/// 1: there are partitions of the table at this path, whatever is recorded of its files.
///
/// # Safety
/// `db` is open, the path is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_has_partitions(db: *const PandoDb, path: PandoBytes) -> u8 {
    // SAFETY: the caller vouches for both.
    let (db, path) = unsafe { (&(*db).db, path.to_text()) };
    guard(|| u8::from(db.has_partitions(&path)))
}

/// 1: the server's definition with this id is that of a partitioned table, by any name that people know it by.
///
/// # Safety
/// `db` is open, the text is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_has_partitions_of(db: *const PandoDb, id: PandoBytes) -> u8 {
    // SAFETY: the caller vouches for them.
    let (db, id) = unsafe { (&(*db).db, id.to_text()) };
    guard(|| u8::from(db.has_partitions_of(&id)))
}

/// 1: a `NAME.par` with these bytes names exactly the partitions that there are.
///
/// # Safety
/// `db` is open, the bytes are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_server_files_fit(
    db: *const PandoDb,
    path: PandoBytes,
    partitions: PandoBytes,
) -> u8 {
    // SAFETY: the caller vouches for them.
    let (db, path, partitions) = unsafe { (&(*db).db, path.to_known_name(), partitions.as_slice()) };
    guard(|| u8::from(path.is_some_and(|path| db.server_files_fit(&path, partitions))))
}

/// Forgets the files of a table, if it has no partitions.
///
/// # Safety
/// `db` is open, the path is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_server_files_forget(db: *const PandoDb, path: PandoBytes) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, path) = unsafe { (&(*db).db, path.to_name()) };
    run(|| {
        db.forget_server_files(&path?)?;
        Ok(PandoStatus::Ok)
    })
}

/// Drops what a CREATE TABLE has left that was not finished: the table at this path, or all partitions of the table of this name, if
/// none of them has a row. `PANDO_STATUS_NOT_FOUND`: nothing was dropped. Nobody may use them.
///
/// # Safety
/// `db` is open, the path is valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_table_drop_if_empty(db: *const PandoDb, path: PandoBytes) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, path) = unsafe { (&(*db).db, path.to_name()) };
    run(|| Ok(if db.drop_if_empty(&path?)? { PandoStatus::Ok } else { PandoStatus::NotFound }))
}

/// Calls `visit` with `context` and the path of each table whose files are recorded, in order: those of a database (the name of
/// its folder), or with a null pointer all.
///
/// # Safety
/// `db` is open, the name is valid for the call, and `visit` may be called with `context`.
#[no_mangle]
pub unsafe extern "C" fn pando_server_files_visit(
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
            Ok(database) => db.tables_with_server_files(database),
            Err(_) => Vec::new(),
        }
    });
    for path in paths {
        // SAFETY: the caller vouches for it.
        unsafe { visit(context, PandoBytes::from_slice(path.as_bytes())) };
    }
}

/// Whether a table whose `NAME.par` has these bytes lacks partitions that another name has, as a RENAME TABLE may have left them: then
/// that name is written to `half`. `NotFound`: it does not.
///
/// # Safety
/// `db` is open, the rest is valid for the call, the buffer is not in use.
#[no_mangle]
pub unsafe extern "C" fn pando_table_other_half(
    db: *const PandoDb,
    path: PandoBytes,
    partitions: PandoBytes,
    half: *mut PandoBuffer,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, path, partitions, half) =
        unsafe { (&(*db).db, path.to_name(), partitions.as_slice(), &mut *half) };
    run(|| {
        let Some(found) = db.other_half(&path?, partitions) else { return Ok(PandoStatus::NotFound) };
        half.bytes.clear();
        half.bytes.extend_from_slice(found.as_bytes());
        Ok(PandoStatus::Ok)
    })
}

/// Gives the partitions of that name to the table.
///
/// # Safety
/// `db` is open, the texts are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_table_join_halves(
    db: *const PandoDb,
    path: PandoBytes,
    half: PandoBytes,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, path, half) = unsafe { (&(*db).db, path.to_name(), half.to_name()) };
    run(|| {
        db.join_halves(&path?, &half?)?;
        Ok(PandoStatus::Ok)
    })
}
