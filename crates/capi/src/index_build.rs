//! Indexes that are added, dropped and renamed while others read and write.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use pandodb::{IndexBuild, IndexPlace, IndexSource, NewIndex};

use crate::bytes::PandoBytes;
use crate::clustering::PandoClustering;
use crate::database::PandoDb;
use crate::guard::guard;
use crate::member::member;
use crate::status::{run, PandoStatus};
use crate::table::PandoTable;
use crate::transaction::PandoTxn;
use crate::watch::{watching, PandoWatch};

/// Indexes that are being built.
#[derive(Debug)]
pub struct PandoBuild {
    /// None once it is finished.
    pub(crate) build: Option<Box<IndexBuild>>,
    catch_ups: u32,
}

/// An index to be added.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoNewIndex {
    /// Its name.
    pub name: PandoBytes,
    /// How its entries are made of rows: given to those who open the table meanwhile.
    pub recipe: PandoBytes,
    /// 1: entries that say so must be alone with their key.
    pub unique: u8,
    /// Whether its entries hold rows.
    pub clustering: MaybeUninit<PandoClustering>,
}

/// An index of a new definition.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoIndexPlace {
    /// Its name.
    pub name: PandoBytes,
    /// 1: one of those that are being built; 0: one that the table has.
    pub is_new: u8,
    /// Its number among those, or the position of its dictionary in the table as it is.
    pub position: u32,
}

/// Runs of the check for unique indexes while others write.
const CATCH_UPS_MAX: u32 = 20;
/// Entries to look at that are few enough for the last run.
const CATCH_UP_DONE: u64 = 500;

/// # Safety
/// `places` points to `count` places, valid for the call.
pub(crate) unsafe fn places_of(
    places: *const PandoIndexPlace,
    count: u32,
) -> pandodb::Result<Vec<IndexPlace>> {
    let mut all = Vec::with_capacity(count as usize);
    for at in 0..count as usize {
        // SAFETY: the caller vouches for the list.
        let place = unsafe { &*places.add(at) };
        let position = place.position as usize;
        let source = if place.is_new != 0 { IndexSource::New(position) } else { IndexSource::Kept(position) };
        // SAFETY: as above.
        all.push(IndexPlace { name: unsafe { place.name.to_name()? }, source });
    }
    Ok(all)
}

/// Begins to add indexes to a table that nobody else uses right now: whoever opens it from now on writes to
/// them, too. Free it with [`pando_build_free`].
///
/// # Safety
/// `db` is open; the list and all it points to are valid for the call; `out` is valid.
#[no_mangle]
pub unsafe extern "C" fn pando_build_begin(
    db: *const PandoDb,
    path: PandoBytes,
    indexes: *const PandoNewIndex,
    count: u32,
    out: *mut *mut PandoBuild,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, path, out) = unsafe { (&(*db).db, path.to_name(), &mut *out) };
    run(|| {
        let mut new = Vec::with_capacity(count as usize);
        for at in 0..count as usize {
            // SAFETY: the caller vouches for the list.
            new.push(unsafe {
                let index = &*indexes.add(at);
                NewIndex {
                    name: index.name.to_name()?,
                    is_unique: index.unique != 0,
                    clustering: member(index.clustering)?.into(),
                    recipe: index.recipe.as_slice().to_vec(),
                }
            });
        }
        let build = Some(db.begin_index_build(&path?, &new)?);
        *out = Box::into_raw(Box::new(PandoBuild { build, catch_ups: 0 }));
        Ok(PandoStatus::Ok)
    })
}

/// Ends a build; if it was not finished, nothing of the indexes stays. Null is allowed.
///
/// # Safety
/// The object is not used any more.
#[no_mangle]
pub unsafe extern "C" fn pando_build_free(build: *mut PandoBuild) {
    guard(|| {
        if !build.is_null() {
            // SAFETY: made by Box::into_raw, and the caller gives it up.
            drop(unsafe { Box::from_raw(build) });
        }
    });
}

/// A transaction that sees the rows of which the bases are to be made: to scan dictionary 0 with
/// `PANDO_READ_SNAPSHOT`. Null the second time. Free it with `pando_txn_free`.
///
/// # Safety
/// The build is alive and not finished.
#[no_mangle]
pub unsafe extern "C" fn pando_build_reader(build: *mut PandoBuild) -> *mut PandoTxn {
    // SAFETY: the caller vouches for it.
    let build = unsafe { &mut (*build).build };
    guard(|| match build.as_mut().and_then(|build| build.take_reader()) {
        Some(txn) => Box::into_raw(Box::new(PandoTxn::new(txn))),
        None => std::ptr::null_mut(),
    })
}

