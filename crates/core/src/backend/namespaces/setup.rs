//! `cofferdam setup`, run once by an administrator where ordinary users may not create user namespaces: installs the helper at a fixed
//! path, and an AppArmor profile that allows it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::backend::local::{arch, write_program};
use crate::guest::guest_binary;
use crate::{Error, ErrorCode, Result};

/// Only root can write there; profiles attach by path.
const FOLDER: &str = "usr/local/libexec/cofferdam";
const PROFILES: &str = "etc/apparmor.d";

const PROFILE: &str = "\
# Lets the helper of cofferdam make user namespaces. Written by \"cofferdam setup\".
abi <abi/4.0>,
include <tunables/global>

profile cofferdam /usr/local/libexec/cofferdam/guest-* flags=(unconfined) {
  userns,
  include if exists <local/cofferdam>
}
";

/// What was installed where.
#[derive(Debug, Clone)]
pub struct SetupReport {
    /// The helper.
    pub helper: PathBuf,
    /// Its AppArmor profile, where the machine has AppArmor.
    pub profile: Option<PathBuf>,
}

/// Installs the helper of this version, and its AppArmor profile where there is AppArmor. `root` is `/`, or the root of a machine image
/// that is being built. Blocks.
pub fn setup(root: &Path) -> Result<SetupReport> {
    let guest = guest_binary(arch()?)?;
    let folder = root.join(FOLDER);
    let broken = |what: &Path| {
        let what = what.display().to_string();
        move |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => Error::new(
                ErrorCode::PermissionDenied,
                format!("{what} is root's to write; run this as root, with sudo"),
            ),
            _ => Error::new(ErrorCode::Internal, format!("cannot write {what}: {error}")),
        }
    };
    DirBuilder::new().recursive(true).mode(0o755).create(&folder).map_err(broken(&folder))?;
    let helper = write_program(&folder, &guest.unpack()?, guest.hash, 0o755).map_err(broken(&folder))?;
    let profiles = root.join(PROFILES);
    let is_running = root == Path::new("/");
    // The folder may exist on a kernel without AppArmor.
    if !profiles.is_dir() || (is_running && !is_enabled()) {
        return Ok(SetupReport { helper, profile: None });
    }
    let profile = profiles.join("cofferdam");
    fs::write(&profile, PROFILE).map_err(broken(&profile))?;
    if is_running {
        load(&profile)?;
    }
    Ok(SetupReport { helper, profile: Some(profile) })
}

/// Whether this kernel has AppArmor switched on.
fn is_enabled() -> bool {
    fs::read_to_string("/sys/module/apparmor/parameters/enabled").is_ok_and(|enabled| enabled.starts_with('Y'))
}

fn load(profile: &Path) -> Result<()> {
    let failed = |why: String| {
        let message = format!(
            "the profile {} is written, and could not be loaded: {why}. Load it, or restart",
            profile.display()
        );
        Error::new(ErrorCode::Internal, message)
    };
    let parser = Command::new("apparmor_parser").arg("--replace").arg(profile).output();
    let output = parser.map_err(|error| failed(format!("apparmor_parser: {error}")))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// The helper of exactly this version that an administrator installed.
pub(in crate::backend) fn installed(hash: &str) -> Option<PathBuf> {
    let file = Path::new("/").join(FOLDER).join(format!("guest-{hash}"));
    let is_roots =
        |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.uid() == 0 && meta.mode() & 0o022 == 0);
    (file.is_file() && is_roots(&file) && is_roots(file.parent()?)).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_helper_and_its_profile_go_below_the_root() {
        let root = std::env::temp_dir().join(format!("cofferdam-setup-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let first = setup(&root).unwrap();
        assert!(first.profile.is_none());
        assert_eq!(fs::metadata(&first.helper).unwrap().mode() & 0o777, 0o755);
        fs::create_dir_all(root.join(PROFILES)).unwrap();
        let second = setup(&root).unwrap();
        assert_eq!(second.helper, first.helper);
        let profile = fs::read_to_string(second.profile.unwrap()).unwrap();
        let pattern = format!("/{FOLDER}/guest-*");
        assert!(profile.contains("userns,") && profile.contains(&pattern), "{profile}");
        fs::remove_dir_all(&root).unwrap();
    }
}
