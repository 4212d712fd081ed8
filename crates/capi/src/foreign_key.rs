//! Foreign keys: given with a table's definition, and asked for.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use pandodb::{ForeignKey, NewName, ReferentialAction};

use crate::bytes::PandoBytes;
use crate::database::PandoDb;
use crate::guard::guard;
use crate::layout::list;
use crate::member::member;
use crate::status::{run, PandoStatus};

/// What becomes of children when their parent goes, or its key changes.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PandoReferentialAction {
    /// The statement fails.
    Restrict = 0,
    /// The same, by another name.
    NoAction = 1,
    /// They go, too, or their key changes likewise.
    Cascade = 2,
    /// Their columns become NULL.
    SetNull = 3,
}

crate::member::members! {
    PandoReferentialAction: Restrict NoAction Cascade SetNull;
}

/// A constraint.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PandoForeignKey {
    /// Its name.
    pub name: PandoBytes,
    /// Path of the child; where a constraint is given, it is the table that has it.
    pub child: PandoBytes,
    /// Path of the parent.
    pub parent: PandoBytes,
    /// The child's columns.
    pub columns: *const PandoBytes,
    /// The parent's columns, as many.
    pub parent_columns: *const PandoBytes,
    /// How many.
    pub column_count: u32,
    /// When the parent goes.
    pub on_delete: MaybeUninit<PandoReferentialAction>,
    /// When the parent's key changes.
    pub on_update: MaybeUninit<PandoReferentialAction>,
}

fn action_of(given: MaybeUninit<PandoReferentialAction>) -> pandodb::Result<ReferentialAction> {
    Ok(match member(given)? {
        PandoReferentialAction::Restrict => ReferentialAction::Restrict,
        PandoReferentialAction::NoAction => ReferentialAction::NoAction,
        PandoReferentialAction::Cascade => ReferentialAction::Cascade,
        PandoReferentialAction::SetNull => ReferentialAction::SetNull,
    })
}

fn view_of(action: ReferentialAction) -> MaybeUninit<PandoReferentialAction> {
    MaybeUninit::new(match action {
        ReferentialAction::Restrict => PandoReferentialAction::Restrict,
        ReferentialAction::NoAction => PandoReferentialAction::NoAction,
        ReferentialAction::Cascade => PandoReferentialAction::Cascade,
        ReferentialAction::SetNull => PandoReferentialAction::SetNull,
    })
}

/// # Safety
/// There are `count` names, valid for the call.
pub(crate) unsafe fn names_of(first: *const PandoBytes, count: u32) -> pandodb::Result<Vec<String>> {
    // SAFETY: the caller vouches for it.
    let given = unsafe { list(first, count) }.unwrap_or_default();
    // SAFETY: as above.
    given.iter().map(|name| unsafe { name.to_name() }).collect()
}

