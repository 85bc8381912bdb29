//! What runs the code of a run, and what that is called in images.

/// What runs the code.
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

    /// By its name.
    pub fn parse(name: &str) -> Option<Runtime> {
        [Runtime::Python, Runtime::Node, Runtime::Bash].into_iter().find(|runtime| runtime.as_str() == name)
    }

    /// What an image is most likely there for.
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

    /// What the code is written to, under the workdir.
    pub(super) fn file(self) -> &'static str {
        match self {
            Runtime::Python => "main.py",
            Runtime::Node => "main.js",
            Runtime::Bash => "main.sh",
        }
    }

    /// Programs that run it, the best one first.
    pub(super) fn programs(self) -> &'static [&'static str] {
        match self {
            Runtime::Python => &["python", "python3"],
            Runtime::Node => &["node"],
            Runtime::Bash => &["bash", "sh"],
        }
    }
}
