//! Attempts on files of the host: by name, link, other processes' descriptors, handle or device.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::attempt::{At, Outcome, Refused, c_string, number, pointer, scratch, system_call};

/// Enough to be above every folder.
const UP: &str = "../../../../../../../../../../../../../../../../../../../../../../../../";

fn begin(path: impl AsRef<Path>) -> Outcome<String> {
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).at("open")?;
    // Never read from a pipe of another process: its reader would miss the data.
    if !file.metadata().at("stat")?.is_file() {
        return Err(Refused::new("no file", libc::EINVAL));
    }
    let mut bytes = vec![0; 64 * 1024];
    let count = file.read(&mut bytes).at("read")?;
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

pub(crate) fn read(path: &str) -> Outcome {
    begin(path).map(Value::from)
}

pub(crate) fn climb(path: &str) -> Outcome {
    begin(format!("{UP}{path}")).map(Value::from)
}

pub(crate) fn by_symlink(path: &str) -> Outcome {
    let link = scratch("symlink");
    symlink(path, &link).at("symlink")?;
    let outcome = begin(&link);
    let _ = fs::remove_file(link);
    outcome.map(Value::from)
}

pub(crate) fn by_hard_link(path: &str) -> Outcome {
    // Beside the file where that is allowed: a hard link cannot cross file systems.
    let beside = Path::new(path).with_extension("linked");
    let mut outcome = Err(Refused::new("link", libc::ENOENT));
    for link in [beside, scratch("hardlink")] {
        outcome = fs::hard_link(path, &link).at("link").and_then(|()| begin(&link));
        let _ = fs::remove_file(link);
        if outcome.is_ok() {
            break;
        }
    }
    outcome.map(Value::from)
}

/// The classic escape: a root within the root, with a folder open outside of it.
pub(crate) fn double_chroot(path: &str) -> Outcome {
    let cell = scratch("cell");
    fs::create_dir_all(&cell).at("mkdir")?;
    let outside = File::open(".").at("open")?;
    let cell_name = c_string(&cell.to_string_lossy());
    system_call("chroot", libc::SYS_chroot, &[pointer(&cell_name)])?;
    system_call("fchdir", libc::SYS_fchdir, &[outside.as_raw_fd() as usize])?;
    for _ in 0..64 {
        std::env::set_current_dir("..").at("chdir")?;
    }
    system_call("chroot", libc::SYS_chroot, &[pointer(&c_string("."))])?;
    begin(path).map(Value::from)
}

fn names(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

fn processes() -> Vec<PathBuf> {
    let is_process =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().parse::<u32>().is_ok());
    names("/proc").into_iter().filter(is_process).collect()
}

/// Other processes' roots, working folders, open and mapped files; and what is above and below each.
pub(crate) fn by_proc_links(path: &str, token: &str) -> Outcome {
    let mut looked = 0;
    for process in processes() {
        let held = [names(process.join("fd")), names(process.join("map_files"))].concat();
        for link in ["root", "cwd", "exe"].map(|name| process.join(name)).into_iter().chain(held) {
            let link = link.to_string_lossy().into_owned();
            for way in [link.clone(), format!("{link}/{path}"), format!("{link}/{UP}{path}")] {
                looked += 1;
                if begin(&way).is_ok_and(|text| text.contains(token)) {
                    return Ok(way.into());
                }
            }
        }
    }
    // An empty /proc must not count as a refusal.
    if looked == 0 {
        Err(Refused::new("nothing to look at", libc::ENODATA))
    } else {
        Err(Refused::new("looked", libc::ENOENT))
    }
}

/// Inherited descriptors besides the standard streams.
pub(crate) fn descriptors() -> Outcome {
    let entries: Vec<PathBuf> = names("/proc/self/fd");
    let target = |entry: &PathBuf| fs::read_link(entry).ok().map(|target| target.to_string_lossy().into_owned());
    let number = |entry: &PathBuf| entry.file_name().and_then(|name| name.to_string_lossy().parse::<u32>().ok());
    let besides = entries.iter().filter(|entry| number(entry).is_some_and(|number| number > 2));
    // The descriptor that read the folder is closed by now.
    Ok(besides.filter_map(target).collect::<Vec<String>>().into())
}

pub(crate) fn write(path: &str) -> Outcome {
    fs::write(path, "written by a probe").at("write")?;
    Ok(path.into())
}

/// Opens, and nothing more.
pub(crate) fn open(path: &str, mode: &str) -> Outcome {
    let mut options = OpenOptions::new();
    options.read(mode.contains('r')).write(mode.contains('w')).custom_flags(libc::O_NONBLOCK).open(path).at("open")?;
    Ok(path.into())
}

