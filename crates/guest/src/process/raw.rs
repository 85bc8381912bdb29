//! System calls without libc, for code that shares PID 1's memory from another process: libc's wrappers keep `errno` in
//! thread-local storage, which such code shares with PID 1.

use std::arch::asm;

/// The answer, or the error number.
pub(super) type Answer = Result<usize, i32>;

/// # Safety
///
/// Those of the system call itself: every pointer must be valid for it.
pub(super) unsafe fn call<const N: usize>(number: libc::c_long, arguments: [usize; N]) -> Answer {
    let mut all = [0; 5];
    all[..N].copy_from_slice(&arguments);
    let answer: isize;
    // SAFETY: the kernel's calling convention; it keeps every register but those named.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") all[0], in("rsi") all[1], in("rdx") all[2], in("r10") all[3], in("r8") all[4],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    // SAFETY: the same.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") all[0] => answer,
            in("x1") all[1], in("x2") all[2], in("x3") all[3], in("x4") all[4],
            options(nostack),
        );
    }
    if (-4095..0).contains(&answer) { Err(-answer as i32) } else { Ok(answer as usize) }
}

/// Ends this process, but not the one whose memory it shares.
pub(super) fn exit(code: usize) -> ! {
    loop {
        // SAFETY: takes no pointer, and does not return.
        let _ = unsafe { call(libc::SYS_exit_group, [code]) };
    }
}
