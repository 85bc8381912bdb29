//! Tells the linker that Node provides the N-API symbols. The guest is embedded by `crates/core/build.rs`.

fn main() {
    napi_build::setup();
}
