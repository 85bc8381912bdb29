//! The root of a box: an overlay over its layers, or a private root with the machine's own programs in it.
//!
//! Works in the scratch folder, a small private file system in memory: `l/` and `b/` are lower folders, `s` holds what the
//! box writes, `new` becomes its root.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use cofferdam_protocol::keeper::{Folder, Plan, Root, Step, Storage};
use libc::{MS_BIND, MS_NODEV, MS_NOSUID, MS_RDONLY, MS_REC, MS_REMOUNT, MS_SLAVE};

use super::calls::{Outcome, Tried, mount};
use super::place::Place;
use super::sources::{self, HOST_FOLDERS, Source};

/// Becomes `/`.
pub(super) const NEW: &str = "new";

/// Folders of a private root, and their modes.
const PRIVATE: [(&str, u32); 13] = [
    ("root", 0o700),
    ("home", 0o755),
    ("var", 0o755),
    ("var/tmp", 0o1777),
    ("var/lib", 0o755),
    ("var/cache", 0o755),
    ("var/log", 0o755),
    ("media", 0o755),
    ("mnt", 0o755),
    ("opt", 0o755),
    ("srv", 0o755),
    ("tmp", 0o1777),
    ("workspace", 0o755),
];

/// Folders below `/usr/local` that a box on the machine's own programs may write to, where the machine has them.
const LOCAL: [&str; 5] = ["bin", "lib", "share", "include", "etc"];

/// Enters a scratch folder with all sources attached.
pub(super) fn enter_scratch(sources: Vec<Source>) -> Outcome {
    mount("", "/", "", MS_REC | MS_SLAVE, "").tried(Step::Mounts, || "make mounts private".to_owned())?;
    // Over a folder that every machine has: we hold descriptors of what we need below it.
    let scratch = "/usr";
    mount("tmpfs", scratch, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=16m")
        .tried(Step::Mounts, || "make a scratch folder".to_owned())?;
    rustix::process::chdir(scratch).tried(Step::Mounts, || "enter the scratch folder".to_owned())?;
    for folder in ["l", "b", "x", NEW] {
        fs::create_dir(folder).tried(Step::Mounts, || format!("make {folder}"))?;
    }
    sources::place(sources)
}

/// Builds the root at [`NEW`].
pub(super) fn build(plan: &Plan) -> Outcome {
    if let Storage::Memory(bytes) = plan.storage {
        fs::create_dir("s").tried(Step::Mounts, || "make s".to_owned())?;
        mount("tmpfs", "s", "tmpfs", MS_NOSUID | MS_NODEV, &format!("mode=755,size={bytes}"))
            .tried(Step::Mounts, || "mount memory for what is written".to_owned())?;
    }
    match &plan.root {
        Root::Layers(layers) => {
            // The kernel wants the highest first.
            let lower: Vec<String> = (0..layers.len()).rev().map(|number| format!("l/{number}")).collect();
            overlay(&lower.join(":"), "image", NEW)
        }
        Root::Host { links } => private_root(links),
    }
}

fn overlay(lower: &str, name: &str, target: &str) -> Outcome {
    let (upper, work) = (format!("s/up/{name}"), format!("s/work/{name}"));
    for folder in [&upper, &work] {
        fs::create_dir_all(folder).tried(Step::Overlay, || format!("make {folder}"))?;
    }
    let options = |more: &str| format!("{more}lowerdir={lower},upperdir={upper},workdir={work}");
    let flags = MS_NOSUID | MS_NODEV;
    match mount("overlay", target, "overlay", flags, &options("userxattr,volatile,")) {
        // Kernels before 5.10 have no `volatile`; it only saves a sync of what is removed with the box.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            mount("overlay", target, "overlay", flags, &options("userxattr,"))
        }
        other => other,
    }
    .tried(Step::Overlay, || format!("mount an overlay over {lower}"))
}

/// The machine's own programs, and nothing else of it.
fn private_root(links: &[(String, String)]) -> Outcome {
    let building = |what: &str| format!("build a private root: {what}");
    fs::create_dir_all("s/root").tried(Step::Mounts, || building("its folder"))?;
    mount("s/root", NEW, "", MS_BIND, "").tried(Step::Mounts, || building("its mount"))?;
    for name in LOCAL {
        if Path::new("l/usr/local").join(name).is_dir() {
            let folder = format!("s/up/usr/local/{name}");
            fs::create_dir_all(&folder).tried(Step::Mounts, || building(&folder))?;
        }
    }
    for (name, target) in links {
        // It may exist already.
        let _ = symlink(target, Path::new("s/up/usr/local/bin").join(name));
    }
    for name in HOST_FOLDERS {
        let (from, to) = (Path::new("/").join(name), format!("{NEW}/{name}"));
        if name != "usr"
            && let Ok(target) = fs::read_link(&from)
        {
            let _ = symlink(target, &to);
            continue;
        }
        let (lower, bound) = (format!("l/{name}"), format!("b/{name}"));
        if Path::new(&lower).exists() {
            make_dir(&to, 0o755).tried(Step::Mounts, || building(&to))?;
            overlay(&lower, name, &to)?;
        } else if Path::new(&bound).exists() {
            make_dir(&to, 0o755).tried(Step::Mounts, || building(&to))?;
            mount(&bound, &to, "", MS_BIND | MS_REC, "").tried(Step::Mounts, || building(&to))?;
        }
    }
    for (name, mode) in PRIVATE {
        let folder = format!("{NEW}/{name}");
        make_dir(&folder, mode).tried(Step::Mounts, || building(&folder))?;
    }
    let _ = symlink("/run", format!("{NEW}/var/run"));
    Ok(())
}

/// Makes a folder if it is missing, and sets exactly this mode.
pub(super) fn make_dir(path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
    let path = path.as_ref();
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(mode)),
    }
}

/// Mounts further folders. Last, so that nothing of the root covers them.
pub(super) fn mount_folders(folders: &[Folder]) -> Outcome {
    for (number, folder) in folders.iter().enumerate() {
        let place = Place::at(&folder.at).tried(Step::Mounts, || format!("make {}", folder.at))?;
        let target = place.path();
        let mounted = match folder.source {
            Some(_) => mount(format!("x/{number}"), &target, "", MS_BIND, ""),
            None => {
                let size = if folder.bytes > 0 { format!(",size={}", folder.bytes) } else { String::new() };
                mount("tmpfs", &target, "tmpfs", MS_NOSUID | MS_NODEV, &format!("mode=1777{size}"))
            }
        };
        mounted.tried(Step::Mounts, || format!("mount {}", folder.at))?;
    }
    Ok(())
}

/// Makes the root itself read-only. Mounts in it stay as they are.
pub(super) fn seal(root: &Root) -> Outcome {
    let mut sealed = vec!["/".to_owned()];
    if matches!(root, Root::Host { .. }) {
        let mounted = HOST_FOLDERS.iter().map(|name| format!("/{name}"));
        sealed.extend(mounted.filter(|path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())));
    }
    for path in sealed {
        mount("", &path, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, "")
            .tried(Step::Mounts, || format!("make {path} read-only"))?;
    }
    Ok(())
}
