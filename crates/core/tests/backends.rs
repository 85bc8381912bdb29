//! The contract of boxes and claims, on a backend in memory: what a manager needs of any backend, and what it says where a backend has
//! no more than that.

#[expect(unreachable_pub, reason = "a module of this test program")]
mod memory;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cofferdam_core::backend::{Backend, BoxState, Claims};
use cofferdam_core::{
    ErrorCode, Limits, Manager, ManagerOptions, OpenRequest, Packages, Scope, Session, SessionKey, WarmRequest,
};
use cofferdam_protocol::Lease;
use memory::Memory;

const LEASE: Lease = Lease { idle_ms: 0, max_ms: 0, orphan_ms: 0 };

fn scoped(workflow: &str) -> OpenRequest {
    let scope = Scope { workflow: Some(workflow.to_owned()), ..Scope::default() };
    OpenRequest { scope, image: Some("any:1".to_owned()), ..OpenRequest::default() }
}

fn key(workflow: &str) -> SessionKey {
    SessionKey::new(&scoped(workflow).scope, &Session::Default, "").unwrap()
}

fn manager(backend: &Arc<Memory>, options: ManagerOptions) -> Manager {
    Manager::with_backend(Arc::clone(backend) as Arc<dyn Backend>, options)
}

/// A manager with `count` warm sandboxes, once they are ready.
async fn warm(backend: &Arc<Memory>, count: usize) -> Manager {
    let open = OpenRequest { image: Some("any:1".to_owned()), ..OpenRequest::default() };
    let options = ManagerOptions { warm: vec![WarmRequest { open, count }], ..ManagerOptions::default() };
    let manager = manager(backend, options);
    let mut events = manager.events();
    manager.warm_up();
    loop {
        if events.next_many().await.iter().any(|event| event.details.get("ready") == Some(&count.into())) {
            return manager;
        }
    }
}

#[tokio::test]
async fn a_claim_has_one_holder_and_ends_with_its_box() {
    let backend = Arc::new(Memory::default());
    let manager = manager(&backend, ManagerOptions::default());
    let sandbox = manager.open(scoped("a")).await.unwrap();
    let holder = backend.holder(&key("a")).await.unwrap().unwrap();
    assert_eq!((holder.id.as_str(), holder.claim), (sandbox.id(), Some(key("a").claim())));

    let second = manager.open(scoped("b")).await.unwrap();
    let other = backend.holder(&key("b")).await.unwrap().unwrap();
    assert!(!backend.assign(&other.handle, &key("a"), LEASE).await.unwrap(), "it has a holder");
    sandbox.close().await.unwrap();
    assert!(backend.holder(&key("a")).await.unwrap().is_none());
    assert!(backend.assign(&other.handle, &key("a"), LEASE).await.unwrap());
    second.close().await.unwrap();
    assert!(backend.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn however_many_programs_open_a_session_at_once_there_is_one_box() {
    let backend = Arc::new(Memory::default());
    let managers: Vec<_> = (0..20).map(|_| manager(&backend, ManagerOptions::default())).collect();
    let opens = managers.iter().map(|manager| manager.open(scoped("shared")));
    let opened = futures_util::future::join_all(opens).await;
    let opened: Vec<_> = opened.into_iter().map(|opened| opened.unwrap()).collect();
    assert_eq!(opened.iter().map(|opened| opened.id().to_owned()).collect::<HashSet<_>>().len(), 1);
    assert_eq!(opened.iter().filter(|opened| opened.created).count(), 1);
    assert_eq!(backend.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_warm_box_is_claimed_by_compare_and_swap() {
    let backend = Arc::new(Memory::default());
    let manager = warm(&backend, 2).await;
    assert!(backend.list().await.unwrap().iter().all(|record| record.state == BoxState::Warm));
    let sandbox = manager.open(scoped("a")).await.unwrap();
    assert_eq!(backend.holder(&key("a")).await.unwrap().unwrap().id, sandbox.id());
    // The user comes from the image, which only the backend has seen.
    assert_eq!(sandbox.status().await.unwrap().setup.user.as_deref(), Some("image-user"));
    manager.close().await.unwrap();
    assert!(backend.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_session_that_another_box_serves_costs_no_more_than_one_warm_box() {
    let backend = Arc::new(Memory::default());
    let elsewhere = manager(&backend, ManagerOptions::default());
    let theirs = elsewhere.open(scoped("a")).await.unwrap();
    let manager = warm(&backend, 3).await;
    let before = backend.created.load(Ordering::SeqCst);
    let ours = manager.open(scoped("a")).await.unwrap();
    assert_eq!((ours.id(), ours.created), (theirs.id(), false));
    assert!(backend.created.load(Ordering::SeqCst) <= before + 1);
    manager.close().await.unwrap();
    elsewhere.close().await.unwrap();
}

#[tokio::test]
async fn a_box_whose_claimant_died_before_it_told_the_guest_is_claimed_by_the_next() {
    let backend = Arc::new(Memory::default());
    let pool = warm(&backend, 1).await;
    let orphan = backend.list().await.unwrap().remove(0);
    assert!(backend.assign(&orphan.handle, &key("a"), LEASE).await.unwrap());
    let sandbox = manager(&backend, ManagerOptions::default()).open(scoped("a")).await.unwrap();
    assert_eq!((sandbox.id(), sandbox.created), (orphan.id.as_str(), true));
    pool.close().await.unwrap();
}

#[tokio::test]
async fn what_a_backend_cannot_do_is_one_error_with_its_name() {
    let backend = Arc::new(Memory::default());
    let manager = manager(&backend, ManagerOptions::default());
    let sandbox = manager.open(scoped("a")).await.unwrap();
    let limits = Limits { pids: Some(64), ..Limits::default() };
    let packages = Packages { pip: vec!["x".to_owned()], ..Packages::default() };
    let errors = [
        manager.open(OpenRequest { persist: true, ..scoped("b") }).await.err(),
        manager.open(OpenRequest { packages, ..scoped("c") }).await.err(),
        manager.pull("any:1", None).await.err(),
        manager.set_limits(&sandbox, limits).await.err(),
    ];
    for error in errors {
        let error = error.expect("it is refused");
        assert_eq!(error.code(), Some(ErrorCode::Unsupported), "{error}");
        assert!(error.to_string().starts_with("the memory backend cannot "), "{error}");
    }
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_created_box_can_be_found_by_its_handle_until_it_is_removed() {
    let backend = Arc::new(Memory::default());
    let manager = manager(&backend, ManagerOptions::default());
    let sandbox = manager.open(scoped("a")).await.unwrap();
    let record = backend.list().await.unwrap().remove(0);
    assert_eq!(backend.find(&record.handle).await.unwrap().unwrap().id, record.id);
    assert!(backend.fate(&record.handle).await.is_none());
    backend.remove(&record.handle).await.unwrap();
    backend.remove(&record.handle).await.unwrap();
    assert!(backend.find(&record.handle).await.unwrap().is_none());
    assert_eq!(backend.fate(&record.handle).await.unwrap().code(), Some(ErrorCode::SandboxLost));
    assert_eq!(backend.link(&record.handle).await.err().unwrap().code(), Some(ErrorCode::SandboxLost));
    assert_eq!(sandbox.status().await.unwrap_err().code(), Some(ErrorCode::SandboxLost));
    let again = manager.open(scoped("a")).await.unwrap();
    assert!(again.created && again.id() != record.id);
}
