//! Why a box has ended, by what its backend knows of it.

use cofferdam_protocol::Ending;

use crate::Error;

/// `SANDBOX_LOST` for a box whose first process has ended. A guest that ends by itself says why in its exit code, because an
/// engine may drop the last bytes of its streams.
pub(super) fn exited(what: &str, exit_code: i64, oom: bool) -> Error {
    match Ending::from_exit_code(exit_code) {
        Some(ending) => ending.into(),
        None if oom => Error::gone("oom", "it ran out of memory"),
        None => Error::gone("exited", format!("{what} ended with exit code {exit_code}")).with("exitCode", exit_code),
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::Term;

    use super::*;

    #[test]
    fn a_guest_that_ended_by_itself_is_not_called_exited() {
        let reason = |code, oom| exited("its container", code, oom).detail("reason").cloned().unwrap_or_default();
        assert_eq!(reason(Ending::Asked.exit_code().into(), false), "closed");
        assert_eq!(reason(Ending::Expired(Term::Idle).exit_code().into(), true), "idle");
        assert_eq!(reason(Ending::Expired(Term::MaxLifetime).exit_code().into(), false), "max-lifetime");
        assert_eq!(reason(Ending::Expired(Term::Orphan).exit_code().into(), false), "orphaned");
        assert_eq!(reason(Ending::Stopped.exit_code().into(), false), "stopped");
        assert_eq!(reason(137, true), "oom");
        assert_eq!(reason(137, false), "exited");
    }
}
