//! The cgroups of a box: the keeper makes and removes them, the box joins them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use cofferdam_protocol::keeper::{Cgroup, Step};

use super::calls::{Outcome, Tried};

/// How long the kernel may take to see that a cgroup is empty.
const EMPTYING: Duration = Duration::from_secs(2);

pub(super) struct Cgroups {
    folders: Vec<String>,
    /// Of the first version: a process joins by writing to it. (Being moved by another process costs milliseconds.)
    tasks: Vec<File>,
    /// Of the second version: a process starts in it.
    second: Option<OwnedFd>,
}

impl Cgroups {
    pub(super) fn make(planned: &[Cgroup]) -> Outcome<Cgroups> {
        let mut made = Cgroups { folders: Vec::new(), tasks: Vec::new(), second: None };
        for cgroup in planned {
            if let Err(refusal) = made.add(cgroup) {
                made.remove();
                return Err(refusal);
            }
        }
        Ok(made)
    }

    fn add(&mut self, cgroup: &Cgroup) -> Outcome {
        let folder = Path::new(&cgroup.folder);
        fs::create_dir(folder).tried(Step::Cgroups, || format!("make the cgroup {}", cgroup.folder))?;
        self.folders.push(cgroup.folder.clone());
        // The box reads its own counters.
        let seen = fs::set_permissions(folder, fs::Permissions::from_mode(0o755));
        seen.tried(Step::Cgroups, || format!("make the cgroup {} readable", cgroup.folder))?;
        for (file, value) in &cgroup.settings {
            let what = || format!("set {file} of {} to {value}", cgroup.folder);
            match write(&folder.join(file), value) {
                // Swap accounting may be off; then there is no swap to limit either.
                Err(error) if error.kind() == io::ErrorKind::NotFound && file.contains("sw") => Ok(()),
                other => other,
            }
            .tried(Step::Cgroups, what)?;
        }
        if cgroup.at.is_empty() {
            let opened = File::open(folder).tried(Step::Cgroups, || format!("open {}", cgroup.folder))?;
            self.second = Some(opened.into());
        } else {
            let opened = OpenOptions::new().write(true).open(folder.join("tasks"));
            self.tasks.push(opened.tried(Step::Cgroups, || format!("open the tasks of {}", cgroup.folder))?);
        }
        Ok(())
    }

    pub(super) fn second(&self) -> Option<&OwnedFd> {
        self.second.as_ref()
    }

    /// Joins with this process, and all that it starts.
    pub(super) fn join(&self) -> Outcome {
        for mut tasks in &self.tasks {
            tasks.write_all(b"0").tried(Step::Cgroups, || "join a cgroup".to_owned())?;
        }
        Ok(())
    }

    /// Whether the kernel killed a process in it for memory.
    pub(super) fn has_starved(&self) -> bool {
        let kills = |text: String| text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
        let counters = self.folders.iter().flat_map(|folder| {
            ["memory.oom_control", "memory.events"].map(|file| fs::read_to_string(Path::new(folder).join(file)).ok())
        });
        counters.flatten().filter_map(kills).any(|count: u64| count > 0)
    }

    /// Their last processes must have ended, or be about to.
    pub(super) fn remove(&self) {
        for folder in &self.folders {
            let mut waited = Duration::ZERO;
            while fs::remove_dir(folder).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
                && waited < EMPTYING
            {
                std::thread::sleep(Duration::from_millis(1));
                waited += Duration::from_millis(1);
            }
        }
    }
}

/// Kernel files take one write, and are never created.
fn write(file: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(value.as_bytes())
}
