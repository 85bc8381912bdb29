//! Packages for new sandboxes: installed once per image and list, with network, into a layer on the engine.
//!
//! A layer's name is a hash of its inputs, so it is never stale. The installing program holds the claim of that name: one
//! program builds the layer, all others wait for it.

mod install;
mod layer;

pub(crate) use layer::{LayerRequest, Layers};

use crate::{Error, Result};

/// Upper bounds that only a mistake exceeds.
const MAX_PACKAGES: usize = 1000;
const MAX_NAME: usize = 4096;

/// Packages to install, by installer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packages {
    /// Python packages.
    pub pip: Vec<String>,
    /// Node.js packages, visible to programs in any folder.
    pub npm: Vec<String>,
    /// Packages of Debian and its derivatives.
    pub apt: Vec<String>,
}

impl Packages {
    /// Whether there is nothing to install.
    pub fn is_empty(&self) -> bool {
        self.lists().iter().all(|(_, list)| list.is_empty())
    }

    /// In installation order.
    fn lists(&self) -> [(&'static str, &[String]); 3] {
        [("apt", &self.apt), ("pip", &self.pip), ("npm", &self.npm)]
    }

    /// Rejects bad names. They come from agents: none may be an option of its installer.
    pub(crate) fn check(&self) -> Result<()> {
        for (installer, list) in self.lists() {
            if list.len() > MAX_PACKAGES {
                let message = format!("packages.{installer} has {} entries, more than {MAX_PACKAGES}", list.len());
                return Err(Error::invalid(message));
            }
            for name in list {
                let is_bad = name.trim() != name || name.is_empty() || name.starts_with('-') || name.len() > MAX_NAME;
                if is_bad || name.chars().any(char::is_control) {
                    let shown: String = name.chars().take(80).collect();
                    let message = format!(
                        "packages.{installer} has {shown:?}, which is not a package; give names with or without a version, \
                         such as \"{}\"",
                        example(installer)
                    );
                    return Err(Error::invalid(message));
                }
            }
        }
        Ok(())
    }
}

fn example(installer: &str) -> &'static str {
    match installer {
        "apt" => "jq",
        "pip" => "pandas==2.2.3",
        _ => "left-pad@1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn an_option_is_not_a_package() {
        for name in ["", " x", "-r", "--index-url=x", "a\nb", "a\0"] {
            let packages = Packages { pip: vec![name.to_owned()], ..Packages::default() };
            assert_eq!(packages.check().unwrap_err().code(), Some(ErrorCode::InvalidArgument), "{name:?}");
        }
        let fine = ["pandas==2.2.3", "uvicorn[standard]>=0.30", "@scope/name@^1", "git+https://example.org/x.git"];
        let packages = Packages { pip: fine.map(str::to_owned).to_vec(), ..Packages::default() };
        assert!(packages.check().is_ok());
    }
}
