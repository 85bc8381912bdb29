//! Policies: what a request may contain. Checked here only, before anything is pulled, created or returned.

use std::sync::Arc;

use globset::{Glob, GlobSetBuilder};

use crate::backend::{BoxRecord, Network};
use crate::file_policy::FilePolicy;
use crate::options::{Limits, OpenRequest};
use crate::{Error, ErrorCode, Result};

/// The kernel's own default for `fs.nr_open`.
const MAX_OPEN_FILES: u64 = 1024 * 1024;

/// Whether callers may request network access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NetworkRule {
    /// Permitted.
    #[default]
    Allow,
    /// Denied.
    Deny,
}

/// The policy of a manager.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Exact names or globs; `None` allows any image.
    pub allowed_images: Option<Vec<String>>,
    /// The highest limits a sandbox may have.
    pub max_limits: Limits,
    /// Whether network may be requested.
    pub network: NetworkRule,
    /// What may be done with files.
    pub files: Arc<FilePolicy>,
}

impl Policy {
    /// Checks a request with its resolved image; returns the limits of the sandbox.
    pub fn admit(&self, request: &OpenRequest, image: &str) -> Result<Limits> {
        self.check_image(request.image.as_deref().unwrap_or(crate::DEFAULT_IMAGE), image)?;
        self.check_network(request.network)?;
        self.files.check()?;
        self.admit_limits(request.limits)?;
        let standard = Limits::standard();
        // Absent limits get the default, or the policy's maximum if that is lower.
        Ok(request.limits.or(Limits {
            cpus: lower(standard.cpus, self.max_limits.cpus),
            memory_mb: lower(standard.memory_mb, self.max_limits.memory_mb),
            pids: lower(standard.pids, self.max_limits.pids),
            workspace_mb: lower(standard.workspace_mb, self.max_limits.workspace_mb),
            open_files: lower(standard.open_files, self.max_limits.open_files),
        }))
    }

    /// Checks a sandbox that another program created: callers may use only what they may create. `asked` is the image name as
    /// the caller may have written it.
    pub fn admit_found(&self, found: &BoxRecord, asked: &str) -> Result<()> {
        self.check_image(asked, &found.image)?;
        self.check_network(found.network)?;
        self.admit_limits(found.limits)
    }

    fn check_network(&self, network: Network) -> Result<()> {
        if network.is_on() && self.network == NetworkRule::Deny {
            let message = "the policy of this manager does not allow network; open without network: true, or change policy.network";
            return Err(Error::new(ErrorCode::PolicyDenied, message));
        }
        Ok(())
    }

    /// Checks limits against the policy's maximum.
    pub fn admit_limits(&self, asked: Limits) -> Result<()> {
        check("limits.cpus", asked.cpus, self.max_limits.cpus, 0.01)?;
        check("limits.memoryMb", as_f64(asked.memory_mb), as_f64(self.max_limits.memory_mb), 16.0)?;
        check("limits.pids", as_f64(asked.pids), as_f64(self.max_limits.pids), 8.0)?;
        let max_workspace = as_f64(self.max_limits.workspace_mb);
        check("limits.workspaceMb", as_f64(asked.workspace_mb), max_workspace, 1.0)?;
        check("limits.openFiles", as_f64(asked.open_files), as_f64(self.max_limits.open_files), 64.0)?;
        if asked.open_files.is_some_and(|count| count > MAX_OPEN_FILES) {
            return Err(Error::invalid(format!(
                "limits.openFiles may be at most {MAX_OPEN_FILES}, the limit of Linux"
            )));
        }
        Ok(())
    }

    fn check_image(&self, asked: &str, image: &str) -> Result<()> {
        let Some(allowed) = &self.allowed_images else { return Ok(()) };
        let mut globs = GlobSetBuilder::new();
        for pattern in allowed {
            let glob = Glob::new(pattern).map_err(|error| {
                Error::invalid(format!("policy.allowedImages has a bad pattern {pattern:?}: {error}"))
            })?;
            globs.add(glob);
        }
        let globs = globs.build().map_err(|error| Error::invalid(format!("policy.allowedImages: {error}")))?;
        if globs.is_match(image) || allowed.iter().any(|name| name == asked) {
            return Ok(());
        }
        let message = format!(
            "the policy of this manager does not allow the image \"{image}\"; it allows {}",
            if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") }
        );
        Err(Error::new(ErrorCode::ImageNotAllowed, message).with("image", image).with("allowed", allowed.clone()))
    }
}

fn as_f64(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

fn lower<T: PartialOrd + Copy>(standard: Option<T>, ceiling: Option<T>) -> Option<T> {
    match (standard, ceiling) {
        (Some(standard), Some(ceiling)) if ceiling < standard => Some(ceiling),
        (None, ceiling) => ceiling,
        (standard, _) => standard,
    }
}

fn check(name: &str, asked: Option<f64>, ceiling: Option<f64>, least: f64) -> Result<()> {
    match (asked, ceiling) {
        (Some(asked), _) if !asked.is_finite() || asked < least => {
            Err(Error::invalid(format!("{name} must be at least {least}, not {asked}")))
        }
        (Some(asked), Some(ceiling)) if asked > ceiling => Err(Error::new(
            ErrorCode::PolicyDenied,
            format!("{name} of {asked} is over the {ceiling} that the policy of this manager allows"),
        )
        .with("limit", name)
        .with("maximum", ceiling)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(policy: &Policy, request: OpenRequest, image: &str) -> Option<ErrorCode> {
        policy.admit(&request, image).err().and_then(|error| error.code())
    }

    #[test]
    fn images_are_allowed_by_name_glob_or_shortcut() {
        let policy = Policy { allowed_images: Some(vec!["python".into(), "node:*".into()]), ..Policy::default() };
        let open = |image: &str| OpenRequest { image: Some(image.into()), ..OpenRequest::default() };
        assert_eq!(code(&policy, open("python"), "python:3.11-slim"), None);
        assert_eq!(code(&policy, open("node:20-slim"), "node:20-slim"), None);
        assert_eq!(code(&policy, open("alpine"), "alpine"), Some(ErrorCode::ImageNotAllowed));
        let none = Policy { allowed_images: Some(vec![]), ..Policy::default() };
        assert_eq!(code(&none, open("alpine"), "alpine"), Some(ErrorCode::ImageNotAllowed));
    }

    #[test]
    fn limits_have_ceilings_and_defaults_bow_to_them() {
        let max_limits = Limits { memory_mb: Some(512), ..Limits::default() };
        let policy = Policy { max_limits, network: NetworkRule::Deny, ..Policy::default() };
        let limits =
            |memory_mb| OpenRequest { limits: Limits { memory_mb, ..Limits::default() }, ..Default::default() };
        assert_eq!(policy.admit(&limits(None), "x").unwrap().memory_mb, Some(512));
        assert_eq!(policy.admit(&limits(Some(100)), "x").unwrap().memory_mb, Some(100));
        assert_eq!(code(&policy, limits(Some(513)), "x"), Some(ErrorCode::PolicyDenied));
        assert_eq!(code(&policy, limits(Some(1)), "x"), Some(ErrorCode::InvalidArgument));
        assert_eq!(
            code(&policy, OpenRequest { network: Network::Open, ..Default::default() }, "x"),
            Some(ErrorCode::PolicyDenied)
        );
    }
}
