//! Bulk loads: batches of rows in the server's form, encoded by a function of the server on worker threads.

use std::ffi::c_void;
use std::sync::Arc;

use pandodb::{Admission, BulkLoad, EngineError, Entries, Error, LoadEnd, LoadMemory, Notes, RowEncoder};

use crate::bytes::PandoBytes;
use crate::guard::guard;
use crate::member::choice;
use crate::status::{run, PandoStatus};
use crate::table::PandoTable;
use crate::transaction::PandoTxn;
use crate::watch::{watching, PandoWatch};

/// A load under way; it belongs to the transaction it was begun with.
#[derive(Debug)]
pub struct PandoLoad {
    load: BulkLoad<Callbacks>,
}

/// Where an encoder puts the entries of a batch.
#[derive(Debug)]
pub struct PandoEntries<'a> {
    entries: &'a mut [Entries],
    /// One was for a dictionary that is not there.
    is_astray: bool,
}

/// Functions of the server that know its rows. `encode` and `free_batch` are called on any thread, several at
/// once, each batch once by either of them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoEncoder {
    /// Handed to the functions; freed when the load and its last batch are gone.
    pub context: *mut c_void,
    /// Adds the entries of all rows of a batch ([`pando_entries_add`]) and frees it. 0, or an error's number.
    pub encode: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut PandoEntries<'_>) -> i32>,
    /// Frees a batch.
    pub free_batch: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    /// Frees the context.
    pub free_context: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// A number no error of the server has: an entry was for a dictionary that the table does not have.
const NO_DICTIONARY: i32 = -1;

#[derive(Debug)]
struct Context(PandoEncoder);

// SAFETY: the caller of `pando_load_begin` vouches that the functions may be called from any thread.
unsafe impl Send for Context {}
// SAFETY: likewise.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(free) = self.0.free_context {
            // SAFETY: nobody has the context any more.
            unsafe { free(self.0.context) };
        }
    }
}

#[derive(Debug)]
struct Callbacks(std::sync::Arc<Context>);

#[derive(Debug)]
struct Batch {
    context: std::sync::Arc<Context>,
    batch: *mut c_void,
}

// SAFETY: as for `Context`.
unsafe impl Send for Batch {}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(free) = self.context.0.free_batch.filter(|_| !self.batch.is_null()) {
            // SAFETY: it was not encoded, and nobody else has it.
            unsafe { free(self.context.0.context, self.batch) };
        }
    }
}

impl RowEncoder for Callbacks {
    type Batch = Batch;

    fn encode(&self, mut batch: Batch, entries: &mut [Entries]) -> Result<(), i32> {
        let mut sink = PandoEntries { entries, is_astray: false };
        let given = std::mem::replace(&mut batch.batch, std::ptr::null_mut());
        let encoder = &self.0 .0;
        let Some(encode) = encoder.encode else { unreachable!("an encoder encodes") };
        // SAFETY: the caller of `pando_load_begin` vouches for the function; it frees the batch.
        match unsafe { encode(encoder.context, given, &mut sink) } {
            _ if sink.is_astray => Err(NO_DICTIONARY),
            0 => Ok(()),
            code => Err(code),
        }
    }
}

/// For an encoder: adds the entry that the batch's next row has in a dictionary. If it is too long, or there is no such dictionary, the
/// load's end says so (`TooLong`, `BadArgument`).
///
/// # Safety
/// `sink` is what the encoder was given, the bytes are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_entries_add(
    sink: *mut PandoEntries<'_>,
    dictionary: u32,
    key: PandoBytes,
    value: PandoBytes,
) {
    guard(|| {
        // SAFETY: the caller vouches for all of them.
        let (sink, key, value) = unsafe { (&mut *sink, key.as_slice(), value.as_slice()) };
        match sink.entries.get_mut(dictionary as usize) {
            Some(entries) => entries.push(key, value),
            None => sink.is_astray = true,
        }
    });
}

/// 1 if the transaction has written to the table: then a load of it begins only where all of that is undone before.
///
/// # Safety
/// Both are alive, and the transaction belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_has_written_to(txn: *const PandoTxn, table: *const PandoTable) -> u8 {
    // SAFETY: the caller vouches for both.
    let (txn, table) = unsafe { (&*txn, &(*table).table) };
    guard(|| u8::from(txn.txn.has_written_to(table)))
}

