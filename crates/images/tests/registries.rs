//! Pulls from registries that are difficult: each difficulty is met, or named with what to do about it.

#[path = "support/registry.rs"]
mod registry;
mod support;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cofferdam_images::{ImageErrorKind, OnProgress, Progress, PullPolicy};
use registry::{Answer, FakeRegistry, Pulling, content, serve, small};
use support::{Layer, digest, gzip, image, plain};

#[tokio::test]
async fn an_index_gives_the_image_of_this_machine() {
    let made = small();
    let other = digest(b"another machine's");
    let descriptor = |digest: &str, platform: serde_json::Value| {
        serde_json::json!({ "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest,
            "size": made.manifest.len(), "platform": platform })
    };
    let ours = digest(&made.manifest);
    let index = serde_json::json!({ "schemaVersion": 2, "manifests": [
        descriptor(&other, serde_json::json!({ "os": "linux", "architecture": "s390x" })),
        descriptor(&other, serde_json::json!({ "os": "windows", "architecture": support::architecture() })),
        descriptor(&ours, serde_json::json!({ "os": "linux", "architecture": support::architecture(), "variant": "v8" })),
        descriptor(&other, serde_json::json!({ "os": "unknown", "architecture": "unknown" })),
    ] });
    let without_ours = serde_json::json!({ "schemaVersion": 2, "manifests": [
        descriptor(&other, serde_json::json!({ "os": "linux", "architecture": "s390x" })),
    ] });
    let registry = FakeRegistry::start(move |asked| match asked.path.rsplit('/').next() {
        Some("1") => Answer::new(200, index.to_string()),
        Some("2") => Answer::new(200, without_ours.to_string()),
        _ => serve(&made, asked),
    })
    .await;
    let pulling = Pulling::new();
    let image = pulling.pull(&registry, "a/b:1").await.unwrap();
    assert_eq!(content(&image, "etc/name"), "small");
    assert_eq!(image.digest, ours);
    assert_eq!((image.config.user.as_deref(), image.config.workdir.as_deref()), (Some("app"), Some("/srv")));
    assert_eq!((image.config.env.clone(), image.config.cmd.clone()), (vec!["A=1".to_owned()], vec!["sh".to_owned()]));
    let error = pulling.pull(&registry, "a/b:2").await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::WrongPlatform);
    assert!(error.message.contains("only for linux/s390x"), "{error}");
    // Asked for what was accepted, in one question.
    let accept = &registry.asked()[0].headers["accept"];
    assert!(accept.contains("image.index.v1+json") && accept.contains("manifest.list.v2+json"), "{accept}");
}

#[tokio::test]
async fn packed_layers_are_unpacked_by_what_they_are() {
    let tar = |name: &str| Layer::new().file(name, name).finish();
    let mut twice = gzip(&tar("many")[..700]);
    twice.extend(gzip(&tar("many")[700..]));
    // A frame that carries nothing, then content in two frames, as tools for lazy pulling write it.
    let mut frames = vec![0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let zstd = |content: &[u8]| ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest);
    frames.extend(zstd(&tar("zstd")[..700]));
    frames.extend(zstd(&tar("zstd")[700..]));
    let layers =
        [(tar("plain"), tar("plain")), (gzip(&tar("gzip")), tar("gzip")), (twice, tar("many")), (frames, tar("zstd"))];
    let made = image(&layers);
    let registry = FakeRegistry::start(move |asked| serve(&made, asked)).await;
    let pulling = Pulling::new();
    let image = pulling.pull(&registry, "packed").await.unwrap();
    assert_eq!(image.layers.len(), 4);
    for (layer, name) in image.layers.iter().zip(["plain", "gzip", "many", "zstd"]) {
        assert_eq!(std::fs::read_to_string(layer.join(name)).unwrap(), name);
    }
}

