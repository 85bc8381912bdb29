//! Session keys: which callers share a sandbox.
//!
//! A key is `namespace:id:name`. It is shown with `%` and `:` escaped inside its parts, and claimed on the engine by a
//! hash of the escaped form, so that no two keys can collide whatever characters they hold.

use sha2::{Digest, Sha256};

use crate::id::random_id;
use crate::{Error, Result};

/// How the names of boxes begin that are nobody's yet.
pub(crate) const WARM_CLAIM: &str = "cofferdam-warm-";

/// The longest part of a key.
const MAX_PART: usize = 512;

/// Who shares a session. The workflow wins over the agent, the agent over the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// A workflow run.
    pub workflow: Option<String>,
    /// An agent run.
    pub agent: Option<String>,
    /// A person.
    pub user: Option<String>,
}

/// Which session within a scope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Session {
    /// The scope's own.
    #[default]
    Default,
    /// One that nobody else ever gets.
    Isolated,
    /// One by name.
    Named(String),
}

impl Session {
    /// As callers write it.
    pub fn parse(name: &str) -> Session {
        match name {
            "default" => Session::Default,
            "isolated" => Session::Isolated,
            other => Session::Named(other.to_owned()),
        }
    }
}

/// A session's name for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKey(String);

impl SessionKey {
    /// The key of `session` in `scope`; without a scope, sessions belong to `owner`, which is one manager.
    pub fn new(scope: &Scope, session: &Session, owner: &str) -> Result<SessionKey> {
        let (namespace, id) = match scope {
            Scope { workflow: Some(id), .. } => ("workflow", id.as_str()),
            Scope { agent: Some(id), .. } => ("agent", id.as_str()),
            Scope { user: Some(id), .. } => ("user", id.as_str()),
            Scope { .. } => ("manager", owner),
        };
        let name = match session {
            Session::Default => "default".to_owned(),
            Session::Isolated => random_id("isolated-"),
            Session::Named(name) => name.clone(),
        };
        for (what, part) in [(namespace, id), ("session", name.as_str())] {
            if part.is_empty() || part.len() > MAX_PART {
                return Err(Error::invalid(format!("{what} must have 1 to {MAX_PART} bytes, not {}", part.len())));
            }
        }
        Ok(SessionKey(format!("{namespace}:{}:{}", escape(id), escape(&name))))
    }

    /// `workflow:wf_abc123:default`
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name under which an engine knows the session's sandbox. Names are unique there, which makes it a claim.
    pub fn claim(&self) -> String {
        claim(&self.0)
    }

    /// Whether no other program can ever ask for it: it belongs to one manager.
    pub fn is_private(&self) -> bool {
        is_private(&self.0)
    }
}

pub(crate) fn claim(key: &str) -> String {
    let digest = Sha256::digest(key.as_bytes());
    let digits: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("cofferdam-{digits}")
}

pub(crate) fn is_private(key: &str) -> bool {
    key.starts_with("manager:")
}

/// The part of every key in a scope before the session's name.
pub(crate) fn scope_prefix(scope: &Scope) -> Result<String> {
    let any = SessionKey::new(scope, &Session::Default, "")?;
    Ok(any.0.trim_end_matches("default").to_owned())
}

fn escape(part: &str) -> String {
    part.replace('%', "%25").replace(':', "%3A")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(workflow: &str, name: &str) -> SessionKey {
        let scope = Scope { workflow: Some(workflow.into()), ..Scope::default() };
        SessionKey::new(&scope, &Session::parse(name), "me").unwrap()
    }

    #[test]
    fn a_key_reads_as_documented() {
        assert_eq!(key("wf_abc123", "default").as_str(), "workflow:wf_abc123:default");
        let nobody = SessionKey::new(&Scope::default(), &Session::Default, "m1").unwrap();
        assert_eq!(nobody.as_str(), "manager:m1:default");
    }

    #[test]
    fn the_workflow_wins_over_the_agent_and_the_agent_over_the_user() {
        let scope = Scope { workflow: None, agent: Some("a".into()), user: Some("u".into()) };
        assert_eq!(SessionKey::new(&scope, &Session::Default, "m").unwrap().as_str(), "agent:a:default");
    }

    #[test]
    fn isolated_sessions_are_never_shared() {
        assert_ne!(key("w", "isolated"), key("w", "isolated"));
    }

    #[test]
    fn empty_and_endless_parts_are_refused() {
        for id in [String::new(), "x".repeat(513)] {
            let scope = Scope { workflow: Some(id), ..Scope::default() };
            assert!(SessionKey::new(&scope, &Session::Default, "m").is_err());
        }
    }

    proptest! {
        #[test]
        fn different_parts_never_collide(a in ".{1,20}", b in ".{1,20}", c in ".{1,20}", d in ".{1,20}") {
            prop_assume!((&a, &b) != (&c, &d) && b != "isolated" && d != "isolated");
            prop_assert_ne!(key(&a, &b).claim(), key(&c, &d).claim());
        }
    }
}
