//! Any bytes, cut anywhere, as a tree from a hostile sandbox: the decoder gives a well-formed walk or an error, and what is
//! built of it stays in its folder.
#![no_main]

use std::cell::OnceCell;
use std::fs;
use std::path::Path;

use cofferdam_protocol::{MAX_DEPTH, Record, TreeDecoder, TreeItem, is_name};
use cofferdam_tree::{Ceilings, UnpackOptions, Unpacker};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

fuzz_target!(|input: &[u8]| {
    // The first bytes say how the rest is cut.
    let Some((cuts, stream)) = input.split_at_checked(4) else { return };
    let pieces = || {
        let mut rest = stream;
        let mut cuts = cuts.iter().cycle();
        std::iter::from_fn(move || {
            let length = 1 + usize::from(*cuts.next()?) * 3;
            let (piece, after) = rest.split_at(length.min(rest.len()));
            rest = after;
            (!piece.is_empty()).then_some(piece)
        })
    };
    decode(pieces());
    unpack(pieces());
});

/// Names are single names, the walk never rises above its root, and content comes only inside files.
fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) {
    let mut decoder = TreeDecoder::default();
    let (mut depth, mut in_file, mut steps) = (0usize, false, 0usize);
    for mut piece in pieces {
        while let Ok(Some(item)) = decoder.next(&mut piece) {
            match item {
                TreeItem::Content(content) => assert!(in_file && !content.is_empty()),
                TreeItem::Record(record) => {
                    let check = |name: &[u8]| assert!(if steps == 0 { name.is_empty() } else { is_name(name) });
                    match &record {
                        Record::Enter { name, .. } => {
                            check(name);
                            depth += 1;
                            assert!(depth <= MAX_DEPTH && !in_file);
                        }
                        Record::File { name, .. } => {
                            check(name);
                            assert!(!std::mem::replace(&mut in_file, true));
                        }
                        Record::Whole | Record::Torn { .. } => assert!(std::mem::take(&mut in_file)),
                        Record::Hole(_) => assert!(in_file),
                        Record::Link { name, .. } | Record::Skipped { name, .. } => {
                            check(name);
                            assert!(!in_file && depth > 0);
                        }
                        Record::Leave => depth = depth.checked_sub(1).expect("never above the root"),
                        Record::Data(_) => unreachable!("told as content"),
                    }
                    steps += 1;
                }
            }
        }
    }
    if decoder.finish().is_ok() {
        assert!(depth == 0 && !in_file && steps > 0);
    }
}

/// A home with something beside the target, which stays as it is.
fn unpack<'a>(pieces: impl Iterator<Item = &'a [u8]>) {
    thread_local!(static HOME: OnceCell<TempDir> = const { OnceCell::new() });
    HOME.with(|home| {
        let home = home.get_or_init(|| {
            let shared = Path::new("/dev/shm");
            let home = if shared.is_dir() { TempDir::new_in(shared) } else { TempDir::new() }.expect("a folder");
            fs::write(home.path().join("beside"), "kept").expect("a file");
            home
        });
        let target = home.path().join("target");
        let options = UnpackOptions {
            owner: None,
            mode_mask: 0o1777,
            ceilings: Ceilings { file_bytes: Some(1 << 30), files: Some(100) },
            make_parent: |path, _| fs::create_dir_all(path),
        };
        let mut unpacker = Unpacker::new(&target, options);
        let taken = pieces.into_iter().try_for_each(|piece| unpacker.take(piece));
        if taken.is_ok() {
            let _ = unpacker.finish();
        } else {
            drop(unpacker);
        }
        if target.is_dir() && !target.is_symlink() {
            fs::remove_dir_all(&target).expect("what was built can be removed");
        } else {
            let _ = fs::remove_file(&target);
        }
        let left: Vec<_> = fs::read_dir(home.path()).expect("home").map(|entry| entry.expect("entry").file_name()).collect();
        assert_eq!(left, ["beside"], "nothing is left but what was there");
        assert_eq!(fs::read(home.path().join("beside")).expect("beside"), b"kept");
    });
}