/// Takes an entry of the base of the `index`-th new index.
///
/// # Safety
/// The build is alive and not finished; the bytes are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_build_add(
    build: *mut PandoBuild,
    index: u32,
    key: PandoBytes,
    value: PandoBytes,
) {
    // SAFETY: the caller vouches for them.
    let (build, key, value) = unsafe { (&mut (*build).build, key.as_slice(), value.as_slice()) };
    guard(|| {
        if let Some(build) = build {
            build.add(index as usize, key, value);
        }
    });
}

/// Before more entries: waits while those of all builds and loads that nobody has sorted yet take all that they may. `watch` is called every
/// few milliseconds meanwhile. 0: it said so, or the build is bound to fail.
///
/// # Safety
/// The build is alive and not finished; `watch` may be called with `context` on this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_build_wait(
    build: *mut PandoBuild,
    watch: PandoWatch,
    context: *mut c_void,
) -> u8 {
    // SAFETY: the caller vouches for them.
    let (build, mut watch) = unsafe { (&mut (*build).build, watching(watch, context)) };
    guard(|| u8::from(build.as_mut().is_none_or(|build| build.wait_for_room(&mut || watch(0.0)))))
}

/// All entries have been added: sorts and writes them, and checks what was written meanwhile, until little is
/// left for the change of the catalog ([`crate::pando_tables_alter`]). `Duplicate`: see [`pando_build_duplicate`]. `Killed`: `watch` said so.
///
/// # Safety
/// The build is alive and not finished; `watch` may be called with `context` on this thread.
#[no_mangle]
pub unsafe extern "C" fn pando_build_bases(
    build: *mut PandoBuild,
    watch: PandoWatch,
    context: *mut c_void,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (build, mut watch) = unsafe { (&mut *build, watching(watch, context)) };
    run(|| {
        let Some(its) = &mut build.build else { return Ok(PandoStatus::Ok) };
        its.finish_bases(&mut watch)?;
        its.settle(&mut || !watch(1.0))?;
        loop {
            let seen = its.catch_up(&mut || !watch(1.0))?;
            build.catch_ups += 1;
            if seen <= CATCH_UP_DONE || build.catch_ups >= CATCH_UPS_MAX {
                break;
            }
        }
        its.secure()?;
        its.catch_up(&mut || !watch(1.0))?;
        Ok(PandoStatus::Ok)
    })
}

/// After `Duplicate`: the number of the new index, key and value of an entry that is not alone; valid until the
/// build is freed. `u32::MAX`: there is none.
///
/// # Safety
/// The build is alive, `key` and `value` are valid.
#[no_mangle]
pub unsafe extern "C" fn pando_build_duplicate(
    build: *const PandoBuild,
    key: *mut PandoBytes,
    value: *mut PandoBytes,
) -> u32 {
    // SAFETY: the caller vouches for them.
    let (build, key, value) = unsafe { (&(*build).build, &mut *key, &mut *value) };
    guard(|| match build.as_ref().and_then(|build| build.duplicate()) {
        Some((index, its_key, its_value)) => {
            *key = PandoBytes::from_slice(its_key);
            *value = PandoBytes::from_slice(its_value);
            index as u32
        }
        None => u32::MAX,
    })
}

/// How many indexes were being built when the table was opened: rows have an entry for each, after those of
/// the dictionaries.
///
/// # Safety
/// The table is open.
#[no_mangle]
pub unsafe extern "C" fn pando_table_building(table: *const PandoTable) -> u32 {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { (*table).table.building().len() as u32 })
}

/// How entries of the `index`-th of them are made; valid while the table is open. Empty if there are not so many.
///
/// # Safety
/// The table is open.
#[no_mangle]
pub unsafe extern "C" fn pando_table_building_recipe(table: *const PandoTable, index: u32) -> PandoBytes {
    // SAFETY: the caller vouches for it.
    let table = unsafe { &(*table).table };
    guard(|| {
        let building = table.building().get(index as usize);
        PandoBytes::from_slice(building.map_or(&[][..], |building| building.recipe()))
    })
}

/// 1 once the index will not come: its entries can be left empty. Likewise if there are not so many.
///
/// # Safety
/// The table is open.
#[no_mangle]
pub unsafe extern "C" fn pando_table_building_is_over(table: *const PandoTable, index: u32) -> u8 {
    // SAFETY: the caller vouches for it.
    let table = unsafe { &(*table).table };
    guard(|| u8::from(table.building().get(index as usize).is_none_or(|building| building.is_over())))
}