#[tokio::test]
async fn what_is_not_what_its_digest_says_is_never_kept() {
    for target in ["layer", "config"] {
        let made = small();
        let wrong =
            if target == "layer" { made.blobs.values().find(|blob| blob.len() > 1024).unwrap() } else { &made.config };
        let wrong = digest(wrong);
        let registry = FakeRegistry::start(move |asked| {
            let mut answer = serve(&made, asked);
            if asked.path.ends_with(&wrong) {
                answer.body[20] ^= 1;
            }
            answer
        })
        .await;
        let pulling = Pulling::new();
        let error = pulling.pull(&registry, "a/b:1").await.unwrap_err();
        assert_eq!(error.kind, ImageErrorKind::DigestMismatch, "{error}");
        assert!(error.message.contains("should be sha256:") && error.message.contains("a/b:1"), "{error}");
        assert_eq!(pulling.stored(), [""; 0].map(PathBuf::from));
    }
    // Right as it was sent, and not what the image says it unpacks to.
    let layer = Layer::new().file("a", "a").finish();
    let made = image(&[(gzip(&layer), Layer::new().file("a", "b").finish())]);
    let registry = FakeRegistry::start(move |asked| serve(&made, asked)).await;
    let pulling = Pulling::new();
    let error = pulling.pull(&registry, "a/b:1").await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::DigestMismatch, "{error}");
    assert_eq!(pulling.stored(), [""; 0].map(PathBuf::from));
    // Another manifest than the one that was asked for.
    let made = small();
    let registry = FakeRegistry::start(move |_| Answer::new(200, made.manifest.clone())).await;
    let error = pulling.pull(&registry, &format!("a/b@{}", digest(b"x"))).await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::DigestMismatch, "{error}");
    // Longer than it says.
    let made = small();
    let registry = FakeRegistry::start(move |asked| {
        let mut answer = serve(&made, asked);
        if answer.body.len() > 1024 {
            answer.body.extend([0; 4096]);
            answer.sent = answer.body.len();
        }
        answer
    })
    .await;
    let error = pulling.pull(&registry, "a/b:1").await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::DigestMismatch, "{error}");
    assert!(error.message.contains("longer than"), "{error}");
}

#[tokio::test]
async fn a_download_that_breaks_off_is_continued_where_it_was() {
    let noise: String =
        (0..200_000_u32).map(|number| char::from(b'a' + (number.wrapping_mul(2_654_435_761) >> 28) as u8)).collect();
    let made = image(&plain(vec![Layer::new().file("big", &noise).finish()]));
    let size = made.blobs.values().map(Vec::len).max().unwrap();
    let registry = FakeRegistry::start(move |asked| {
        let answer = serve(&made, asked);
        if answer.body.len() < size {
            return answer;
        }
        let from = asked.headers.get("range").map(|range| range["bytes=".len()..range.len() - 1].parse().unwrap());
        let from: usize = from.unwrap_or(0);
        let rest = answer.body[from..].to_vec();
        let sent = rest.len().min(60_000);
        let range = format!("bytes {from}-{}/{size}", size - 1);
        Answer::new(if from > 0 { 206 } else { 200 }, rest).header("content-range", &range).cut(sent)
    })
    .await;
    let pulling = Pulling::new();
    let image = pulling.pull(&registry, "big:1").await.unwrap();
    assert_eq!(content(&image, "big"), noise);
    let ranges: Vec<String> =
        registry.asked().into_iter().filter_map(|asked| asked.headers.get("range").cloned()).collect();
    assert_eq!(ranges, ["bytes=60000-", "bytes=120000-", "bytes=180000-"]);
}

#[tokio::test]
async fn what_a_registry_refuses_is_said_with_what_to_do() {
    let cases: [(u16, &str, ImageErrorKind, &str); 5] = [
        (
            404,
            r#"{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known"}]}"#,
            ImageErrorKind::NotFound,
            "Check the name and the tag",
        ),
        (
            403,
            r#"{"errors":[{"code":"DENIED","message":"requested access is denied"}]}"#,
            ImageErrorKind::Unauthorized,
            "docker login",
        ),
        (401, "", ImageErrorKind::Unauthorized, "no credentials for it"),
        (
            429,
            r#"{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}"#,
            ImageErrorKind::RateLimited,
            "slow down",
        ),
        (418, "a teapot", ImageErrorKind::Unreachable, "answers 418"),
    ];
    for (status, body, kind, said) in cases {
        let registry = FakeRegistry::start(move |_| Answer::new(status, body)).await;
        let error = Pulling::new().pull(&registry, "nope:1").await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(said), "{error}");
        assert!(error.message.contains("nope:1\" could not be pulled"), "{error}");
    }
    for manifest in [
        r#"{"schemaVersion":1,"fsLayers":[]}"#.to_owned(),
        "<html>".to_owned(),
        r#"{"schemaVersion":2}"#.to_owned(),
        format!(
            r#"{{"schemaVersion":2,"config":{{"mediaType":"application/vnd.cncf.helm.config.v1+json","digest":"{0}","size":1}},"layers":[]}}"#,
            digest(b"x")
        ),
        format!(
            r#"{{"schemaVersion":2,"config":{{"digest":"{0}","size":1}},"layers":[{{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip+encrypted","digest":"{0}","size":1}}]}}"#,
            digest(b"x")
        ),
    ] {
        let told = manifest.clone();
        let registry = FakeRegistry::start(move |_| Answer::new(200, manifest.clone())).await;
        let error = Pulling::new().pull(&registry, "odd").await.unwrap_err();
        assert_eq!(error.kind, ImageErrorKind::Unsupported, "{told}: {error}");
    }
}

