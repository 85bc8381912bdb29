//! Leaves unwind tables out of the guest that ships: it never unwinds, and they are a tenth of its size.
//! (`-C force-unwind-tables=no` does not do it: the standard library brings its own, and passes them on by LTO.)

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=link.ld");
    let is_static =
        var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|all| all.split(',').any(|feature| feature == "crt-static"));
    // Only the profile `guest` is built so. (Cargo does not tell a build script whether a profile aborts.)
    if is_static && var("PROFILE").is_ok_and(|profile| profile == "release") {
        let folder = var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{folder}/link.ld");
    }
}
