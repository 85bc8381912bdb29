//! Takes as much of a resource as it gets, up to a count, prints how much, and holds it until its input ends.
//!
//! Every bomb is bounded by its count, and is released with the process.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::RawFd;

use serde_json::json;

use crate::attempt::{At, Outcome, Refused, number, system_call};

pub(crate) fn bomb(kind: &str, count: &str, words: &[&str]) -> Outcome {
    let count = number(count)? as usize;
    let mut held = Held::default();
    let mut taken = 0;
    let mut ended = Ok(());
    while taken < count {
        ended = match (kind, words) {
            ("processes", []) => held.process(),
            ("private", []) => held.megabyte(),
            ("shared", []) => shared_megabyte(),
            ("unmapped", []) => held.unmapped_megabyte(),
            ("descriptors", []) => held.file("/dev/null"),
            ("terminals", []) => held.file("/dev/ptmx"),
            ("watches", []) => held.watch(),
            ("pipes", []) => held.pipe(),
            ("disk", [path]) => held.write_megabyte(path),
            ("depth", [folder]) => deeper(if taken == 0 { folder } else { "." }),
            ("files", [folder]) => File::create(format!("{folder}/{taken}")).at("create").map(drop),
            _ => Err(Refused::new("no such bomb", libc::EINVAL)),
        };
        if ended.is_err() {
            break;
        }
        taken += 1;
    }
    let got = json!({ "taken": taken, "errno": ended.err().map(|refused| refused.errno) });
    println!("{}", json!({ "got": got }));
    let _ = std::io::stdout().flush();
    let _ = std::io::stdin().read(&mut [0; 1]);
    held.release();
    Ok(got)
}

/// Shared memory: no process's own size counts it.
fn shared_megabyte() -> Outcome<()> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_SHARED | libc::MAP_ANONYMOUS) as usize;
    let place = system_call("mmap", libc::SYS_mmap, &[0, 1 << 20, protection, flags, usize::MAX, 0])?;
    // SAFETY: a megabyte that was just mapped for us, and is never given back.
    unsafe { std::ptr::write_bytes(place as *mut u8, 1, 1 << 20) };
    Ok(())
}

/// Nested folders: the path is soon longer than the kernel allows.
fn deeper(from: &str) -> Outcome<()> {
    let name = "d".repeat(100);
    std::env::set_current_dir(from).at("chdir")?;
    fs::create_dir(&name).at("mkdir")?;
    std::env::set_current_dir(&name).at("chdir")
}

#[derive(Default)]
struct Held {
    children: Vec<i32>,
    memory: Vec<Vec<u8>>,
    descriptors: Vec<RawFd>,
    file: Option<File>,
}

impl Held {
    fn process(&mut self) -> Outcome<()> {
        // SAFETY: this process has one thread; the child does nothing but wait.
        match unsafe { libc::fork() } {
            -1 => Err(std::io::Error::last_os_error()).at("fork"),
            0 => loop {
                // SAFETY: has no preconditions.
                unsafe { libc::pause() };
            },
            child => {
                self.children.push(child);
                Ok(())
            }
        }
    }

    fn megabyte(&mut self) -> Outcome<()> {
        // Not zeros, which take no memory.
        self.memory.push(vec![1; 1 << 20]);
        Ok(())
    }

    /// In an unlinked file: no process has it mapped, so no process's size counts it.
    fn unmapped_megabyte(&mut self) -> Outcome<()> {
        if self.file.is_none() {
            let name = crate::attempt::c_string("bomb");
            let fd = system_call("memfd_create", libc::SYS_memfd_create, &[name.as_ptr() as usize, 0])?;
            self.file = Some(File::options().write(true).open(format!("/proc/self/fd/{fd}")).at("open")?);
        }
        self.append_megabyte()
    }

    fn append_megabyte(&mut self) -> Outcome<()> {
        let file = self.file.as_mut().ok_or(Refused::new("open", libc::EBADF))?;
        file.write_all(&vec![1; 1 << 20]).at("write")
    }

    fn file(&mut self, path: &str) -> Outcome<()> {
        let name = crate::attempt::c_string(path);
        let arguments = [libc::AT_FDCWD as usize, name.as_ptr() as usize, (libc::O_RDWR | libc::O_NOCTTY) as usize];
        self.descriptors.push(system_call("open", libc::SYS_openat, &arguments)? as RawFd);
        Ok(())
    }

    fn watch(&mut self) -> Outcome<()> {
        self.descriptors.push(system_call("inotify_init1", libc::SYS_inotify_init1, &[0])? as RawFd);
        Ok(())
    }

    fn pipe(&mut self) -> Outcome<()> {
        let mut ends: [RawFd; 2] = [0; 2];
        system_call("pipe2", libc::SYS_pipe2, &[ends.as_mut_ptr() as usize, libc::O_NONBLOCK as usize])?;
        self.descriptors.extend(ends);
        // Full, because an empty one is small.
        let text = [1_u8; 65536];
        let _ = system_call("write", libc::SYS_write, &[ends[1] as usize, text.as_ptr() as usize, text.len()]);
        Ok(())
    }

    fn write_megabyte(&mut self, path: &str) -> Outcome<()> {
        if self.file.is_none() {
            self.file = Some(OpenOptions::new().create(true).append(true).open(path).at("open")?);
        }
        self.append_megabyte()
    }

    fn release(self) {
        for child in self.children {
            // SAFETY: our own children, which are not yet waited for.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
        }
        if let Some(file) = self.file {
            let _ = fs::File::sync_all(&file);
        }
    }
}
