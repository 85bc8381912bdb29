//! What a store promises to all who share it: what is used stays, what is not goes, and nothing is ever half there.

mod support;

use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, SystemTime};

use cofferdam_images::{ImageErrorKind, ImageStore, PruneOptions, Pruned, PullPolicy};
use support::{FORKING, Layer, Place, User, gzip, image, in_overlay, is_root, layout, output, plain, skipped};
use tar::EntryType;

/// Loads an image of these layers.
async fn load(place: &Place, store: &ImageStore, name: &str, layers: Vec<Vec<u8>>) -> cofferdam_images::Image {
    let folder = place.path("layouts").join(name.replace(['/', ':'], "-"));
    layout(&folder, &image(&plain(layers)), name);
    let loaded = store.load(&folder).await.unwrap();
    store.prepare(&loaded, PullPolicy::Never, None).await.unwrap()
}

fn one(name: &str) -> Vec<u8> {
    Layer::new().file(name, name).finish()
}

/// While no other test forks.
#[allow(clippy::await_holding_lock, reason = "each test has a thread of its own, and nobody on this one waits for it")]
async fn prune(store: &ImageStore, options: PruneOptions) -> Pruned {
    let _alone = FORKING.lock().unwrap_or_else(PoisonError::into_inner);
    store.prune(options).await.unwrap()
}

#[tokio::test]
async fn images_share_layers_and_prune_leaves_what_is_used() {
    let place = Place::new();
    let store = ImageStore::new(place.path("store"));
    let first = load(&place, &store, "test/first:1", vec![one("base"), one("first")]).await;
    let second = load(&place, &store, "test/second:1", vec![one("base"), one("second")]).await;
    assert_eq!(first.layers[0], second.layers[0]);
    assert_eq!(std::fs::read_dir(place.path("store/layers")).unwrap().count(), 3);
    let listed = store.list().unwrap();
    let names: Vec<&[String]> = listed.iter().map(|image| image.references.as_slice()).collect();
    assert_eq!(names, [["docker.io/test/second:1"], ["docker.io/test/first:1"]]);
    assert!(listed.iter().all(|image| image.in_use && image.bytes > 0));

    // Somebody else's store on the same folder, as another process has it.
    let other = ImageStore::new(place.path("store"));
    assert_eq!(prune(&other, PruneOptions::default()).await, Default::default());
    drop(second.lease);
    let pruned = prune(&other, PruneOptions::default()).await;
    assert_eq!((pruned.images, pruned.layers, pruned.bytes), (vec![second.id], 1, 6));
    assert!(first.layers.iter().all(|layer| layer.is_dir()) && !second.layers[1].exists());
    let error = store.prepare("test/second:1", PullPolicy::Never, None).await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::NotFound);

    // A copy of the descriptor holds as well, in whatever process it is.
    let copy = first.lease.as_fd().try_clone_to_owned().unwrap();
    drop(first.lease);
    assert_eq!(prune(&other, PruneOptions::default()).await.images.len(), 0);
    drop(copy);
    assert_eq!(prune(&other, PruneOptions::default()).await.layers, 2);
    for part in ["layers", "images", "names", "seams", "locks", "drafts"] {
        assert_eq!(std::fs::read_dir(place.path("store").join(part)).unwrap().count(), 0, "{part}");
    }
}