/// Begins a load. `load` is null afterwards if rows are to be inserted one by one: if there is no memory for one more load; where `beside` is 0,
/// if there is something in the table, or
/// if others are at work in it; else if this transaction has written to it. Where it is 2, the load wants to be asked
/// for each row if it is beside others ([`pando_load_is_by_row`]). `unique[i]` is 1 if keys of dictionary `i` can be
/// equal. The first `counted` rows were inserted one by one before, and undone. The encoder's context is given up whatever comes back.
///
/// # Safety
/// All objects are alive, the transaction belongs to this thread, `unique` has `count` bytes; the encoder's
/// functions may be called from any thread.
#[no_mangle]
pub unsafe extern "C" fn pando_load_begin(
    txn: *mut PandoTxn,
    table: *const PandoTable,
    unique: *const u8,
    count: u32,
    counted: u64,
    beside: u8,
    encoder: PandoEncoder,
    load: *mut *mut PandoLoad,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them.
    let (txn, table, unique, load) = unsafe {
        (&mut *txn, &(*table).table, std::slice::from_raw_parts(unique, count as usize), &mut *load)
    };
    *load = std::ptr::null_mut();
    let callbacks = std::sync::Arc::new(Context(encoder));
    run(|| {
        if !txn.txn.db().has_room_for_load(table) {
            return Ok(PandoStatus::Ok);
        }
        choice("beside", beside, 2)?;
        let unique: Vec<bool> = unique.iter().map(|unique| *unique != 0).collect();
        let encoder = || Callbacks(callbacks.clone());
        let alone = txn.txn.begin_load(table, &unique, encoder())?;
        let begun = match alone {
            None if beside == 1 => txn.txn.begin_load_beside(table, &unique, encoder())?,
            None if beside == 2 => txn.txn.begin_load_by_row(table, &unique, encoder())?,
            begun => begun,
        };
        if let Some(mut begun) = begun {
            begun.set_counted(counted);
            *load = Box::into_raw(Box::new(PandoLoad { load: begun }));
        }
        Ok(PandoStatus::Ok)
    })
}

/// A key of a row that must be alone in its dictionary.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoLoneKey {
    /// The dictionary.
    pub dictionary: u32,
    /// The key.
    pub key: PandoBytes,
}

/// What becomes of a row ([`pando_load_admit`]).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoAdmission {
    /// None of its keys is there; they are noted if that was asked for.
    New,
    /// One is there, in the table or the load; nothing is noted.
    Seen,
    /// There is no memory to tell; nothing is noted.
    Full,
}

/// What rows take that may become a load's; counted until it is freed.
#[derive(Debug)]
pub struct PandoLoadHold {
    memory: Arc<LoadMemory>,
    bytes: u64,
}

impl Drop for PandoLoadHold {
    fn drop(&mut self) {
        self.memory.let_go(self.bytes);
    }
}

/// Counts nothing yet; free it with [`pando_load_hold_free`].
///
/// # Safety
/// The transaction is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_load_hold_new(txn: *const PandoTxn) -> *mut PandoLoadHold {
    // SAFETY: the caller vouches for it.
    let txn = unsafe { &*txn };
    guard(|| Box::into_raw(Box::new(PandoLoadHold { memory: txn.txn.db().load_memory(), bytes: 0 })))
}

/// Counts `bytes` more: 0 if there is no memory for them.
///
/// # Safety
/// It is alive, and nobody else's meanwhile.
#[no_mangle]
pub unsafe extern "C" fn pando_load_hold_more(hold: *mut PandoLoadHold, bytes: u64) -> u8 {
    // SAFETY: the caller vouches for it.
    let hold = unsafe { &mut *hold };
    guard(|| {
        let has_room = hold.memory.hold_copies(bytes);
        hold.bytes += if has_room { bytes } else { 0 };
        u8::from(has_room)
    })
}

/// The bytes are counted no longer. Null is allowed.
///
/// # Safety
/// It came from [`pando_load_hold_new`] and is not used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_load_hold_free(hold: *mut PandoLoadHold) {
    guard(|| {
        if !hold.is_null() {
            // SAFETY: made by Box::into_raw, and the caller gives it up.
            drop(unsafe { Box::from_raw(hold) });
        }
    });
}

/// 1 if [`pando_load_admit`] is to be called for each row: the load is beside others, and locks the keys of a row before it joins.
///
/// # Safety
/// The load is alive.
#[no_mangle]
pub unsafe extern "C" fn pando_load_is_by_row(load: *const PandoLoad) -> u8 {
    // SAFETY: the caller vouches for it.
    let load = unsafe { &(*load).load };
    guard(|| u8::from(load.is_by_row()))
}

