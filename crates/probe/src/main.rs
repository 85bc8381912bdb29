//! `probe <attempt> [words…]`: tries one way out of a sandbox and prints the result as one line of JSON.
//!
//! The escape suite runs the same attempt outside, where it succeeds, and inside, where it must not. A probe needs nothing
//! of the image it runs in. It must do no harm where it succeeds: it reads only files of a witness, opens without writing, and
//! makes dangerous calls with arguments that the kernel refuses after its permission checks.

mod attempt;
mod bombs;
mod files;
mod kernel;
mod mounts;
mod processes;
mod sockets;
mod terminal;

use attempt::{Outcome, Refused};
use serde_json::json;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let line = match tried(&words) {
        Ok(got) => json!({ "got": got }),
        Err(Refused { at, errno }) => json!({ "refused": errno, "at": at }),
    };
    println!("{line}");
}

fn tried(words: &[&str]) -> Outcome {
    match words {
        ["read", path] => files::read(path),
        ["climb", path] => files::climb(path),
        ["symlink", path] => files::by_symlink(path),
        ["hardlink", path] => files::by_hard_link(path),
        ["double-chroot", path] => files::double_chroot(path),
        ["proc-links", path, reversed] => files::by_proc_links(path, &attempt::unreversed(reversed)),
        ["descriptors"] => files::descriptors(),
        ["write", path] => files::write(path),
        ["open", path, mode] => files::open(path, mode),
        ["writable", root] => files::writable(root),
        ["change-program", path] => files::change_program(path),
        ["handle", path] => files::handle(path),
        ["open-handle", kind, hex] => files::open_handle(kind, hex),
        ["mknod", kind, major, minor] => files::node(kind, major, minor),
        ["mount", kind, rest @ ..] => mounts::mount(kind, rest),
        ["fresh-mount", kind, rest @ ..] => mounts::fresh().and_then(|()| mounts::mount(kind, rest)),
        ["enter", kind] => mounts::enter(kind),
        ["call", name] => kernel::call(name),
        ["call-32", number, arguments @ ..] => kernel::call_32(number, arguments),
        ["call-x32", number, arguments @ ..] => kernel::call_x32(number, arguments),
        ["ids"] => processes::ids(),
        ["kill", pid, signal] => processes::kill(pid, signal),
        ["trace", pid] => processes::trace(pid),
        ["take-descriptor", pid] => processes::take_descriptor(pid),
        ["read-memory", pid] => processes::read_memory(pid),
        ["renice", which, who] => processes::renice(which, who),
        ["seen", reversed] => processes::seen(&attempt::unreversed(reversed)),
        ["hostname"] => processes::hostname(),
        ["abstract", name] => sockets::connect_abstract(name),
        ["local", path] => sockets::connect_local(path),
        ["tcp", address] => sockets::connect_tcp(address),
        ["socket", family, kind, protocol] => sockets::make(family, kind, protocol),
        ["links"] => sockets::links(),
        ["set-link"] => sockets::set_link(),
        ["terminal"] => terminal::open(),
        ["type-into-terminal"] => terminal::type_into(),
        ["read-console"] => terminal::read_console(),
        ["leash", command @ ..] => terminal::leash(command),
        ["bomb", kind, count, rest @ ..] => bombs::bomb(kind, count, rest),
        _ => {
            eprintln!("unknown attempt: {words:?}");
            std::process::exit(2);
        }
    }
}
