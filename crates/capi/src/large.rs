//! Large values: stored apart from the rows that refer to them (`pandodb`'s `table/large.rs`).

use pandodb::large::{must_be_apart, Reference, REFERENCE_BYTES};
use pandodb::LargeValue;

use crate::buffer::PandoBuffer;
use crate::bytes::PandoBytes;
use crate::guard::guard;
use crate::status::PandoStatus;
use crate::table::PandoTable;
use crate::transaction::PandoTxn;

/// A large value that is written with its row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoLargeValue {
    /// Its number: [`pando_table_next_large_value`].
    pub id: u64,
    /// The value.
    pub bytes: PandoBytes,
}

/// # Safety
/// `values` points to `count` values whose bytes stay for the call, or `count` is 0.
pub(crate) unsafe fn large_values<'a>(values: *const PandoLargeValue, count: u32) -> Vec<LargeValue<'a>> {
    if count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller vouches for it.
    let values = unsafe { std::slice::from_raw_parts(values, count as usize) };
    // SAFETY: as above.
    values.iter().map(|value| LargeValue { id: value.id, bytes: unsafe { value.bytes.as_slice() } }).collect()
}

/// 1 if a value of a column of kind `Large` is to be stored apart from its row.
///
/// # Safety
/// The bytes are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_large_is_apart(value: PandoBytes) -> u8 {
    // SAFETY: the caller vouches for them.
    guard(|| u8::from(must_be_apart(unsafe { value.as_slice() })))
}

/// 1 if what a row has in a column of kind `Large` is a reference.
///
/// # Safety
/// The bytes are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_large_is_reference(value: PandoBytes) -> u8 {
    // SAFETY: the caller vouches for them.
    guard(|| u8::from(Reference::decode(unsafe { value.as_slice() }).is_some()))
}

/// Gives a value that is to be stored apart a number, and writes what its row has in place of it: 24 bytes. 0: all values of this table
/// are stored in its rows.
///
/// # Safety
/// The table is open; `id` and the 24 bytes at `reference` are valid.
#[no_mangle]
pub unsafe extern "C" fn pando_table_next_large_value(
    table: *const PandoTable,
    size: u64,
    id: *mut u64,
    reference: *mut u8,
) -> u8 {
    // SAFETY: the caller vouches for all of them.
    let (table, id) = unsafe { (&(*table).table, &mut *id) };
    // SAFETY: as above.
    let reference = unsafe { std::slice::from_raw_parts_mut(reference, REFERENCE_BYTES) };
    guard(|| {
        let Some(next) = table.next_large_value() else { return 0 };
        *id = next;
        reference.copy_from_slice(&Reference { id: next, length: size }.encode());
        1
    })
}

/// Reads the value that a row refers to into `buffer`. `is_locked`: 1 if the transaction has locked the row or was given its newest
/// state, 0 if consistent reads gave it. `NotFound`: the row has changed since it was read without a lock.
///
/// # Safety
/// All objects are alive, the transaction and the buffer belong to this thread, the bytes are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_txn_large_value(
    txn: *mut PandoTxn,
    table: *const PandoTable,
    reference: PandoBytes,
    is_locked: u8,
    buffer: *mut PandoBuffer,
) -> PandoStatus {
    // SAFETY: the caller vouches for all of them.
    let (txn, table, reference, buffer) =
        unsafe { (&mut *txn, &(*table).table, reference.as_slice(), &mut (*buffer).bytes) };
    txn.run(|PandoTxn { txn, .. }| {
        let Some(reference) = Reference::decode(reference) else { return Ok(PandoStatus::NotFound) };
        Ok(match txn.large_value(table, reference, is_locked != 0)? {
            Some(value) => {
                *buffer = value;
                PandoStatus::Ok
            }
            None => PandoStatus::NotFound,
        })
    })
}
