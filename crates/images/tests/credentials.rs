//! Registries that want to know who asks: they are told, and nobody else is.

#[path = "support/registry.rs"]
mod registry;
mod support;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use cofferdam_images::ImageErrorKind;
use registry::{Answer, FakeRegistry, Pulling, content, serve, small};
use support::Place;

#[tokio::test]
async fn credentials_go_to_whom_they_are_for_and_to_nobody_else() {
    let made = small();
    // Where blobs really are; it must not see who asks.
    let blobs = Arc::new(FakeRegistry::start(move |asked| serve(&small(), asked)).await);
    let elsewhere = blobs.address.clone();
    let registry = FakeRegistry::start(move |asked| {
        let authorization = asked.headers.get("authorization").map(String::as_str);
        let host = &asked.headers["host"];
        if asked.path.starts_with("/token") {
            let wanted = asked.path.contains("scope=repository%3Aa%2Fb%3Apull") && asked.path.contains("service=here");
            return match authorization {
                Some("Basic bWU6c2VjcmV0") if wanted => Answer::new(200, r#"{"token":"T0K"}"#),
                _ => Answer::new(401, "{}"),
            };
        }
        if authorization != Some("Bearer T0K") {
            let challenge = format!(r#"Bearer realm="http://{host}/token",service="here",scope="repository:a/b:pull""#);
            return Answer::new(401, "{}").header("www-authenticate", &challenge);
        }
        match asked.path.contains("/blobs/") {
            true => Answer::new(307, "").header("location", &format!("http://{elsewhere}{}", asked.path)),
            false => serve(&made, asked),
        }
    })
    .await;
    let config = format!(r#"{{"auths":{{"http://{}/v1/":{{"auth":"bWU6c2VjcmV0"}}}}}}"#, registry.address);
    let pulling = Pulling::with_config(Some(&config));
    let image = pulling.pull(&registry, "a/b:1").await.unwrap();
    assert_eq!(content(&image, "etc/name"), "small");
    assert_eq!(blobs.paths().len(), 2);
    assert!(blobs.asked().iter().all(|asked| !asked.headers.contains_key("authorization")));
    // One token serves all questions.
    assert_eq!(registry.paths().iter().filter(|path| path.starts_with("/token")).count(), 1);

    let error = Pulling::new().pull(&registry, "a/b:1").await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::Unauthorized, "{error}");
    assert!(error.message.contains("no-config.json") && error.message.contains("docker login"), "{error}");
    let wrong = format!(r#"{{"auths":{{"{}":{{"auth":"bWU6d3Jvbmc="}}}}}}"#, registry.address);
    let error = Pulling::with_config(Some(&wrong)).pull(&registry, "a/b:1").await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::Unauthorized, "{error}");
    assert!(error.message.contains("does not let the user of") && !error.message.contains("wrong"), "{error}");
    let broken = Pulling::with_config(Some("{")).pull(&registry, "a/b:1").await.unwrap_err();
    assert!(broken.message.contains("config.json cannot be used"), "{broken}");
}

#[tokio::test]
async fn plain_http_is_not_followed_off_this_machine() {
    let made = small();
    let registry = FakeRegistry::start(move |asked| match asked.path.contains("/blobs/") {
        true => Answer::new(307, "").header("location", "http://192.0.2.1/blob"),
        false => serve(&made, asked),
    })
    .await;
    let error = Pulling::new().pull(&registry, "a:1").await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::Unsupported);
    assert!(error.message.contains("is not encrypted, and not on this machine"), "{error}");
}

/// The only test that looks for programs: they are found by `PATH`, which belongs to the process.
#[tokio::test]
async fn helpers_are_asked_for_credentials() {
    let made = small();
    let registry = FakeRegistry::start(move |asked| match asked.headers.get("authorization").map(String::as_str) {
        Some("Basic bWU6c2VjcmV0") => serve(&made, asked),
        _ => Answer::new(401, "{}").header("www-authenticate", r#"Basic realm="x""#),
    })
    .await;
    let programs = Place::new();
    let folder = programs.path("bin");
    std::fs::create_dir(&folder).unwrap();
    let program = |name: &str, script: &str| {
        let path = folder.join(format!("docker-credential-{name}"));
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let question = programs.path("question");
    let knows =
        format!(r#"cat >'{}'; echo '{{"ServerURL":"x","Username":"me","Secret":"secret"}}'"#, question.display());
    program("cdtest-knows", &knows);
    program("cdtest-empty", "echo 'credentials not found in native keychain'; exit 1");
    program("cdtest-broken", "echo 'the keyring is locked'; exit 1");
    let path = std::env::var("PATH").unwrap();
    // SAFETY: all that reads the environment in this program does so through the standard library, which locks it.
    unsafe { std::env::set_var("PATH", format!("{}:{path}", folder.display())) };

    let config = |helper: &str| {
        format!(r#"{{"credHelpers":{{"{}":"{helper}"}},"credsStore":"cdtest-empty"}}"#, registry.address)
    };
    let pulling = Pulling::with_config(Some(&config("cdtest-knows")));
    pulling.pull(&registry, "a:1").await.unwrap();
    assert_eq!(std::fs::read_to_string(&question).unwrap(), registry.address);
    let store = r#"{"credsStore":"cdtest-knows"}"#;
    Pulling::with_config(Some(store)).pull(&registry, "a:1").await.unwrap();
    for (helper, said) in [
        ("cdtest-empty", "no credentials for it"),
        ("cdtest-broken", "the keyring is locked"),
        ("cdtest-missing", "cannot be started"),
        ("../evil", "is not a plain name"),
    ] {
        let error = Pulling::with_config(Some(&config(helper))).pull(&registry, "a:1").await.unwrap_err();
        assert_eq!(error.kind, ImageErrorKind::Unauthorized, "{error}");
        assert!(error.message.contains(said), "{error}");
    }
}
