//! What a supervisor reports to PID 1, as fixed-size records on a pipe.

/// A supervisor's report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Report {
    Started {
        pid: i32,
    },
    Failed {
        step: Step,
        errno: i32,
    },
    /// As from `waitpid`.
    Ended {
        status: i32,
    },
}

/// Where a start may fail after the fork.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(i32)]
pub(crate) enum Step {
    Fork = 1,
    User = 2,
    Folder = 3,
    Exec = 4,
}

impl Report {
    pub(crate) const SIZE: usize = 12;

    pub(super) fn encode(self) -> [u8; Self::SIZE] {
        let words = match self {
            Report::Started { pid } => [0, pid, 0],
            Report::Failed { step, errno } => [1, step as i32, errno],
            Report::Ended { status } => [2, status, 0],
        };
        let mut bytes = [0; Self::SIZE];
        for (index, word) in words.into_iter().enumerate() {
            bytes[index * 4..index * 4 + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// `None` at the end of the pipe. Reports are written whole, and far shorter than what a pipe takes at once.
    pub(crate) fn decode_or_end(bytes: &[u8]) -> Option<Report> {
        if bytes.len() == Report::SIZE { Report::decode(bytes) } else { None }
    }

    fn decode(bytes: &[u8]) -> Option<Report> {
        let word = |index: usize| bytes[index * 4..].first_chunk().map(|word| i32::from_le_bytes(*word));
        Some(match (word(0)?, word(1)?, word(2)?) {
            (0, pid, _) => Report::Started { pid },
            (1, step, errno) => {
                let step =
                    [Step::Fork, Step::User, Step::Folder, Step::Exec].into_iter().find(|s| *s as i32 == step)?;
                Report::Failed { step, errno }
            }
            (2, status, _) => Report::Ended { status },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_survive_the_pipe() {
        for report in [
            Report::Started { pid: 77 },
            Report::Failed { step: Step::Folder, errno: 2 },
            Report::Ended { status: 0x8b },
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
    }
}
