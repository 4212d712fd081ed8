//! The committed header says what the Rust side says: the functions of this crate, and the numbers in the bytes of a query.

use std::path::Path;

#[test]
fn the_header_is_the_one_generated_from_this_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root.join("src/lib.rs"))
        .with_src(root.join("../analytic/src/tags.rs"))
        .generate()
        .unwrap();
    let mut generated = Vec::new();
    bindings.write(&mut generated);
    let generated = String::from_utf8(generated).unwrap();
    let path = root.join("include/pando.h");
    if std::env::var_os("PANDO_UPDATE_HEADER").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "include/pando.h is stale: run this test with PANDO_UPDATE_HEADER=1");
}