/// Files of a kernel file system that open for writing. Without those of processes, which belong to the box.
pub(crate) fn writable(root: &str) -> Outcome {
    let (mut folders, mut seen, mut opened) = (vec![PathBuf::from(root)], 0, Vec::new());
    while let Some(folder) = folders.pop() {
        for path in names(&folder) {
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_file() {
                seen += 1;
                let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
                if OpenOptions::new().write(true).custom_flags(flags).open(&path).is_ok() {
                    opened.push(path.to_string_lossy().into_owned());
                }
            }
        }
    }
    opened.truncate(20);
    Ok(json!({ "seen": seen, "opened": opened }))
}

/// Tries to write to a program file in every way. Other sandboxes run PID 1's program too.
pub(crate) fn change_program(exe: &str) -> Outcome {
    let mut done = Vec::new();
    let mut note = |way: &str, worked: bool| {
        if worked {
            done.push(way.to_owned());
        }
    };
    note("write", OpenOptions::new().write(true).open(exe).is_ok());
    note("append", OpenOptions::new().append(true).open(exe).is_ok());
    let held = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(exe);
    if let Ok(held) = &held {
        let again = format!("/proc/self/fd/{}", held.as_raw_fd());
        note("write through a descriptor", OpenOptions::new().write(true).open(again).is_ok());
    }
    let name = c_string(exe);
    note("truncate", system_call("truncate", libc::SYS_truncate, &[pointer(&name), 0]).is_ok());
    Ok(done.into())
}

const HANDLE_BYTES: usize = 128;

/// The kernel's handle of a file.
pub(crate) fn handle(path: &str) -> Outcome {
    let mut handle = vec![0_u8; 8 + HANDLE_BYTES];
    handle[..4].copy_from_slice(&(HANDLE_BYTES as u32).to_ne_bytes());
    let mut mount = 0_i32;
    let name = c_string(path);
    let arguments = [libc::AT_FDCWD as usize, pointer(&name), handle.as_mut_ptr() as usize, &raw mut mount as usize, 0];
    system_call("name_to_handle_at", libc::SYS_name_to_handle_at, &arguments)?;
    let kind = i32::from_ne_bytes([handle[4], handle[5], handle[6], handle[7]]);
    let length = u32::from_ne_bytes([handle[0], handle[1], handle[2], handle[3]]) as usize;
    let hex: String = handle[8..8 + length].iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(json!({ "kind": kind, "hex": hex }))
}

/// Opens a file of the host by its handle, through every mount that may be on its file system.
pub(crate) fn open_handle(kind: &str, hex: &str) -> Outcome {
    let byte = |place: usize| u8::from_str_radix(hex.get(place..place + 2).unwrap_or_default(), 16).unwrap_or_default();
    let bytes: Vec<u8> = (0..hex.len() / 2).map(|index| byte(index * 2)).collect();
    let mut handle = [(bytes.len() as u32).to_ne_bytes(), (number(kind)? as i32).to_ne_bytes()].concat();
    handle.extend(bytes);
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let mut last = Refused::new("no mount", libc::ENOENT);
    for place in places.chain(["/", "/etc/hosts", "."]) {
        let Ok(mount) = File::open(place) else { continue };
        let arguments = [mount.as_raw_fd() as usize, handle.as_ptr() as usize, libc::O_RDONLY as usize];
        match system_call("open_by_handle_at", libc::SYS_open_by_handle_at, &arguments) {
            Ok(fd) => return begin(format!("/proc/self/fd/{fd}")).map(Value::from),
            Err(refused) => last = refused,
        }
    }
    Err(last)
}

/// Makes a device node in every writable folder, and opens it.
pub(crate) fn node(kind: &str, major: &str, minor: &str) -> Outcome {
    let mode = if kind == "b" { libc::S_IFBLK } else { libc::S_IFCHR } | 0o666;
    let device = libc::makedev(number(major)? as u32, number(minor)? as u32);
    let mut last = Refused::new("no place", libc::ENOENT);
    for folder in ["/tmp", "/dev", "/dev/shm", "/run", "/var/tmp", "."] {
        let path = format!("{folder}/probe-node-{}", std::process::id());
        let name = c_string(&path);
        let made = system_call(
            "mknod",
            libc::SYS_mknodat,
            &[libc::AT_FDCWD as usize, pointer(&name), mode as usize, device as usize],
        );
        let outcome = made.and_then(|_| open(&path, "r"));
        let _ = fs::remove_file(&path);
        match outcome {
            Ok(_) => return Ok(path.into()),
            Err(refused) => last = refused,
        }
    }
    Err(last)
}
