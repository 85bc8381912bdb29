//! Session keys: which callers share a sandbox.
//!
//! A key is `namespace:id:name`. It is shown with `%` and `:` escaped inside its parts, and claimed on the engine by a
//! hash of the escaped form, so no two keys can collide, whatever characters they contain.

use sha2::{Digest, Sha256};

use crate::id::{hex, random_id};
use crate::{Error, Result};

/// The name of unshared sessions, and the prefix of their generated names.
const ISOLATED: &str = "isolated";

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
    /// The scope's default session.
    #[default]
    Default,
    /// A new session that is never shared.
    Isolated,
    /// A named session.
    Named(String),
}

impl Session {
    /// Parses a caller's session name.
    pub fn parse(name: &str) -> Session {
        match name {
            "default" => Session::Default,
            ISOLATED => Session::Isolated,
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
            Session::Isolated => random_id(&format!("{ISOLATED}-")),
            Session::Named(name) => name.clone(),
        };
        for (what, part) in [(namespace, id), ("session", name.as_str())] {
            if part.is_empty() || part.len() > MAX_PART {
                return Err(Error::invalid(format!("{what} must have 1 to {MAX_PART} bytes, not {}", part.len())));
            }
        }
        Ok(SessionKey(format!("{namespace}:{}:{}", escape(id), escape(&name))))
    }

    /// An internal key, in a namespace that no scope uses.
    pub(crate) fn internal(namespace: &str, name: &str) -> SessionKey {
        SessionKey(format!("{namespace}:{name}"))
    }

    /// A key as it was stored or shown; `None` for the empty text of an unclaimed box.
    pub(crate) fn from_text(text: String) -> Option<SessionKey> {
        (!text.is_empty()).then_some(SessionKey(text))
    }

    /// `workflow:wf_abc123:default`
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the session's claim: valid on every engine, and free of the key's text.
    pub fn claim(&self) -> String {
        claim(&self.0)
    }

    /// Whether no other program can open it: it belongs to one manager.
    pub fn is_private(&self) -> bool {
        self.0.starts_with("manager:")
    }
}

pub(crate) fn claim(key: &str) -> String {
    let digest = Sha256::digest(key.as_bytes());
    format!("cofferdam-{}", hex(&digest[..16]))
}

/// Whether a session of this name is never shared between callers.
pub fn is_isolated(name: &str) -> bool {
    name.strip_prefix(ISOLATED).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The session's name in a key: `open()` with it and the same scope gives the same session.
pub fn session_name(key: &str) -> String {
    unescape(key.rsplit(':').next().unwrap_or_default())
}

/// The common prefix of all keys in a scope.
pub(crate) fn scope_prefix(scope: &Scope) -> Result<String> {
    let any = SessionKey::new(scope, &Session::Default, "")?;
    Ok(any.0.trim_end_matches("default").to_owned())
}

fn escape(part: &str) -> String {
    part.replace('%', "%25").replace(':', "%3A")
}

fn unescape(part: &str) -> String {
    part.replace("%3A", ":").replace("%25", "%")
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
    fn isolated_sessions_are_known_by_their_names() {
        assert!(is_isolated("isolated") && is_isolated(&session_name(key("w", "isolated").as_str())));
        for name in ["default", "isolate", "isolatedly", "not-isolated"] {
            assert!(!is_isolated(name), "{name}");
        }
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
        fn a_key_gives_its_name_back(id in ".{1,20}", name in ".{1,20}|(%3A|%25|:|%){1,5}") {
            prop_assume!(name != "isolated");
            prop_assert_eq!(session_name(key(&id, &name).as_str()), name);
        }

        #[test]
        fn different_parts_never_collide(a in ".{1,20}", b in ".{1,20}", c in ".{1,20}", d in ".{1,20}") {
            prop_assume!((&a, &b) != (&c, &d) && b != "isolated" && d != "isolated");
            prop_assert_ne!(key(&a, &b).claim(), key(&c, &d).claim());
        }
    }
}
