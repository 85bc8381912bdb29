//! Folders in the root that is being built. An image may hold any symbolic link: none leads to the machine's own files,
//! because every step is resolved inside the new root.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};

use super::root::NEW;

/// A folder in the new root, held open.
pub(super) struct Place(OwnedFd);

impl Place {
    /// The folder at an absolute path; missing parts are made.
    pub(super) fn at(path: &str) -> io::Result<Place> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, NEW, flags, Mode::empty())?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let (mut here, mut so_far) = (root.try_clone()?, String::from("."));
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let above = here;
            so_far = format!("{so_far}/{name}");
            let open = || openat2(&root, so_far.as_str(), flags, Mode::empty(), resolve);
            here = match open() {
                Err(rustix::io::Errno::NOENT) => {
                    mkdirat(&above, name, Mode::from_raw_mode(0o755))?;
                    open()?
                }
                other => other?,
            };
        }
        Ok(Place(here))
    }

    /// A path to it for as long as it is held.
    pub(super) fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }

    /// A path below it that no image can have put a link at.
    pub(super) fn below(&self, name: &str) -> String {
        Path::new(&self.path()).join(name).to_string_lossy().into_owned()
    }
}