#[tokio::test]
async fn prune_takes_the_oldest_first_and_only_as_much_as_it_is_told() {
    let place = Place::new();
    let store = ImageStore::new(place.path("store"));
    let mut ids = Vec::new();
    for (number, days) in [(1, 30), (2, 20), (3, 10)] {
        let content = "x".repeat(1000);
        let layer = Layer::new().file(&format!("file{number}"), &content).finish();
        let image = load(&place, &store, &format!("test/image:{number}"), vec![layer]).await;
        let record = place.path("store/images").join(format!("{}.json", &image.id[7..]));
        let then = SystemTime::now() - Duration::from_secs(days * 86_400);
        std::fs::File::options().write(true).open(record).unwrap().set_modified(then).unwrap();
        ids.push(image.id);
    }
    let day = Duration::from_secs(86_400);
    let pruned = prune(&store, PruneOptions { unused_for: Some(25 * day), keep_bytes: None }).await;
    assert_eq!(pruned.images, ids[..1]);
    let pruned = prune(&store, PruneOptions { unused_for: None, keep_bytes: Some(1500) }).await;
    assert_eq!((pruned.images, pruned.bytes), (ids[1..2].to_vec(), 1000));
    let pruned = prune(&store, PruneOptions { unused_for: Some(25 * day), keep_bytes: Some(0) }).await;
    assert_eq!(pruned, Default::default());
    // To prepare is to use.
    store.prepare(&ids[2], PullPolicy::Never, None).await.unwrap();
    assert_eq!(prune(&store, PruneOptions { unused_for: Some(day), keep_bytes: None }).await, Default::default());
    assert_eq!(store.list().unwrap().len(), 1);
}

#[tokio::test]
async fn what_a_killed_process_left_is_made_anew_and_swept() {
    let place = Place::new();
    let store = ImageStore::new(place.path("store"));
    let layer = one("file");
    let hex = support::digest(&layer)[7..].to_owned();
    store.list().unwrap();
    let draft = place.path("store/drafts").join(&hex);
    std::fs::create_dir_all(draft.join("fs/half")).unwrap();
    // Of a prune that did not come to its end.
    std::fs::create_dir_all(place.path("store/drafts").join(format!("gone-{hex}/deep"))).unwrap();
    let forgotten = place.path("store/drafts/record-1-1");
    let then = SystemTime::now() - Duration::from_secs(7200);
    std::fs::File::create(forgotten).unwrap().set_modified(then).unwrap();
    let busy = place.path("store/drafts/record-2-2");
    std::fs::write(&busy, "somebody writes this").unwrap();
    let image = load(&place, &store, "test/image:1", vec![layer]).await;
    assert_eq!(std::fs::read_to_string(image.layers[0].join("file")).unwrap(), "file");
    assert!(!image.layers[0].join("half").exists() && !draft.exists());
    std::fs::create_dir_all(draft.join("fs")).unwrap();
    prune(&store, PruneOptions::default()).await;
    let left: Vec<_> =
        std::fs::read_dir(place.path("store/drafts")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [busy]);
    // A layer that is gone is no reason to give half an image.
    std::fs::remove_dir_all(image.layers[0].parent().unwrap()).unwrap();
    let error = store.prepare("test/image:1", PullPolicy::Never, None).await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::NotFound);
}

#[tokio::test]
async fn archives_come_packed_or_not_as_files_or_folders() {
    let place = Place::new();
    layout(&place.path("layout"), &image(&plain(vec![one("file")])), "test/packed:1");
    let mut builder = tar::Builder::new(Vec::new());
    builder.append_dir_all(".", place.path("layout")).unwrap();
    let archive = builder.into_inner().unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(&archive[..], ruzstd::encoding::CompressionLevel::Fastest);
    for (name, content) in [("a.tar", archive.clone()), ("a.tar.gz", gzip(&archive)), ("a.tar.zst", zstd)] {
        std::fs::write(place.path(name), content).unwrap();
        let store = ImageStore::new(place.path(&format!("store-{name}")));
        assert_eq!(store.load(&place.path(name)).await.unwrap(), "docker.io/test/packed:1", "{name}");
        let image = store.prepare("test/packed:1", PullPolicy::Never, None).await.unwrap();
        assert_eq!(std::fs::read_to_string(image.layers[0].join("file")).unwrap(), "file");
        assert_eq!(std::fs::read_dir(place.path(&format!("store-{name}/drafts"))).unwrap().count(), 0);
    }
    let store = ImageStore::new(place.path("store"));
    for (content, said) in [
        (archive[..archive.len() / 2].to_vec(), "saved completely"),
        (one("file"), "neither a manifest.json nor an index.json"),
        (b"text".repeat(400), "not a tar archive"),
    ] {
        std::fs::write(place.path("odd"), content).unwrap();
        let error = store.load(&place.path("odd")).await.unwrap_err();
        assert!(error.message.contains(said) && error.message.contains("odd"), "{error}");
    }
    let error = store.load(&place.path("missing.tar")).await.unwrap_err();
    assert!(error.message.contains("missing.tar"), "{error}");
    // A layout whose blobs were changed.
    for entry in std::fs::read_dir(place.path("layout/blobs/sha256")).unwrap() {
        let path = entry.unwrap().path();
        let content = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).replace("app", "ape");
        std::fs::write(path, content).unwrap();
    }
    let error = store.load(&place.path("layout")).await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::DigestMismatch, "{error}");
}

