//! Layers that want out: whatever they say, only their own folder changes, and what is wrong is said.

#[path = "support/hostile.rs"]
mod hostile;
mod support;

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use cofferdam_images::ImageErrorKind;
use hostile::{read, refused, try_layer};
use support::{Layer, Place, look};
use tar::EntryType;

#[test]
fn names_that_lead_up_are_refused() {
    for name in ["../outside/new", "a/../../outside/new", "..", "a/..", "/../x", "./../../etc/x"] {
        let error = refused(Layer::new().file(name, "x").finish());
        assert_eq!(error.kind, ImageErrorKind::InvalidLayer, "{name}");
        assert!(error.message.contains("leads out of its folder"), "{error}");
    }
    let folder = refused(Layer::new().folder("../outside/new/", 0o755).finish());
    assert!(folder.message.contains("leads out of its folder"), "{folder}");
    let removal = refused(Layer::new().file("../outside/.wh.kept", "").finish());
    assert!(removal.message.contains("leads out of its folder"), "{removal}");
}

#[test]
fn absolute_names_are_below_the_layer() {
    let place = Place::new();
    let name = format!("/{}", "abs/deep/file");
    let files = try_layer(&place, Layer::new().file(&name, "inside").finish()).unwrap();
    assert_eq!(read(files.join("abs/deep/file")), "inside");
}

#[test]
fn a_link_that_points_out_leads_nowhere_but_into_the_layer() {
    let place = Place::new();
    let outside = place.path("outside");
    let outside = outside.to_str().unwrap();
    // Absolute: as in a container, its root is the layer.
    let layer = Layer::new().folder(&outside[1..], 0o755).link("out", outside).file("out/new", "x").finish();
    let files = try_layer(&place, layer).unwrap();
    assert_eq!(read(files.join(&outside[1..]).join("new")), "x");
    assert!(!place.path("outside/new").exists());
    assert_eq!(std::fs::read_link(files.join("out")).unwrap(), Path::new(outside));

    // Relative: no number of steps up leads above the layer.
    let place = Place::new();
    let layer = Layer::new().link("up", "../../../../../../../../..").file("up/new", "x").finish();
    let files = try_layer(&place, layer).unwrap();
    assert_eq!(read(files.join("new")), "x");

    // To something that the layer does not have.
    let error = refused(Layer::new().link("out", "/outside").file("out/new", "x").finish());
    assert_eq!(error.kind, ImageErrorKind::InvalidLayer);
    assert!(error.message.contains("leads nowhere"), "{error}");

    let error = refused(Layer::new().link("a", "b").link("b", "a").file("a/x", "x").finish());
    assert!(error.message.contains("a loop of links"), "{error}");
}

#[test]
fn a_file_goes_over_a_link_of_its_name_and_not_through_it() {
    let place = Place::new();
    let target = place.path("outside/kept");
    let layer = Layer::new().link("kept", target.to_str().unwrap()).file("kept", "new").finish();
    let files = try_layer(&place, layer).unwrap();
    assert!(files.join("kept").symlink_metadata().unwrap().is_file());
    assert_eq!(read(files.join("kept")), "new");
    assert_eq!(read(target), "kept");

    // The same for a folder, whose mode would go through it.
    let place = Place::new();
    let outside = place.path("outside");
    let layer = Layer::new().link("dir", outside.to_str().unwrap()).folder("dir", 0o700).file("dir/x", "x").finish();
    let mode = |path: &Path| path.symlink_metadata().unwrap().mode();
    std::fs::create_dir(&outside).unwrap();
    let before = mode(&outside);
    let files = try_layer(&place, layer).unwrap();
    assert!(files.join("dir").symlink_metadata().unwrap().is_dir());
    assert_eq!(mode(&outside), before);
}

#[test]
fn hard_links_reach_nothing_outside_the_layer() {
    let place = Place::new();
    let kept = place.path("outside/kept");
    for target in [kept.to_str().unwrap(), "/etc/passwd", "missing", ""] {
        let error = refused(Layer::new().hard_link("mine", target).finish());
        assert_eq!(error.kind, ImageErrorKind::InvalidLayer, "{target}");
        assert!(error.message.contains("hard link"), "{error}");
    }
    let error = refused(Layer::new().hard_link("mine", "../outside/kept").finish());
    assert!(error.message.contains("leads out of its folder"), "{error}");
    // Through a link of the layer: what it points to, in the layer.
    let through =
        Layer::new().link("out", place.path("outside").to_str().unwrap()).hard_link("mine", "out/kept").finish();
    assert!(refused(through).message.contains("hard link"));
    // A link to a link is the link once more, and is not followed.
    let place = Place::new();
    let layer = Layer::new().link("l", "/etc/passwd").hard_link("mine", "l").finish();
    let files = try_layer(&place, layer).unwrap();
    assert_eq!(std::fs::read_link(files.join("mine")).unwrap(), Path::new("/etc/passwd"));
    let error = refused(Layer::new().folder("d", 0o755).hard_link("mine", "d").finish());
    assert!(error.message.contains("hard link"), "{error}");
    assert!(refused(Layer::new().file("a", "").hard_link("a", "./a").finish()).message.contains("itself"));
}

