//! Layers that want too much: of the disk, of memory, of the stack. All of it is counted, and the limit is said.

#[path = "support/hostile.rs"]
mod hostile;
mod support;

use std::os::unix::fs::MetadataExt;

use cofferdam_images::{ImageErrorKind, ImageStore, Limits, StoreOptions};
use hostile::{MIB, read, refused, run, try_layer};
use support::{Layer, Place, image, layout};
use tar::EntryType;

#[test]
fn names_and_attributes_take_no_memory_without_bounds() {
    for kind in [EntryType::XHeader, EntryType::GNULongName, EntryType::GNULongLink, EntryType::XGlobalHeader] {
        let error = refused(Layer::new().entry(kind, b"x", b"", 0, &vec![b'1'; 2 << 20]).file("a", "").finish());
        assert_eq!(error.kind, ImageErrorKind::InvalidLayer);
        assert!(error.message.contains("is the most"), "{error}");
    }
    for records in [&b"99 path=x\n"[..], b"x", b"0 \n", b"6 path\n", b"18446744073709551615 a=b\n"] {
        let error = refused(Layer::new().entry(EntryType::XHeader, b"x", b"", 0, records).file("a", "").finish());
        assert_eq!(error.kind, ImageErrorKind::InvalidLayer, "{records:?}");
    }
}

/// A header of GNU's sparse kind: `(offset, length)` of its pieces.
fn sparse(size: u64, stored: u64, pieces: &[(u64, u64)]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(EntryType::GNUSparse);
    header.set_size(stored);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    let bytes = header.as_mut_bytes();
    bytes[..4].copy_from_slice(b"holy");
    let mut put = |at: usize, value: u64| {
        let mut field = [0; 12];
        field[4..].copy_from_slice(&value.to_be_bytes());
        field[0] = 0x80;
        bytes[at..at + 12].copy_from_slice(&field);
    };
    for (index, (offset, length)) in pieces.iter().enumerate() {
        put(386 + index * 24, *offset);
        put(398 + index * 24, *length);
    }
    put(483, size);
    header.set_cksum();
    header.as_bytes().to_vec()
}

#[test]
fn files_with_holes_keep_them_and_count_in_full() {
    let place = Place::new();
    let size = 6 * MIB;
    let layer = Layer::new().raw(&sparse(size, 8, &[(4096, 4), (size - 4, 4)])).content(b"headtail").finish();
    let files = try_layer(&place, layer).unwrap();
    let there = files.join("holy").metadata().unwrap();
    assert_eq!(there.len(), size);
    assert!(there.blocks() * 512 < MIB, "{} blocks", there.blocks());
    let content = std::fs::read(files.join("holy")).unwrap();
    assert_eq!((&content[4096..4100], &content[content.len() - 4..]), (&b"head"[..], &b"tail"[..]));
    assert!(content[..4096].iter().all(|byte| *byte == 0));

    let huge = Layer::new().raw(&sparse(1 << 50, 4, &[(0, 4)])).content(b"head").finish();
    let error = refused(huge);
    assert_eq!(error.kind, ImageErrorKind::TooLarge);
    assert!(error.message.contains("unpacks to more than"), "{error}");

    for (size, stored, pieces) in
        [(10, 4, &[(8, 4)][..]), (10, 4, &[(0, 2)]), (10, 4, &[(4, 2), (0, 2)]), (10, 4, &[(u64::MAX >> 1, 4)])]
    {
        let error = refused(Layer::new().raw(&sparse(size, stored, pieces)).content(b"1234").finish());
        assert_eq!(error.kind, ImageErrorKind::InvalidLayer, "{pieces:?}");
    }
    let odd = Layer::new().pax(&[("GNU.sparse.major", b"1"), ("GNU.sparse.minor", b"0")]).file("x", "0\n").finish();
    assert_eq!(refused(odd).kind, ImageErrorKind::Unsupported);
}

#[test]
fn zeros_take_no_space() {
    let place = Place::new();
    let content = "\0".repeat(4 << 20) + "end";
    let files = try_layer(&place, Layer::new().file("zeros", &content).finish()).unwrap();
    let there = files.join("zeros").metadata().unwrap();
    assert!(there.blocks() * 512 < MIB);
    assert_eq!(read(files.join("zeros")), content);
}

#[test]
fn more_than_the_limits_is_refused_by_name() {
    let error = refused(Layer::new().file("big", &"x".repeat(9 << 20)).finish());
    assert_eq!(error.kind, ImageErrorKind::TooLarge);
    assert!(error.message.contains("more than 8388608 bytes"), "{error}");
    assert!(error.message.contains("Raise its limits"), "{error}");
    let many = (0..10_001).fold(Layer::new(), |layer, number| layer.link(&format!("l{number}"), "x"));
    let error = refused(many.finish());
    assert_eq!(error.kind, ImageErrorKind::TooLarge);
    assert!(error.message.contains("more than 10000 files, folders and links"), "{error}");
    // Folders that no entry names count as well.
    let deep = (0..11).fold(Layer::new(), |layer, number| {
        layer.pax(&[("path", format!("{number}/{}x", "d/".repeat(1000)).as_bytes())]).file("x", "")
    });
    assert_eq!(refused(deep.finish()).kind, ImageErrorKind::TooLarge);
    // A small file that unpacks to a large one.
    let bomb = Layer::new().file("big", &"\0".repeat(9 << 20)).finish();
    let place = Place::new();
    layout(&place.path("layout"), &image(&[(support::gzip(&bomb), bomb)]), "test/bomb:1");
    let options = StoreOptions { limits: Limits { bytes: 8 * MIB, entries: 10 }, ..StoreOptions::default() };
    let error = run(ImageStore::with(place.path("store"), options).load(&place.path("layout"))).unwrap_err();
    assert_eq!(error.kind, ImageErrorKind::TooLarge);
}

#[test]
fn folders_nested_without_end_are_taken_and_taken_away() {
    let place = Place::new();
    // Each link stands for a thousand folders, so that the tree is far deeper than any path.
    let step = "d/".repeat(1000);
    let mut layer = Layer::new();
    let mut at = String::new();
    for number in 0..8 {
        layer = layer.pax(&[("path", format!("{at}{step}").as_bytes())]).folder("x", 0o755);
        layer = layer.pax(&[("linkpath", format!("{at}{step}").as_bytes())]).link(&format!("l{number}"), "x");
        at = format!("l{number}/");
    }
    let files = try_layer(&place, layer.finish()).unwrap();
    assert!(files.join("d/d/d").is_dir());
    let store = ImageStore::new(place.path("store"));
    let pruned = run(store.prune(Default::default())).unwrap();
    assert_eq!((pruned.images.len(), pruned.layers), (1, 1));
    assert!(!files.exists());
}
