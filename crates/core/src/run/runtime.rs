//! Runtimes of runs, and their program names in images.

/// The runtime that executes the code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Runtime {
    /// Python 3.
    #[default]
    Python,
    /// Node.js.
    Node,
    /// The shell: bash where the image has it, else sh.
    Bash,
}

impl Runtime {
    /// `python`, `node` or `bash`, which is also the shortcut of its image.
    pub fn as_str(self) -> &'static str {
        match self {
            Runtime::Python => "python",
            Runtime::Node => "node",
            Runtime::Bash => "bash",
        }
    }

    /// Parses a runtime's name.
    pub fn parse(name: &str) -> Option<Runtime> {
        [Runtime::Python, Runtime::Node, Runtime::Bash].into_iter().find(|runtime| runtime.as_str() == name)
    }

    /// The likely runtime of an image.
    pub(super) fn of_image(image: &str) -> Runtime {
        let name = image.rsplit('/').next().unwrap_or(image);
        let is = |runtime: &Runtime| name.starts_with(runtime.as_str());
        [Runtime::Python, Runtime::Node].into_iter().find(is).unwrap_or(Runtime::Bash)
    }

    /// A program that does nothing.
    pub(super) fn nothing(self) -> &'static [&'static str] {
        match self {
            Runtime::Python => &["python", "-c", "pass"],
            Runtime::Node => &["node", "-e", "0"],
            Runtime::Bash => &["sh", "-c", ":"],
        }
    }

    /// The file for the code, relative to the workdir.
    pub(super) fn file(self) -> &'static str {
        match self {
            Runtime::Python => "main.py",
            Runtime::Node => "main.js",
            Runtime::Bash => "main.sh",
        }
    }

    /// Programs that run it, in order of preference.
    pub(super) fn programs(self) -> &'static [&'static str] {
        match self {
            Runtime::Python => &["python", "python3"],
            Runtime::Node => &["node"],
            Runtime::Bash => &["bash", "sh"],
        }
    }
}