#[test]
fn hard_links_inside_a_layer_are_one_file() {
    let place = Place::new();
    let layer = Layer::new().file("a/one", "same").hard_link("b/two", "a/one").hard_link("three", "/b/two").finish();
    let files = try_layer(&place, layer).unwrap();
    let inode = |name: &str| files.join(name).metadata().unwrap().ino();
    assert_eq!((inode("a/one"), inode("a/one")), (inode("b/two"), inode("three")));
}

#[test]
fn devices_are_left_out_and_pipes_are_not() {
    let place = Place::new();
    let layer = Layer::new()
        .entry(EntryType::Char, b"dev/null", b"", 0o666, b"")
        .entry(EntryType::Block, b"dev/disk", b"", 0o666, b"")
        .entry(EntryType::Fifo, b"pipe", b"", 0o622, b"")
        .finish();
    let files = try_layer(&place, layer).unwrap();
    assert!(files.join("dev").is_dir());
    assert_eq!(std::fs::read_dir(files.join("dev")).unwrap().count(), 0);
    let pipe = files.join("pipe").symlink_metadata().unwrap();
    assert!(pipe.file_type().is_fifo());
    assert_eq!(pipe.mode() & 0o7777, 0o622);
}

#[test]
fn a_layer_cannot_set_marks_that_overlays_obey() {
    let place = Place::new();
    let layer = Layer::new()
        .pax(&[
            ("SCHILY.xattr.user.overlay.redirect", b"/etc"),
            ("SCHILY.xattr.user.overlay.opaque", b"y"),
            ("SCHILY.xattr.trusted.overlay.redirect", b"/etc"),
            ("SCHILY.xattr.user.mine", b"line\nline\0="),
        ])
        .folder("dir", 0o755)
        .pax(&[("SCHILY.xattr.user.overlay.whiteout", b"y"), ("SCHILY.xattr.user.overlay.metacopy", b"")])
        .file("file", "")
        .finish();
    let files = try_layer(&place, layer).unwrap();
    assert_eq!(attributes(&files.join("dir")), ["user.mine"]);
    assert_eq!(attributes(&files.join("file")), [""; 0]);
    let mut value = [0; 64];
    let count = rustix::fs::getxattr(files.join("dir"), "user.mine", &mut value[..]).unwrap();
    assert_eq!(&value[..count], b"line\nline\0=");
}

