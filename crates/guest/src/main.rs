//! The program in every sandbox.
//!
//! `guest init [<descriptor>]` is PID 1: it owns the sandbox's processes, files and lease, and serves any number of links.
//! Its setup is the first frame of its first stream. With a descriptor, further links come through that.
//! `guest link` hands its own standard input and output to PID 1 as a further link, and stays until that ends.
//! `guest keep <folder>` makes a box of namespaces with itself as PID 1, and supervises it from outside; `guest sweep <folder>`
//! removes what is left of one.
//!
//! It is static, needs nothing from the image, and runs on one thread; only file operations, which may block, go to
//! a few helper threads. It must never panic on anything a host or a command does.

#[cfg(not(target_os = "linux"))]
compile_error!("the guest runs in Linux sandboxes only");

mod channel;
mod clients;
mod entry;
mod fd;
mod files;
mod hosts;
mod keeper;
mod lease;
mod link;
mod link_socket;
mod memory;
mod notices;
mod outbox;
mod ports;
mod process;
mod requests;
mod sandbox;
mod stats;
mod stream;
mod workspace;

use std::os::fd::OwnedFd;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["init", inherited @ ..] if inherited.len() < 2 => link_socket::inherited(inherited).and_then(init),
        ["keep", folder] => keeper::keep(folder).map(success),
        ["sweep", folder] => keeper::sweep(folder).map(success),
        ["link"] => link_socket::hand_over().map(success),
        _ => Err(std::io::Error::other("usage: guest init [<descriptor>] | link | keep <folder> | sweep <folder>")),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cofferdam guest: {error}");
            ExitCode::FAILURE
        }
    }
}

fn success((): ()) -> ExitCode {
    ExitCode::SUCCESS
}

fn init(links: Option<OwnedFd>) -> std::io::Result<ExitCode> {
    // One arena: the helper threads would otherwise reserve one each, and idle memory is part of the contract.
    // SAFETY: called before any other thread exists.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    // Modes are given exactly; commands get the usual umask when they start.
    // SAFETY: sets this process's own mask.
    unsafe { libc::umask(0) };
    hosts::name_localhost();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(4)
        // Only used pages count; a tree may be thousands of folders deep.
        .thread_stack_size(8 * 1024 * 1024)
        .thread_keep_alive(std::time::Duration::from_secs(u32::MAX.into()))
        .build()?;
    // One helper thread from the start, for ever: during a fork bomb a first one could not start, and the runtime needs
    // one.
    runtime.block_on(runtime.spawn_blocking(|| ())).map_err(std::io::Error::other)?;
    let local = tokio::task::LocalSet::new();
    let outcome = local.block_on(&runtime, sandbox::run(links));
    // A helper thread may hang in a file system that never answers: PID 1 must end anyway.
    runtime.shutdown_background();
    outcome.map(|ending| ExitCode::from(ending.exit_code()))
}
