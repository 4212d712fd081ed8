//! Members of enumerations that C gives: any number may come in their place, and one that stands for no member is a mistake of the
//! caller. So they are taken as [`MaybeUninit`], which C sees as the enumeration itself, and looked at before they are used.

use std::mem::{size_of, transmute_copy, MaybeUninit};

use pandodb::EngineError;

/// An enumeration that C gives members of.
///
/// # Safety
/// It is represented by one byte, or by four, and all numbers from 0 to `LAST` stand for members.
pub(crate) unsafe trait Members: Copy {
    /// The largest number.
    const LAST: u32;
    /// For people.
    const NAME: &'static str;
}

/// What each enumeration says of itself where it stands: all of its members, in the order of their numbers.
macro_rules! members {
    ($($name:ident: $($member:ident)*;)*) => { $(
        const _: () = {
            let (all, mut at) = ([$($name::$member),*], 0);
            assert!(matches!(std::mem::size_of::<$name>(), 1 | 4));
            while at < all.len() {
                assert!(all[at] as usize == at, "numbers without a gap");
                at += 1;
            }
        };
        // SAFETY: as was looked at.
        unsafe impl $crate::member::Members for $name {
            const LAST: u32 = [$($name::$member),*].len() as u32 - 1;
            const NAME: &'static str = stringify!($name);
        }
    )* };
}
pub(crate) use members;

/// The member that C has given. Errors: there is none of this number.
#[inline]
pub(crate) fn member<E: Members>(given: MaybeUninit<E>) -> pandodb::Result<E> {
    let number = match size_of::<E>() {
        // SAFETY: C gives no value without its bytes, and it has one.
        1 => u32::from(unsafe { transmute_copy::<_, u8>(&given) }),
        // SAFETY: likewise, and it has four.
        _ => unsafe { transmute_copy::<_, u32>(&given) },
    };
    if number > E::LAST {
        return Err(no_member(E::NAME, number, E::LAST));
    }
    // SAFETY: all numbers up to here stand for members.
    Ok(unsafe { given.assume_init() })
}

#[cold]
fn no_member(name: &str, number: u32, last: u32) -> pandodb::Error {
    EngineError::argument(format!("{name} has members 0 to {last}, and none is {number}")).into()
}

/// A number that stands for a choice, up to `last`. Errors: it is larger.
#[inline]
pub(crate) fn choice(what: &str, number: u8, last: u8) -> pandodb::Result<u8> {
    match number <= last {
        true => Ok(number),
        false => Err(EngineError::argument(format!("{what} is 0 to {last}, and not {number}")).into()),
    }
}
