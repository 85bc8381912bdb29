//! System calls that reach the kernel itself, also by the call numbers of other architectures.
//!
//! Dangerous ones get arguments that the kernel refuses after its permission checks.

use crate::attempt::{Outcome, Refused, c_string, let_through, number, pointer, system_call};

const NONE: &str = "/cofferdam-probe-none";

pub(crate) fn call(name: &str) -> Outcome {
    let (none, empty, user, key) = (c_string(NONE), c_string(""), c_string("user"), c_string("cofferdam-probe"));
    let mut room = [0_u8; 4096];
    let buffer = room.as_mut_ptr() as usize;
    let minus = |value: i32| -value as isize as usize;
    let (call, arguments): (libc::c_long, Vec<usize>) = match name {
        // The session's keyring.
        "keyctl" => (libc::SYS_keyctl, vec![0, minus(3), 1]),
        // To the process's own keyring.
        "add_key" => (libc::SYS_add_key, vec![pointer(&user), pointer(&key), pointer(&key), 1, minus(2)]),
        "request_key" => (libc::SYS_request_key, vec![pointer(&user), pointer(&key), 0, 0]),
        // For faults of user mode only, which everybody may handle.
        "userfaultfd" => (libc::SYS_userfaultfd, vec![1]),
        "bpf" => {
            // A map of one number: kind array, key and value of four bytes, one entry.
            for (place, value) in [(0, 2_u32), (4, 4), (8, 4), (12, 1)] {
                room[place..place + 4].copy_from_slice(&value.to_ne_bytes());
            }
            (libc::SYS_bpf, vec![0, buffer, 72])
        }
        "perf_event_open" => {
            // Software, the CPU clock, of this process, not of the kernel.
            room[..4].copy_from_slice(&1_u32.to_ne_bytes());
            room[4..8].copy_from_slice(&112_u32.to_ne_bytes());
            room[40..48].copy_from_slice(&(1_u64 << 5 | 1 << 6).to_ne_bytes());
            (libc::SYS_perf_event_open, vec![buffer, 0, minus(1), minus(1), 0])
        }
        "io_uring_setup" => (libc::SYS_io_uring_setup, vec![1, buffer]),
        "fanotify_init" => (libc::SYS_fanotify_init, vec![0, 0]),
        "init_module" => (libc::SYS_init_module, vec![0, 0, pointer(&empty)]),
        "finit_module" => (libc::SYS_finit_module, vec![minus(1), pointer(&empty), 0]),
        "delete_module" => (libc::SYS_delete_module, vec![pointer(&key), libc::O_NONBLOCK as usize]),
        "kexec_load" => (libc::SYS_kexec_load, vec![0, 0, 0, 0xffff]),
        "reboot" => (libc::SYS_reboot, vec![0, 0, 0, 0]),
        "swapon" => (libc::SYS_swapon, vec![pointer(&none), 0]),
        "swapoff" => (libc::SYS_swapoff, vec![pointer(&none)]),
        // Q_QUOTAOFF of users, on what is no device.
        "quotactl" => (libc::SYS_quotactl, vec![0x8000_0300, pointer(&empty), 0, 0]),
        // Neither a time nor a zone: nothing is set.
        "settimeofday" => (libc::SYS_settimeofday, vec![0, 0]),
        "clock_adjtime" => {
            // A tick that no clock may have.
            room[..4].copy_from_slice(&0x4000_u32.to_ne_bytes());
            (libc::SYS_clock_adjtime, vec![0, buffer])
        }
        "acct" => (libc::SYS_acct, vec![pointer(&none)]),
        // The kernel's log.
        "syslog" => (libc::SYS_syslog, vec![3, buffer, room.len()]),
        #[cfg(target_arch = "x86_64")]
        "iopl" => (libc::SYS_iopl, vec![3]),
        #[cfg(target_arch = "x86_64")]
        "ioperm" => (libc::SYS_ioperm, vec![0x80, 1, 1]),
        // The name that it has.
        "sethostname" => {
            // SAFETY: room for the longest name, and a byte for its end.
            unsafe { libc::gethostname(room.as_mut_ptr().cast(), 64) };
            let length = room.iter().position(|byte| *byte == 0).unwrap_or_default();
            (libc::SYS_sethostname, vec![buffer, length])
        }
        _ => return Err(Refused::new("no such call", libc::EINVAL)),
    };
    let_through(system_call(name, call, &arguments))
}

fn numbers(texts: &[&str]) -> Outcome<[usize; 3]> {
    let mut numbers = [0; 3];
    for (place, text) in numbers.iter_mut().zip(texts) {
        *place = number(text)? as usize;
    }
    Ok(numbers)
}

/// x32 call numbers: the same calls with a high bit set, past filters that only compare numbers.
pub(crate) fn call_x32(call: &str, arguments: &[&str]) -> Outcome {
    const X32: i64 = 0x4000_0000;
    let number = number(call)? | X32;
    let_through(system_call("x32", number as libc::c_long, &numbers(arguments)?))
}

/// The 32-bit entry, whose calls have other numbers.
#[cfg(target_arch = "x86_64")]
pub(crate) fn call_32(call: &str, arguments: &[&str]) -> Outcome {
    let call = number(call)? as u32;
    let [first, second, third] = numbers(arguments)?;
    let answer: u32;
    // SAFETY: the callers pass numbers only; the register that the compiler keeps for itself is put back.
    unsafe {
        std::arch::asm!(
            "push rbx",
            "mov ebx, {first:e}",
            "int 0x80",
            "pop rbx",
            first = in(reg) first as u32,
            inlateout("eax") call => answer,
            in("ecx") second as u32,
            in("edx") third as u32,
            in("esi") 0,
            in("edi") 0,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    let answer = answer as i32;
    let_through(if (-4095..0).contains(&answer) { Err(Refused::new("int 0x80", -answer)) } else { Ok(answer.into()) })
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn call_32(_: &str, _: &[&str]) -> Outcome {
    Err(Refused::new("int 0x80", libc::ENOSYS))
}