#[tokio::test]
async fn a_busy_registry_is_asked_again_and_a_silent_or_absent_one_is_named() {
    let made = small();
    let refusals = AtomicUsize::new(2);
    let registry = FakeRegistry::start(move |asked| {
        let refuses = refusals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if refuses { Answer::new(503, "busy") } else { serve(&made, asked) }
    })
    .await;
    Pulling::new().pull(&registry, "a:1").await.unwrap();

    let silent = FakeRegistry::start(|_| Answer::silent()).await;
    let error = Pulling::impatient().pull(&silent, "a:1").await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::Timeout, "{error}");
    assert!(error.message.contains("did not answer within 0.7 s"), "{error}");

    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let absent = Pulling::new().store.prepare(&format!("{free}/a:1"), PullPolicy::Missing, None).await.unwrap_err();
    assert_eq!(absent.kind, ImageErrorKind::Unreachable, "{absent}");
    assert!(absent.message.contains("refused"), "{absent}");
}

#[tokio::test]
async fn policies_decide_who_is_asked_and_progress_is_told() {
    let current = Arc::new(Mutex::new(small()));
    let served = current.clone();
    let registry = FakeRegistry::start(move |asked| serve(&served.lock().unwrap(), asked)).await;
    let pulling = Pulling::new();
    let name = format!("{}/a/b:1", registry.address);
    let told: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let log = told.clone();
    let listener: OnProgress = Arc::new(move |step| log.lock().unwrap().push(step));
    let prepare = |pull| pulling.store.prepare(&name, pull, Some(&listener));

    let error = prepare(PullPolicy::Never).await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::NotFound);
    assert!(error.message.contains("is not in the store"), "{error}");
    assert_eq!(registry.paths().len(), 0);

    let first = prepare(PullPolicy::Missing).await.unwrap();
    let steps = std::mem::take(&mut *told.lock().unwrap());
    assert!(steps.iter().all(|step| step.image == name));
    let statuses: Vec<&str> = steps.iter().map(|step| step.status.as_str()).collect();
    for status in
        ["Pulling from a/b", "Pulling fs layer", "Downloading", "Download complete", "Extracting", "Pull complete"]
    {
        assert!(statuses.contains(&status), "{status} in {statuses:?}");
    }
    assert!(statuses.last().unwrap().starts_with("Status: Downloaded newer image for"), "{statuses:?}");
    let done = steps.iter().rfind(|step| step.status == "Downloading").unwrap();
    assert_eq!(done.layer.as_ref().unwrap().len(), 12);
    assert!(done.current_bytes.is_some() && done.current_bytes == done.total_bytes, "{done:?}");

    let questions = registry.paths().len();
    prepare(PullPolicy::Missing).await.unwrap();
    prepare(PullPolicy::Never).await.unwrap();
    assert_eq!(registry.paths().len(), questions);
    assert_eq!(*told.lock().unwrap(), []);

    assert_eq!(prepare(PullPolicy::Always).await.unwrap().id, first.id);
    assert_eq!(registry.paths().len(), questions + 1);
    assert!(told.lock().unwrap().last().unwrap().status.contains("up to date"));

    let base = current.lock().unwrap().blobs.values().find(|blob| blob.len() > 1024).unwrap().clone();
    *current.lock().unwrap() = image(&plain(vec![base, Layer::new().file("etc/name", "newer").finish()]));
    assert_eq!(content(&prepare(PullPolicy::Missing).await.unwrap(), "etc/name"), "small");
    let newer = prepare(PullPolicy::Always).await.unwrap();
    assert_eq!(content(&newer, "etc/name"), "newer");
    // The layer that both have is one folder.
    assert_eq!(newer.layers[0], first.layers[0]);
    assert!(told.lock().unwrap().iter().any(|step| step.status == "Already exists"));
    // The old one is still there, by its id and by its digest.
    assert_eq!(pulling.store.prepare(&first.id, PullPolicy::Never, None).await.unwrap().layers, first.layers);
}
