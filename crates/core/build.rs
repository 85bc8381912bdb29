//! Makes the guest binaries that this crate embeds.
//!
//! The guest for the build machine's own architecture is built here, by a second cargo with a target folder of its
//! own, when that machine runs Linux. `COFFERDAM_GUEST_X64` and `COFFERDAM_GUEST_ARM64` name ready-made binaries
//! instead: that is how a release puts both into every package.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use sha2::{Digest, Sha256};

/// The level of compression: guests are packed once, and downloaded by everybody.
const BEST: i32 = 22;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for watched in [
        "crates/guest/src",
        "crates/guest/Cargo.toml",
        "crates/guest/build.rs",
        "crates/guest/link.ld",
        "crates/protocol/src",
        "crates/tree/src",
        "Cargo.lock",
        "Cargo.toml",
    ] {
        println!("cargo::rerun-if-changed={}", workspace.join(watched).display());
    }
    for (variable, rust_arch, file) in
        [("COFFERDAM_GUEST_X64", "x86_64", "guest-x64"), ("COFFERDAM_GUEST_ARM64", "aarch64", "guest-arm64")]
    {
        println!("cargo::rerun-if-env-changed={variable}");
        let target = format!("{rust_arch}-unknown-linux-gnu");
        let binary = match env::var_os(variable) {
            Some(path) => {
                println!("cargo::rerun-if-changed={}", path.to_string_lossy());
                Some(PathBuf::from(path))
            }
            None if env::var("HOST").as_deref() == Ok(&target) => Some(build_guest(&workspace, &out, &target)),
            None => None,
        };
        // An empty file stands for an architecture that this build does not carry.
        let bytes = binary.map_or_else(Vec::new, |path| {
            fs::read(&path)
                .unwrap_or_else(|error| panic!("the guest binary {} cannot be read: {error}", path.display()))
        });
        fs::write(out.join(file), packed(&bytes)).expect("OUT_DIR is writable");
        fs::write(out.join(format!("{file}.hash")), hash(&bytes)).expect("OUT_DIR is writable");
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    zstd::encode_all(bytes, BEST).expect("memory takes everything")
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn build_guest(workspace: &Path, out: &Path, target: &str) -> PathBuf {
    // One folder for all builds of this crate: OUT_DIR is <target>/<profile>/build/<crate>/out, below the target's name where
    // cargo was given one.
    let mut target_dir = out.ancestors().nth(4).expect("OUT_DIR is inside the target folder");
    if target_dir.ends_with(env::var_os("TARGET").expect("cargo sets TARGET")) {
        target_dir = target_dir.parent().expect("a target's folder is in another");
    }
    let target_dir = target_dir.join("guest");
    let status = Command::new(env::var_os("CARGO").expect("cargo sets CARGO"))
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "cofferdam-guest",
            "--profile",
            "guest",
            "--target",
            target,
        ])
        .arg("--target-dir")
        .arg(&target_dir)
        .current_dir(workspace)
        // Static and at a fixed address: no loader, no relocations, a smaller and quicker start.
        .env("RUSTFLAGS", "-C target-feature=+crt-static -C relocation-model=static")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status()
        .expect("cargo can be run");
    assert!(status.success(), "the guest could not be built");
    target_dir.join(target).join("guest").join("guest")
}
