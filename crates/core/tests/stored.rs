//! What is stored on disks and engines stays readable. A snapshot of a released version never changes.

use std::collections::BTreeMap;

use cofferdam_core::backend::{BoxSpec, CommandUser, StoredSpec};
use cofferdam_core::{Limits, Network, Scope, Session, SessionKey};
use cofferdam_protocol::Lease;

fn spec() -> BoxSpec {
    let scope = Scope { workflow: Some("wf_1".to_owned()), ..Scope::default() };
    let pairs = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    BoxSpec {
        sandbox_id: "sbx_0011".to_owned(),
        key: Some(SessionKey::new(&scope, &Session::Default, "").unwrap()),
        image: "python:3.11-slim".to_owned(),
        layer: Some("cofferdam-packages:abc".to_owned()),
        workdir: "/srv/work".to_owned(),
        user: CommandUser::Named("1000:1000".to_owned()),
        env: pairs("A", "1"),
        labels: pairs("team", "x"),
        lease: Lease { idle_ms: 1_800_000, max_ms: 14_400_000, orphan_ms: 300_000 },
        limits: Limits {
            cpus: Some(1.5),
            memory_mb: Some(512),
            pids: Some(64),
            workspace_mb: Some(64),
            open_files: None,
        },
        network: Network::Open,
        read_only_root: false,
        persist: true,
    }
}

#[test]
fn the_current_version_is_written_as_its_snapshot_says() {
    let written = serde_json::to_string(&StoredSpec(spec())).unwrap();
    assert_eq!(written, include_str!("stored/v1.txt").trim());
}

#[test]
fn every_released_version_is_read() {
    for (version, stored) in [(0, include_str!("stored/v0.txt")), (1, include_str!("stored/v1.txt"))] {
        let StoredSpec(read) = serde_json::from_str(stored).unwrap();
        assert_eq!(read, spec(), "version {version}");
    }
}

#[test]
fn the_image_s_own_user_is_stored_as_none() {
    let stored = StoredSpec(BoxSpec { user: CommandUser::Image, key: None, ..spec() });
    let text = serde_json::to_string(&stored).unwrap();
    assert!(text.contains(r#""user":null"#) && text.contains(r#""key":"""#), "{text}");
    assert_eq!(serde_json::from_str::<StoredSpec>(&text).unwrap().0, stored.0);
}

#[test]
fn a_newer_version_says_so() {
    let newer = include_str!("stored/v1.txt").replace(r#""version":1"#, r#""version":9"#);
    let error = serde_json::from_str::<StoredSpec>(&newer).unwrap_err().to_string();
    assert!(error.contains("version 9, newer than 1"), "{error}");
}
