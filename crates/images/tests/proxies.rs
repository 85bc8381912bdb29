//! Networks that are reached through a proxy. The environment says so, and it belongs to the process: one test, one program.

#[path = "support/registry.rs"]
mod registry;
mod support;

use cofferdam_images::{ImageErrorKind, PullPolicy};
use registry::{Answer, FakeRegistry, Pulling, serve, small};

#[tokio::test]
async fn registries_elsewhere_are_asked_through_the_proxy_and_loopback_is_not() {
    let proxy = FakeRegistry::start(|_| Answer::new(403, "not there")).await;
    // SAFETY: nothing else runs in this program yet.
    unsafe { std::env::set_var("HTTPS_PROXY", format!("http://me:secret@{}", proxy.address)) };
    let pulling = Pulling::new();
    let reference = "registry.example/team/tool:1";
    let error = pulling.store.prepare(reference, PullPolicy::Missing, None).await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::Unreachable);
    assert!(error.message.contains("https://registry.example/v2/team/tool/manifests/1 cannot be reached"), "{error}");
    assert!(!error.message.contains("secret"), "{error}");
    let asked = &proxy.asked()[0];
    assert_eq!(asked.path, "registry.example:443");
    assert_eq!(asked.headers["proxy-authorization"], "Basic bWU6c2VjcmV0");

    let questions = proxy.asked().len();
    let made = small();
    let registry = FakeRegistry::start(move |asked| serve(&made, asked)).await;
    pulling.pull(&registry, "a:1").await.unwrap();
    assert_eq!(proxy.asked().len(), questions);
}