#[tokio::test]
async fn a_store_is_for_its_owner_alone() {
    let place = Place::new();
    std::fs::create_dir(place.path("store")).unwrap();
    std::fs::set_permissions(place.path("store"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let store = ImageStore::new(place.path("store"));
    load(&place, &store, "test/image:1", vec![one("file")]).await;
    assert_eq!(place.path("store").metadata().unwrap().mode() & 0o777, 0o700);
    if is_root() {
        std::os::unix::fs::chown(place.path("store"), Some(1234), None).unwrap();
        let error = ImageStore::new(place.path("store")).list().unwrap_err();
        assert!(error.message.contains("belongs to the user 1234"), "{error}");
    }
}

#[tokio::test]
async fn an_image_without_layers_stands_on_an_empty_one() {
    let place = Place::new();
    let store = ImageStore::new(place.path("store"));
    let image = load(&place, &store, "test/empty:1", Vec::new()).await;
    assert_eq!(image.layers.len(), 1);
    assert_eq!(std::fs::read_dir(&image.layers[0]).unwrap().count(), 0);
}

/// Three layers that add, remove, replace and hide.
fn stack() -> Vec<Vec<u8>> {
    let base = Layer::new()
        .folder("dir", 0o755)
        .file("dir/old", "1")
        .file("dir/kept", "1")
        .folder("hidden", 0o755)
        .file("hidden/old", "1")
        .file("gone", "1")
        .file("again/old", "1")
        .file("turned", "1")
        .finish();
    let middle = Layer::new()
        .folder("dir", 0o755)
        .file("dir/.wh.old", "")
        .file(".wh.gone", "")
        .folder("hidden", 0o750)
        .file("hidden/.wh..wh..opq", "")
        .file("hidden/.wh.old", "")
        .file("hidden/new", "2")
        // Removed and made again, whichever comes first.
        .folder("again", 0o755)
        .file("again/new", "2")
        .file(".wh.again", "")
        .file(".wh.turned", "")
        .folder("turned", 0o755)
        .file("turned/x", "2")
        .finish();
    let top = Layer::new().file("gone", "3").file("dir/.wh.never-there", "").finish();
    vec![base, middle, top]
}

const STACKED: &str = "again again/new dir dir/kept gone hidden hidden/new turned turned/x";
const LIST: &str = "cd \"$MERGED\" && find . -mindepth 1 | sort | cut -c3- | tr '\\n' ' ' && cat gone";

#[tokio::test]
async fn removals_show_through_an_overlay_of_root() {
    if !is_root() {
        return skipped("overlays of root", "this is not root");
    }
    let place = Place::new();
    let store = ImageStore::new(place.path("store"));
    let image = load(&place, &store, "test/stack:1", stack()).await;
    assert_eq!(in_overlay(&image.layers, &place, User::Root, LIST), format!("{STACKED} 3"));
}

#[tokio::test]
async fn a_layer_that_hides_all_below_is_the_lowest() {
    let place = Place::new();
    let store = ImageStore::new(place.path("store"));
    let hiding = Layer::new().file(".wh..wh..opq", "").file("only", "").finish();
    let image = load(&place, &store, "test/hiding:1", vec![one("below"), hiding, one("above")]).await;
    assert_eq!(image.layers.len(), 2);
    assert!(image.layers[0].join("only").exists() && image.layers[1].join("above").exists());
    // The same layer twice is one, where it counts.
    let twice = load(&place, &store, "test/twice:1", vec![one("a"), one("b"), one("a")]).await;
    assert!(twice.layers.len() == 2 && twice.layers[1].join("a").exists());
}

#[tokio::test]
async fn folders_that_a_layer_does_not_describe_stay_as_they_were() {
    if !is_root() {
        return skipped("overlays of root", "this is not root");
    }
    let place = Place::new();
    let store = ImageStore::new(place.path("store"));
    let base = Layer::new()
        .folder("tmp", 0o1777)
        .owned(EntryType::Directory, b"home", b"", 0o750, b"", (12, 34))
        .folder("home/deep", 0o700)
        .folder("described", 0o700)
        .finish();
    let top = Layer::new()
        .file("tmp/x", "")
        .file("home/deep/x", "")
        .folder("described", 0o711)
        .file("described/x", "")
        .file("new/x", "")
        .finish();
    let image = load(&place, &store, "test/seam:1", vec![base, top]).await;
    let script =
        "cd \"$MERGED\" && stat -c '%n %a %u:%g %Y' tmp home home/deep described new | cut -d' ' -f1-3 && ls -A . *";
    let seen = in_overlay(&image.layers, &place, User::Root, script);
    let expected = "tmp 1777 0:0\nhome 750 12:34\nhome/deep 700 0:0\ndescribed 711 0:0\nnew 755 0:0\n";
    assert!(seen.starts_with(expected), "{seen}");
    assert!(seen.contains("tmp:\nx\n") && seen.contains("home:\ndeep\n"), "{seen}");
    drop(image);
    prune(&store, PruneOptions::default()).await;
    assert_eq!(std::fs::read_dir(place.path("store/seams")).unwrap().count(), 0);
}

/// On a thread without rights, whose own threads have none either: the whole store as an ordinary user.
fn as_ordinary_user<T: Send + 'static>(work: impl AsyncFnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(move || {
        let (user, group) = (rustix::fs::Uid::from_raw(65534), rustix::fs::Gid::from_raw(65534));
        rustix::thread::set_thread_groups(&[]).unwrap();
        rustix::thread::set_thread_res_gid(group, group, group).unwrap();
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work())
    });
    thread.join().unwrap()
}

