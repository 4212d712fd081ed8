//! Definitions that servers have written, whole, cut and damaged.

use pando_export::frm::{Definition, Generated};

const TYPES: &[u8] = include_bytes!("frm/types.frm");
const PARTS: &[u8] = include_bytes!("frm/parts.frm");
const BINPK: &[u8] = include_bytes!("frm/binpk.frm");

#[test]
fn names_types_and_keys_are_those_of_the_table() {
    let types = Definition::read(TYPES).unwrap();
    assert_eq!(types.columns.len(), 65);
    let column = |name: &str| types.columns.iter().find(|column| column.name == name).unwrap();
    assert_eq!(column("vv").generated, Generated::Virtual);
    assert_eq!(column("st").generated, Generated::Stored);
    assert_eq!(column("j").generated, Generated::No);
    assert_eq!(column("en").members, ["a", "b,c", "it's", "ü"]);
    assert_eq!(column("en2").members, ["x", "y"]);
    assert_eq!(column("u").plugin_type, "uuid");
    assert!(column("t8u").is_unsigned() && !column("t8").is_unsigned());
    assert_eq!(types.keys.len(), 4);
    assert_eq!(types.primary_key().unwrap().parts.len(), 2);
    assert_eq!(Definition::read(PARTS).unwrap().columns.len(), 3);
    let reversed: Vec<bool> =
        Definition::read(BINPK).unwrap().keys[0].parts.iter().map(|part| part.is_reverse).collect();
    assert_eq!(reversed, [false, false, false, true, false, false, false, true, false]);
}

#[test]
fn cut_and_damaged_definitions_never_panic() {
    for image in [TYPES, PARTS, BINPK] {
        for end in 0..image.len() {
            let _ = Definition::read(&image[..end]);
        }
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut damaged = image.to_vec();
            for _ in 0..3 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (state >> 33) as usize % damaged.len();
                damaged[at] ^= 1 << (state >> 20 & 7);
            }
            let _ = Definition::read(&damaged);
        }
    }
}
