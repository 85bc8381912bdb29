//! Images of a real engine: what is unpacked here is what a container of the same image sees.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cofferdam_images::{Image, ImageStore, PullPolicy};
use support::{Place, Seen, User, in_overlay, is_root, look, missing, skipped};

fn docker(arguments: &[&str]) -> String {
    let output = Command::new("docker").args(arguments).output().unwrap();
    assert!(output.status.success(), "docker {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Whether there is an engine to compare with; says so where there is none.
fn has_engine(what: &str) -> bool {
    if std::env::var_os("COFFERDAM_NO_ENGINE").is_some() || std::env::var_os("DOCKER_HOST").is_none() {
        missing(what, "no engine was named in DOCKER_HOST; npm test brings one");
        return false;
    }
    if !is_root() {
        skipped(what, "only root sees owners and mounts as an engine does");
        return false;
    }
    let answer = Command::new("docker").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let answers = answer.is_ok_and(|status| status.success());
    if !answers {
        missing(what, "there is no docker program that reaches the engine");
    }
    answers
}

/// A container or an image of this test, gone with it.
struct Made(&'static str, String);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = Command::new("docker").args([self.0, "rm", "--force", &self.1]).output();
    }
}

/// What a container of the image has, by its own engine: started never, so that nothing but the image is in it.
fn exported(place: &Place, image: &str) -> BTreeMap<PathBuf, Seen> {
    let container = Made("container", docker(&["create", image, "none"]));
    let archive = place.path("exported.tar");
    docker(&["export", "--output", archive.to_str().unwrap(), &container.1]);
    let folder = place.path("exported");
    std::fs::create_dir(&folder).unwrap();
    let status = Command::new("tar").arg("-xpf").arg(&archive).arg("-C").arg(&folder).arg("--numeric-owner").status();
    assert!(status.unwrap().success());
    let mut seen = look(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    tidy(&mut seen);
    seen
}

/// What an engine puts into every container, whatever its image has there.
fn tidy(seen: &mut BTreeMap<PathBuf, Seen>) {
    const ENGINES: [&str; 4] = ["dev", "proc", "sys", "etc"];
    for name in [".dockerenv", "etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/mtab"] {
        seen.remove(Path::new(name));
    }
    seen.retain(|path, _| !["dev", "proc", "sys"].iter().any(|folder| path.starts_with(folder)));
    // Their times, and that of the root, are those of the container.
    for (path, seen) in seen {
        if path.as_os_str().is_empty() || ENGINES.iter().any(|folder| path == Path::new(folder)) {
            seen.mtime = 0;
        }
    }
}

/// What the layers show together.
fn merged(place: &Place, image: &Image) -> BTreeMap<PathBuf, Seen> {
    let copied = place.path("copied");
    let script = format!("cp -a \"$MERGED\" '{}'", copied.display());
    in_overlay(&image.layers, place, User::Root, &script);
    let mut seen = look(&copied);
    std::fs::remove_dir_all(copied).unwrap();
    tidy(&mut seen);
    seen
}

fn differences(ours: &BTreeMap<PathBuf, Seen>, theirs: &BTreeMap<PathBuf, Seen>) -> Vec<String> {
    let all: std::collections::BTreeSet<&PathBuf> = ours.keys().chain(theirs.keys()).collect();
    let different = all.into_iter().filter(|path| ours.get(*path) != theirs.get(*path));
    different.map(|path| format!("{}: {:?} / {:?}", path.display(), ours.get(path), theirs.get(path))).collect()
}

/// One test each, so that they go side by side.
async fn compare_with_its_containers(name: &str) {
    if !has_engine("saved images") {
        return;
    }
    let place = Place::new();
    let saved = place.path("saved.tar");
    docker(&["save", "--output", saved.to_str().unwrap(), name]);
    let store = ImageStore::new(place.path("store"));
    let loaded = store.load(&saved).await.unwrap();
    assert_eq!(loaded, format!("docker.io/library/{name}"));
    let image = store.prepare(name, PullPolicy::Never, None).await.unwrap();
    assert_eq!(image.id, docker(&["image", "inspect", "--format", "{{.Id}}", name]));
    let (ours, theirs) = (merged(&place, &image), exported(&place, name));
    assert!(ours.len() > 100 || name.starts_with("alpine"), "{name} has only {} entries", ours.len());
    assert_eq!(differences(&ours, &theirs), [""; 0], "{name}");
}

#[tokio::test]
async fn a_small_saved_image_unpacks_to_what_its_containers_see() {
    compare_with_its_containers("alpine:3.19").await;
}

#[tokio::test]
async fn a_saved_image_unpacks_to_what_its_containers_see() {
    compare_with_its_containers("ubuntu:22.04").await;
}

#[tokio::test]
async fn a_large_saved_image_unpacks_to_what_its_containers_see() {
    compare_with_its_containers("python:3.11-slim").await;
}

#[tokio::test]
async fn what_later_layers_remove_and_replace_is_gone_and_replaced() {
    if !has_engine("layers with removals") {
        return;
    }
    let tag = format!("cofferdam-images-test:{}", std::process::id());
    let mut from = "alpine:3.19".to_owned();
    let mut made = Vec::new();
    for (number, script) in [
        "mkdir -p /data/old/deep /data/kept && echo 1 >/data/old/deep/a && echo 1 >/data/old/b && echo 1 >/data/kept/c && \
         echo 1 >/data/file && ln -s kept /data/link && chmod 1777 /data && chown 12:34 /data/kept/c",
        "rm -r /data/old && rm /data/file && mkdir /data/file && echo 2 >/data/file/now && rm /etc/motd || true; \
         rm -r /data/kept && mkdir /data/kept && echo 2 >/data/kept/d",
        "mkdir /data/old && echo 3 >/data/old/again && rm /data/link && echo 3 >/data/link && ln /data/link /data/twin && \
         mkfifo /data/pipe && rm -r /usr/share || true",
    ]
    .into_iter()
    .enumerate()
    {
        let container = Made("container", docker(&["create", &from, "sh", "-c", script]));
        docker(&["start", "--attach", &container.1]);
        let image = Made("image", format!("{tag}-{number}"));
        let change = if number == 2 { "USER 12:34" } else { "ENV STEP=done" };
        docker(&["commit", "--change", change, &container.1, &image.1]);
        from = image.1.clone();
        made.push(image);
    }
    let place = Place::new();
    let packed = place.path("saved.tar.gz");
    let pack = format!("docker save '{from}' | gzip -1 >'{}'", packed.display());
    assert!(Command::new("sh").args(["-c", &pack]).status().unwrap().success());
    let store = ImageStore::new(place.path("store"));
    let name = store.load(&packed).await.unwrap();
    let image = store.prepare(&name, PullPolicy::Never, None).await.unwrap();
    assert!(image.layers.len() >= 4);
    assert!(image.config.env.contains(&"STEP=done".to_owned()));
    assert_eq!(image.config.user.as_deref(), Some("12:34"));
    let (ours, theirs) = (merged(&place, &image), exported(&place, &from));
    assert_eq!(differences(&ours, &theirs), [""; 0]);
    assert!(theirs.contains_key(Path::new("data/old/again")) && !theirs.contains_key(Path::new("data/old/b")));
    drop(made.drain(..).rev().collect::<Vec<_>>());
}