/// Where the caller has to know of each row at once whether its keys are there: asks before the row is added to a
/// batch. `notes`: 0 if no two rows of the load have equal keys, 1 if they may have, 2 if keys have ascended so far: then the caller goes on with 0 when
/// it is `Full`. If one is there, `seen` is its position among `keys`.
///
/// # Safety
/// All objects are alive, the transaction is the one the load was begun with and belongs to this thread; `keys` has `count` elements with
/// valid bytes, `admission` and `seen` are valid.
#[no_mangle]
pub unsafe extern "C" fn pando_load_admit(
    txn: *mut PandoTxn,
    load: *mut PandoLoad,
    keys: *const PandoLoneKey,
    count: u32,
    notes: u8,
    admission: *mut PandoAdmission,
    seen: *mut u32,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them.
    let (txn, load, admission, seen) =
        unsafe { (&mut (*txn).txn, &mut (*load).load, &mut *admission, &mut *seen) };
    let keys: &[PandoLoneKey] = match count {
        0 => &[],
        // SAFETY: as above.
        count => unsafe { std::slice::from_raw_parts(keys, count as usize) },
    };
    run(|| {
        let notes = match choice("notes", notes, 2)? {
            0 => Notes::None,
            1 => Notes::All,
            _ => Notes::WhileRoom,
        };
        // SAFETY: as above.
        let lone = keys.iter().map(|lone| (lone.dictionary as usize, unsafe { lone.key.as_slice() }));
        *admission = match txn.admit_to_load(load, lone, notes)? {
            Admission::New => PandoAdmission::New,
            Admission::Seen(position) => {
                *seen = position as u32;
                PandoAdmission::Seen
            }
            Admission::Full => PandoAdmission::Full,
        };
        Ok(PandoStatus::Ok)
    })
}

/// Hands over a batch of `rows` rows that takes `bytes` of memory; the load frees it. 0: the load is bound to
/// fail, and its end will say why. `watch` is called every few milliseconds while it waits for room; when it says so the load is to be
/// ended.
///
/// # Safety
/// The load is alive and belongs to this thread; the batch is what its encoder takes.
#[no_mangle]
pub unsafe extern "C" fn pando_load_submit(
    load: *mut PandoLoad,
    batch: *mut c_void,
    rows: u64,
    bytes: u64,
    watch: PandoWatch,
    watched: *mut c_void,
) -> u8 {
    // SAFETY: the caller vouches for both.
    let (load, mut look) = unsafe { (&mut (*load).load, watching(watch, watched)) };
    guard(|| {
        let batch = Batch { context: load.encoder().0.clone(), batch };
        u8::from(load.submit_while(batch, rows, bytes, &mut || look(0.0)))
    })
}

/// How many bytes a batch should have now: it changes with the number of loads.
///
/// # Safety
/// The load is alive and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_load_batch_bytes(load: *mut PandoLoad) -> u64 {
    // SAFETY: the caller vouches for it.
    let load = unsafe { &mut (*load).load };
    guard(|| load.batch_bytes())
}

/// Ends a load and frees it: its rows are written if it says `Ok`. `Duplicate`: [`pando_txn_duplicate`] and
/// [`pando_load_duplicate`] tell of the first row in the order of the batches that has the key of an earlier one.
/// `Killed`: `watch` said so. `Refused`: `refused` is what the encoder said. `watch` is called every few
/// milliseconds.
///
/// # Safety
/// All objects are alive, the transaction is the one the load was begun with and belongs to this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_load_finish(
    txn: *mut PandoTxn,
    load: *mut PandoLoad,
    watch: PandoWatch,
    watched: *mut c_void,
    refused: *mut i32,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them and gives the load up.
    let (txn, load, refused) = unsafe { (&mut *txn, Box::from_raw(load), &mut *refused) };
    // SAFETY: the caller vouches for the function.
    let mut look = unsafe { watching(watch, watched) };
    *refused = 0;
    run(|| match txn.txn.finish_load(load.load, &mut look)? {
        LoadEnd::Loaded => Ok(PandoStatus::Ok),
        LoadEnd::Duplicate { index, key, value, existing } => {
            txn.set_duplicate(index, existing, key, value);
            Err(Error::Duplicate { index, existing: Vec::new() })
        }
        LoadEnd::Refused(NO_DICTIONARY) => {
            let what =
                "the encoder of a load has added an entry to a dictionary that the table does not have";
            Err(EngineError::argument(what).into())
        }
        LoadEnd::Refused(code) => {
            *refused = code;
            Ok(PandoStatus::Refused)
        }
        LoadEnd::Cancelled => Err(Error::Killed),
    })
}

/// Gives a load up and frees it. Null is allowed.
///
/// # Safety
/// The load is not used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_load_abort(load: *mut PandoLoad) {
    guard(|| {
        if !load.is_null() {
            // SAFETY: made by Box::into_raw, and the caller gives it up.
            drop(unsafe { Box::from_raw(load) });
        }
    });
}

/// After `Duplicate` of a load: the entry of the row that came second, valid until the next change through
/// this transaction.
///
/// # Safety
/// The transaction is alive and belongs to this thread, `key` and `value` are valid.
#[no_mangle]
pub unsafe extern "C" fn pando_load_duplicate(
    txn: *const PandoTxn,
    key: *mut PandoBytes,
    value: *mut PandoBytes,
) {
    // SAFETY: the caller vouches for all of them.
    let (txn, key, value) = unsafe { (&*txn, &mut *key, &mut *value) };
    guard(|| {
        let (found_key, found_value) = txn.loaded_duplicate();
        *key = PandoBytes::from_slice(found_key);
        *value = PandoBytes::from_slice(found_value);
    });
}