#[test]
fn an_ordinary_user_unpacks_and_mounts_the_same() {
    if !is_root() {
        return skipped("the ordinary user", "only root can become one; this is one already");
    }
    let place = Place::new();
    let own = place.path("own");
    std::fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(65534), Some(65534)).unwrap();
    std::fs::set_permissions(own.parent().unwrap(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut layers = stack();
    layers.push(
        Layer::new()
            .owned(EntryType::Directory, b"home", b"", 0o555, b"", (1000, 1000))
            .owned(EntryType::Regular, b"home/file", b"", 0o4755, b"x", (1000, 1000))
            .owned(EntryType::Regular, b"su", b"", 0o4755, b"x", (0, 0))
            .file_mode("closed/unreadable", 0o000, "secret")
            .finish(),
    );
    layout(&place.path("layout"), &image(&plain(layers)), "test/stack:1");
    let (source, folder) = (place.path("layout"), own.join("store"));
    let paths = as_ordinary_user(async move || {
        let store = ImageStore::new(folder);
        let name = store.load(&source).await.unwrap();
        store.prepare(&name, PullPolicy::Never, None).await.unwrap().layers
    });
    let there = |path: &Path| path.symlink_metadata().unwrap();
    assert_eq!(there(&paths[3].join("home/file")).uid(), 65534);
    // Its owner's rights are not lent in another's stead; root's are, as root is who owns it in there.
    assert_eq!(there(&paths[3].join("home/file")).mode() & 0o7777, 0o755);
    assert_eq!(there(&paths[3].join("su")).mode() & 0o7777, 0o4755);
    let left = cofferdam_images::left_owners(&paths[3]).unwrap();
    assert_eq!(left.iter().map(|owner| (owner.uid, owner.mode)).collect::<Vec<_>>(), [(1000, 0o555), (1000, 0o4755)]);
    let whiteout = there(&paths[1].join("gone"));
    assert!(whiteout.file_type().is_char_device() && whiteout.rdev() == 0, "{whiteout:?}");
    let script = format!("{LIST} && cat home/file closed/unreadable && stat -c %u:%g home/file");
    let seen = in_overlay(&paths, &place, User::Ordinary, &script);
    let listed = STACKED
        .replace("dir dir", "closed closed/unreadable dir dir")
        .replace("hidden/new", "hidden/new home home/file su");
    assert_eq!(seen, format!("{listed} 3xsecret0:0\n"));
    let folder = own.join("store");
    let pruned = as_ordinary_user(async move || ImageStore::new(folder).prune(PruneOptions::default()).await.unwrap());
    assert_eq!(pruned.layers, 4);
}

const MOUNTED: &str = "COFFERDAM_TEST_MOUNTED";

/// Runs a test of this program once more, in a mount namespace of its own, where `mount` put something at `mounted`.
fn again_with(mount: &str, test: &str) {
    let place = Place::new();
    for name in ["lower", "upper", "work", "mounted"] {
        std::fs::create_dir(place.path(name)).unwrap();
    }
    let script = format!("cd \"$1\" && {mount} mounted && {MOUNTED}=\"$1/mounted\" exec \"$2\" --exact \"$3\"");
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-euc", &script, "sh"]).arg(place.path(""));
    command.arg(std::env::current_exe().unwrap()).arg(test);
    let output = output(command);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn removals_show_where_the_store_itself_is_on_an_overlay() {
    if !is_root() {
        return skipped("stores on overlays", "this is not root");
    }
    let Some(folder) = std::env::var_os(MOUNTED) else {
        let mount = "mount -t overlay x -o lowerdir=lower,upperdir=upper,workdir=work";
        return again_with(mount, "removals_show_where_the_store_itself_is_on_an_overlay");
    };
    let place = Place::new();
    let store = ImageStore::new(Path::new(&folder).join("store"));
    let image = load(&place, &store, "test/stack:1", stack()).await;
    // No device 0/0 can be made there.
    let gone = image.layers[1].join("gone").symlink_metadata().unwrap();
    assert!(gone.is_file() && gone.len() == 0, "{gone:?}");
    assert_eq!(in_overlay(&image.layers, &place, User::Root, LIST), format!("{STACKED} 3"));
    let script =
        format!("umount \"$MERGED\"; mount -t overlay x -o userxattr,lowerdir=\"$LOWERS\" \"$MERGED\"; {LIST}");
    assert_eq!(in_overlay(&image.layers, &place, User::Root, &script), format!("{STACKED} 3"));
}

#[tokio::test]
async fn a_full_disk_is_said_to_be_full_and_nothing_stays_on_it() {
    if !is_root() {
        return skipped("full disks", "this is not root");
    }
    let Some(folder) = std::env::var_os(MOUNTED) else {
        return again_with("mount -t tmpfs -o size=2m x", "a_full_disk_is_said_to_be_full_and_nothing_stays_on_it");
    };
    let place = Place::new();
    let store = ImageStore::new(Path::new(&folder).join("store"));
    layout(
        &place.path("layout"),
        &image(&plain(vec![Layer::new().file("big", &"x".repeat(4 << 20)).finish()])),
        "a/b:1",
    );
    let error = store.load(&place.path("layout")).await.unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::NoSpace, "{error}");
    assert!(error.message.contains("Prune the image store") && error.message.contains("COFFERDAM_IMAGES"), "{error}");
    // There is room again for what fits.
    load(&place, &store, "test/small:1", vec![Layer::new().file("small", &"x".repeat(1 << 20)).finish()]).await;
}
