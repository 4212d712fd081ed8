#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pando_fuzz::run("row", bytes));
