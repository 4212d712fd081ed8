//! Backups: what sessions say of theirs, and what the server's backup stages mean for them.

use crate::buffer::PandoBuffer;
use crate::bytes::PandoBytes;
use crate::database::PandoDb;
use crate::guard::guard;
use crate::status::{run, PandoStatus};

/// Does what the session asks for its backup; the answer is a line of JSON.
///
/// # Safety
/// `db` is open, `answer` is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_backup_command(
    db: *const PandoDb,
    session: u64,
    command: PandoBytes,
    answer: *mut PandoBuffer,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them.
    let (db, command, answer) = unsafe { (&(*db).db, command.as_slice(), &mut *answer) };
    run(|| {
        answer.bytes = db.backup_command(session, &String::from_utf8_lossy(command))?.into_bytes();
        Ok(PandoStatus::Ok)
    })
}

/// The backup of the session, if it has one, is over.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_backup_end(db: *const PandoDb, session: u64) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*db).db.end_backup(session) });
}

/// The server has stopped all commits: this is the state of the backup that some session has armed, if any.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_backup_pin(db: *const PandoDb) {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { _ = (*db).db.pin_backup() });
}

/// 1: a backup that begins now lacks tables of the engine, because no session has armed one.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_backup_would_lack_tables(db: *const PandoDb) -> u8 {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { u8::from((*db).db.has_tables() && !(*db).db.has_backup()) })
}