fn attributes(path: &Path) -> Vec<String> {
    let mut list = [0; 4096];
    let count = rustix::fs::listxattr(path, &mut list[..]).unwrap();
    let names = list[..count].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

#[test]
fn the_last_of_several_entries_of_a_name_counts() {
    let place = Place::new();
    let layer = Layer::new()
        .file("a", "first")
        .file("a", "second")
        .file("dir-then-file/inner/x", "x")
        .file("dir-then-file", "file")
        .file("file-then-dir", "file")
        .file("link-then-file", "")
        .folder("file-then-dir", 0o750)
        .file("file-then-dir/x", "x")
        .folder("twice", 0o700)
        .file("twice/kept", "kept")
        .folder("twice", 0o711)
        .finish();
    let files = try_layer(&place, layer).unwrap();
    assert_eq!(read(files.join("a")), "second");
    assert_eq!(read(files.join("dir-then-file")), "file");
    assert_eq!(read(files.join("file-then-dir/x")), "x");
    assert_eq!(files.join("file-then-dir").metadata().unwrap().mode() & 0o7777, 0o750);
    assert_eq!(read(files.join("twice/kept")), "kept");
    assert_eq!(files.join("twice").metadata().unwrap().mode() & 0o7777, 0o711);
}

#[test]
fn a_folder_that_became_a_link_does_not_hand_its_mode_on() {
    let place = Place::new();
    let layer = Layer::new()
        .folder("real", 0o755)
        .folder("dir", 0o700)
        .file("dir/x", "x")
        .link("dir", "real")
        .file("dir/y", "y")
        .finish();
    let files = try_layer(&place, layer).unwrap();
    assert_eq!(read(files.join("real/y")), "y");
    assert!(!files.join("real/x").exists());
    assert_eq!(files.join("real").metadata().unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn long_names_are_taken_in_both_spellings() {
    let long = format!("{}/{}", "d".repeat(200), "f".repeat(200));
    let target = "t".repeat(300);
    let gnu = Layer::new()
        .entry(EntryType::GNULongName, b"././@LongLink", b"", 0, format!("{long}\0").as_bytes())
        .file("short", "gnu")
        .entry(EntryType::GNULongLink, b"././@LongLink", b"", 0, format!("{target}\0").as_bytes())
        .link("link", "short")
        .finish();
    let pax = Layer::new()
        .pax(&[("path", long.as_bytes()), ("mtime", b"1500000000.25"), ("uid", b"0")])
        .file("short", "pax")
        .pax(&[("linkpath", target.as_bytes())])
        .link("link", "short")
        .finish();
    for (layer, content) in [(gnu, "gnu"), (pax, "pax")] {
        let place = Place::new();
        let files = try_layer(&place, layer).unwrap();
        assert_eq!(read(files.join(&long)), content);
        assert_eq!(std::fs::read_link(files.join("link")).unwrap(), Path::new(&target));
        assert!(!files.join("short").exists());
    }
    let error = refused(Layer::new().pax(&[("path", "x".repeat(256).as_bytes())]).file("a", "").finish());
    assert!(error.message.contains("longer than Linux allows"), "{error}");
    let deep = "d/".repeat(3000);
    let error = refused(Layer::new().pax(&[("path", deep.as_bytes())]).file("a", "").finish());
    assert!(error.message.contains("longer than Linux allows"), "{error}");
    assert_eq!(
        refused(Layer::new().pax(&[("path", b"a\0b")]).file("a", "").finish()).kind,
        ImageErrorKind::InvalidLayer
    );
}

#[test]
fn what_is_no_tar_is_said_to_be_none() {
    let cut = Layer::new().file("a", "content").finish();
    for layer in [vec![b'x'; 1024], cut[..700].to_vec(), cut[..100].to_vec(), b"\x1f\x8bnonsense".to_vec()] {
        let error = refused(layer);
        assert_eq!(error.kind, ImageErrorKind::InvalidLayer);
    }
    let unknown = Layer::new().entry(EntryType::new(b'Z'), b"odd", b"", 0, b"").finish();
    assert!(refused(unknown).message.contains("unknown kind 'Z'"));
    assert_eq!(refused(Layer::new().file("./", "x").finish()).kind, ImageErrorKind::InvalidLayer);
    // Through a file, as if it were a folder.
    assert!(refused(Layer::new().file("a", "").file("a/b", "").finish()).message.contains("not a folder"));
}

#[test]
fn modes_owners_and_times_are_the_layers_own() {
    let place = Place::new();
    let layer = Layer::new()
        .folder("./", 0o711)
        .folder("closed", 0o500)
        .file_mode("closed/secret", 0o000, "x")
        .owned(EntryType::Regular, b"su", b"", 0o4755, b"#!", (0, 0))
        .owned(EntryType::Regular, b"theirs", b"", 0o6755, b"#!", (1234, 5678))
        .owned(EntryType::Symlink, b"link", b"su", 0o777, b"", (1234, 5678))
        .finish();
    let files = try_layer(&place, layer).unwrap();
    let seen = look(&files);
    let get = |name: &str| &seen[Path::new(name)];
    assert_eq!((get("").mode, get("closed").mode, get("closed/secret").mode), (0o711, 0o500, 0));
    assert!(seen.values().filter(|seen| !seen.what.is_empty()).all(|seen| seen.mtime == 1_600_000_000));
    assert_eq!(get("closed").mtime, 1_600_000_000);
    let left = cofferdam_images::left_owners(&files).unwrap();
    if support::is_root() {
        assert_eq!((get("su").mode, get("theirs").mode), (0o4755, 0o6755));
        assert_eq!((get("theirs").owner, get("link").owner), ((1234, 5678), (1234, 5678)));
        assert_eq!(left, []);
    } else {
        assert_eq!((get("su").mode, get("theirs").mode), (0o4755, 0o755));
        let named: Vec<_> =
            left.iter().map(|owner| (owner.path.as_slice(), owner.uid, owner.gid, owner.mode)).collect();
        assert_eq!(named, [(&b"theirs"[..], 1234, 5678, 0o6755), (b"link", 1234, 5678, 0o777)]);
    }
}