/// Old and new names, in turn.
pub(crate) fn names_in_pairs(names: Vec<String>) -> Vec<(String, String)> {
    names.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

/// # Safety
/// There are `count` constraints, which are valid for the call with all they point to.
pub(crate) unsafe fn foreign_keys_of(
    first: *const PandoForeignKey,
    count: u32,
) -> pandodb::Result<Vec<ForeignKey>> {
    // SAFETY: the caller vouches for it.
    let given = unsafe { list(first, count) }.unwrap_or_default();
    let one = |key: &PandoForeignKey| {
        // SAFETY: the caller vouches for all that it points to.
        unsafe {
            Ok(ForeignKey {
                name: key.name.to_name()?,
                columns: names_of(key.columns, key.column_count)?,
                parent: key.parent.to_name()?,
                parent_columns: names_of(key.parent_columns, key.column_count)?,
                on_delete: action_of(key.on_delete)?,
                on_update: action_of(key.on_update)?,
            })
        }
    };
    given.iter().map(one).collect()
}

/// Calls `visit` with `context` and each constraint of the table at this path: those in which it is the child, or (`as_parent`)
/// those in which it is the parent, in the order of databases and names. What it is called with is valid for the call.
///
/// # Safety
/// `db` is open, the path is valid for the call, and `visit` may be called with `context`.
#[no_mangle]
pub unsafe extern "C" fn pando_foreign_keys_visit(
    db: *const PandoDb,
    path: PandoBytes,
    as_parent: u8,
    context: *mut c_void,
    visit: unsafe extern "C" fn(context: *mut c_void, key: *const PandoForeignKey),
) {
    // SAFETY: the caller vouches for them.
    let (db, path) = unsafe { (&(*db).db, path.to_known_name()) };
    let Some(path) = path else { return };
    let keys: Vec<(String, ForeignKey)> = guard(|| match as_parent {
        0 => db.foreign_keys(&path).into_iter().map(|key| (path.clone(), key)).collect(),
        _ => db.references_to(&path),
    });
    for (child, key) in &keys {
        let views = |names: &[String]| -> Vec<PandoBytes> {
            names.iter().map(|name| PandoBytes::from_slice(name.as_bytes())).collect()
        };
        let (columns, parent_columns) = (views(&key.columns), views(&key.parent_columns));
        let view = PandoForeignKey {
            name: PandoBytes::from_slice(key.name.as_bytes()),
            child: PandoBytes::from_slice(child.as_bytes()),
            parent: PandoBytes::from_slice(key.parent.as_bytes()),
            columns: columns.as_ptr(),
            parent_columns: parent_columns.as_ptr(),
            column_count: columns.len().min(parent_columns.len()) as u32,
            on_delete: view_of(key.on_delete),
            on_update: view_of(key.on_update),
        };
        // SAFETY: the caller vouches for it.
        unsafe { visit(context, &view) };
    }
}

/// 1: a table of this database (the name of its folder), other than the one at `except`, has a constraint of this name.
///
/// # Safety
/// `db` is open, the texts are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_foreign_key_exists(
    db: *const PandoDb,
    database: PandoBytes,
    name: PandoBytes,
    except: PandoBytes,
) -> u8 {
    // SAFETY: the caller vouches for them.
    let (db, database, name, except) =
        unsafe { (&(*db).db, database.to_known_name(), name.to_known_name(), except.to_known_name()) };
    let has = |database: String, name: String| {
        // What is no name leaves nothing out.
        db.has_foreign_key(&database, &name, &except.unwrap_or_default())
    };
    guard(|| u8::from(database.zip(name).is_some_and(|(database, name)| has(database, name))))
}

/// Grows whenever a table is made, dropped, renamed or altered. What was learnt of constraints before may not hold any more.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_schema_version(db: *const PandoDb) -> u64 {
    // SAFETY: the caller vouches for it.
    let db = unsafe { &(*db).db };
    guard(|| db.schema_version())
}

/// Renames a table, also into another database. `old_name` and `new_name` are the table's names as constraints that were named
/// after it have them. `copied`: where a copy gets another name than the table that it replaces, that one's path; empty otherwise.
/// `statement`: a number by which the same one may rename back until [`pando_ways_back_end`]; 0: none does. With a partition that moves
/// into another table go all of that table.
///
/// # Safety
/// `db` is open, the texts are valid for the call.
#[no_mangle]
pub unsafe extern "C" fn pando_table_rename(
    db: *const PandoDb,
    from: PandoBytes,
    to: PandoBytes,
    old_name: PandoBytes,
    new_name: PandoBytes,
    copied: PandoBytes,
    statement: u64,
) -> PandoStatus {
    // SAFETY: the caller vouches for them.
    let (db, from, to) = unsafe { (&(*db).db, from.to_name(), to.to_name()) };
    // SAFETY: as above.
    let (old_name, new_name, copied) = unsafe { (old_name.to_name(), new_name.to_name(), copied.to_name()) };
    run(|| {
        let (from, to, old_name, new_name, copied) = (from?, to?, old_name?, new_name?, copied?);
        let copied = Some(&*copied).filter(|path| !path.is_empty());
        let statement = Some(statement).filter(|number| *number != 0);
        db.rename_table_as(&from, &to, Some(NewName { from: &old_name, to: &new_name }), copied, statement)?;
        Ok(PandoStatus::Ok)
    })
}

/// The statement takes no rename back any more.
///
/// # Safety
/// `db` is open.
#[no_mangle]
pub unsafe extern "C" fn pando_ways_back_end(db: *const PandoDb, statement: u64) {
    // SAFETY: the caller vouches for it.
    let db = unsafe { &(*db).db };
    guard(|| db.end_ways_back(statement));
}
