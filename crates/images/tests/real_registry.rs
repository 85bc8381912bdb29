//! A real registry on loopback, open and closed: docker pushes to it, the store pulls from it.

mod support;

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_images::{ImageErrorKind, ImageStore, PullPolicy, StoreOptions};
use support::{Layer, Made, Place, gzip, image, missing};

/// `user:pass`; registries take nothing but bcrypt.
const PASSWORDS: &str = "user:$2y$05$abcdefghijklmnopqrstuuZFBUbfXoM8LFiPx8LYlO/sXZB/Cwk3K\n";

struct Registry {
    process: Child,
    address: String,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Nothing where there is no such program; says so.
fn start(place: &Place, what: &str, is_closed: bool) -> Option<Registry> {
    let Some(program) = std::env::var_os("COFFERDAM_TEST_REGISTRY") else {
        missing(what, "no docker-registry was named in COFFERDAM_TEST_REGISTRY; npm test brings one");
        return None;
    };
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let passwords = place.path("passwords");
    std::fs::write(&passwords, PASSWORDS).unwrap();
    let mut config = serde_json::json!({
        "version": "0.1", "log": { "level": "error" }, "http": { "addr": address },
        "storage": { "filesystem": { "rootdirectory": place.path("registry") } },
    });
    if is_closed {
        config["auth"] = serde_json::json!({ "htpasswd": { "realm": "test", "path": passwords } });
    }
    // JSON is YAML.
    std::fs::write(place.path("registry.yml"), config.to_string()).unwrap();
    let mut command = Command::new(program);
    command.arg("serve").arg(place.path("registry.yml")).stdout(Stdio::null()).stderr(Stdio::null());
    let process = command.spawn().unwrap();
    let registry = Registry { process, address };
    let began = Instant::now();
    while TcpStream::connect(&registry.address).is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "the registry did not start");
        std::thread::yield_now();
    }
    Some(registry)
}

/// Puts an image into the registry's storage as it keeps it: pushing is docker's part, and not always here.
fn put(storage: &Path, repository: &str, tag: &str, made: &Made) {
    let root = storage.join("docker/registry/v2");
    let write = |path: std::path::PathBuf, content: &[u8]| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    for (digest, content) in &made.blobs {
        let hex = &digest[7..];
        write(root.join("blobs/sha256").join(&hex[..2]).join(hex).join("data"), content);
        let kind = if *content == made.manifest { "_manifests/revisions" } else { "_layers" };
        let link = root.join("repositories").join(repository).join(kind).join("sha256").join(hex).join("link");
        write(link, digest.as_bytes());
    }
    let manifest = support::digest(&made.manifest);
    let tags = root.join("repositories").join(repository).join("_manifests/tags").join(tag);
    write(tags.join("current/link"), manifest.as_bytes());
    write(tags.join("index/sha256").join(&manifest[7..]).join("link"), manifest.as_bytes());
}

fn two_layers() -> Made {
    let base = Layer::new().folder("etc", 0o755).file("etc/base", "base").finish();
    let top = Layer::new().folder("etc", 0o755).file("etc/.wh.base", "").file("etc/top", "top").finish();
    image(&[(gzip(&base), base), (gzip(&top), top)])
}

#[tokio::test]
async fn an_image_is_pulled_by_tag_and_by_digest() {
    let place = Place::new();
    let Some(registry) = start(&place, "pulls from a real registry", false) else { return };
    let made = two_layers();
    put(&place.path("registry"), "team/tool", "1", &made);
    let store = ImageStore::new(place.path("store"));
    let name = format!("{}/team/tool", registry.address);
    let image = store.prepare(&format!("{name}:1"), PullPolicy::Missing, None).await.unwrap();
    assert_eq!((image.layers.len(), image.digest.as_str()), (2, support::digest(&made.manifest).as_str()));
    assert_eq!(std::fs::read_to_string(image.layers[1].join("etc/top")).unwrap(), "top");
    let by_digest = format!("{name}@{}", image.digest);
    assert_eq!(store.prepare(&by_digest, PullPolicy::Missing, None).await.unwrap().id, image.id);

    let error = store.prepare(&format!("{name}:2"), PullPolicy::Missing, None).await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::NotFound);
    assert!(error.message.contains("manifest unknown"), "{error}");
    let error = store.prepare(&format!("{}/team/none", registry.address), PullPolicy::Missing, None).await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::NotFound, "{error}");
}

#[tokio::test]
async fn a_closed_registry_opens_to_the_credentials_of_docker() {
    let place = Place::new();
    let Some(registry) = start(&place, "pulls with credentials", true) else { return };
    put(&place.path("registry"), "team/tool", "1", &two_layers());
    let name = format!("{}/team/tool:1", registry.address);
    let config = place.path("config.json");
    let options = StoreOptions { docker_config: Some(config.clone()), ..StoreOptions::default() };
    let store = ImageStore::with(place.path("store"), options);

    let error = store.prepare(&name, PullPolicy::Missing, None).await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::Unauthorized, "{error}");
    assert!(error.message.contains("docker login"), "{error}");
    let log_in = |auth: &str| {
        let content = format!(r#"{{"auths":{{"{}":{{"auth":"{auth}"}}}}}}"#, registry.address);
        std::fs::write(&config, content).unwrap();
    };
    log_in("dXNlcjp3cm9uZw==");
    let error = store.prepare(&name, PullPolicy::Missing, None).await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::Unauthorized, "{error}");
    log_in("dXNlcjpwYXNz");
    assert_eq!(store.prepare(&name, PullPolicy::Missing, None).await.unwrap().layers.len(), 2);
}

#[tokio::test]
async fn what_docker_pushes_is_pulled_once_however_many_ask() {
    let place = Place::new();
    let Some(registry) = start(&place, "pulls of what docker pushed", false) else { return };
    if std::env::var_os("DOCKER_HOST").is_none() {
        return missing("pulls of what docker pushed", "no engine was named in DOCKER_HOST; npm test brings one");
    }
    let name = format!("{}/team/pushed:1", registry.address);
    let docker = |arguments: &[&str]| {
        let output = Command::new("docker").args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    docker(&["tag", "alpine:3.19", &name]);
    docker(&["push", "--quiet", &name]);
    docker(&["image", "rm", &name]);
    let id = docker(&["image", "inspect", "--format", "{{.Id}}", "alpine:3.19"]);
    let unpacked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    // Each its own store on the same folder, as processes have it.
    let pulls = (0..8).map(|_| {
        let (folder, name, unpacked) = (place.path("store"), name.clone(), unpacked.clone());
        tokio::spawn(async move {
            let listener: cofferdam_images::OnProgress = Arc::new(move |step| {
                if step.status == "Pull complete" {
                    unpacked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            });
            ImageStore::new(folder).prepare(&name, PullPolicy::Missing, Some(&listener)).await
        })
    });
    for pull in pulls.collect::<Vec<_>>() {
        let image = pull.await.unwrap().unwrap();
        assert_eq!(image.id, id);
        assert!(image.layers[0].join("bin/busybox").is_file());
    }
    let layers = std::fs::read_dir(place.path("store/layers")).unwrap().count();
    assert_eq!(unpacked.load(std::sync::atomic::Ordering::Relaxed), layers);
}
