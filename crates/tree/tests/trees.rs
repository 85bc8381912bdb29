//! Trees through a stream and back, and streams that mean harm.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use cofferdam_protocol::{Meta, Record, is_name};
use cofferdam_tree::{Ceilings, Packer, Report, Rules, Survey, Trouble, UnpackOptions, Unpacker, stale};
use proptest::prelude::*;
use tempfile::TempDir;

fn options() -> UnpackOptions {
    UnpackOptions {
        owner: None,
        mode_mask: 0o1777,
        ceilings: Ceilings::default(),
        make_parent: |path, _| fs::create_dir_all(path),
    }
}

fn pack(packer: &mut Packer) -> Vec<u8> {
    let mut stream = Vec::new();
    loop {
        let mut block = Vec::new();
        let more = packer.fill(&mut block, 8192).unwrap();
        stream.extend(block);
        if !more {
            return stream;
        }
    }
}

fn pack_all(path: &Path, rules: Rules) -> (Vec<u8>, Report) {
    let mut packer = Packer::open(path, rules, Ceilings::default()).unwrap();
    (pack(&mut packer), packer.into_report())
}

fn unpack(stream: &[u8], target: &Path) -> Result<Report, Trouble> {
    let mut unpacker = Unpacker::new(target, options());
    unpacker.take(stream)?;
    unpacker.finish()
}

/// Everything that is to be kept of a tree, by path.
fn look(root: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut seen = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(path) = pending.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let what = if metadata.is_symlink() {
            format!("-> {:?}", fs::read_link(&path).unwrap())
        } else if metadata.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            format!("dir {:o}", metadata.mode() & 0o7777)
        } else {
            let content = fs::read(&path).unwrap();
            let mut digest = std::hash::DefaultHasher::new();
            content.hash(&mut digest);
            format!("file {:o} {} {:x}", metadata.mode() & 0o7777, content.len(), digest.finish())
        };
        let below = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
        seen.insert(below, format!("{what} {}.{}", metadata.mtime(), metadata.mtime_nsec()));
    }
    seen
}

#[derive(Debug, Clone)]
enum Node {
    File(Vec<u8>, u32, bool),
    Link(Vec<u8>),
    Dir(BTreeMap<Vec<u8>, Node>, u32),
}

fn any_name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[a-z]{1,8}".prop_map(String::into_bytes),
        proptest::collection::vec(1u8.., 1..30).prop_filter("a name", |name| is_name(name)),
        Just(vec![b'n'; 255]),
    ]
}

fn any_node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        (proptest::collection::vec(any::<u8>(), 0..20_000), 0u32..0o1000, any::<bool>())
            .prop_map(|(content, mode, sparse)| Node::File(content, mode | 0o400, sparse)),
        proptest::collection::vec(1u8.., 1..60).prop_map(Node::Link),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        (proptest::collection::btree_map(any_name(), inner, 0..6), 0u32..0o1000)
            .prop_map(|(children, mode)| Node::Dir(children, mode | 0o700))
    })
}

fn build(path: &Path, node: &Node) {
    match node {
        Node::File(content, mode, is_sparse) => {
            let file = File::create(path).unwrap();
            let offset = if *is_sparse { 128 << 10 } else { 0 };
            file.write_all_at(content, offset).unwrap();
            if *is_sparse {
                file.set_len(512 << 10).unwrap();
            }
            file.set_permissions(fs::Permissions::from_mode(*mode)).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::new(content.len() as u64 * 7919, 123_456_789);
            file.set_modified(time).unwrap();
        }
        Node::Link(target) => symlink(OsStr::from_bytes(target), path).unwrap(),
        Node::Dir(children, mode) => {
            fs::create_dir(path).unwrap();
            for (name, child) in children {
                build(&path.join(OsStr::from_bytes(name)), child);
            }
            fs::set_permissions(path, fs::Permissions::from_mode(*mode)).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_tree_arrives_as_it_was(
        children in proptest::collection::btree_map(any_name(), any_node(), 0..6),
        cuts in proptest::collection::vec(1usize..5000, 1..40),
    ) {
        let home = TempDir::new().unwrap();
        let (from, to) = (home.path().join("from"), home.path().join("to"));
        build(&from, &Node::Dir(children, 0o755));
        let (stream, packed) = pack_all(&from, Rules::default());
        let mut unpacker = Unpacker::new(&to, options());
        let mut rest = &stream[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break }
            prop_assert!(!to.exists(), "it appears when all of it is there");
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            unpacker.take(piece).unwrap();
            rest = after;
        }
        let unpacked = unpacker.finish().unwrap();
        prop_assert_eq!(&packed, &unpacked);
        prop_assert_eq!(look(&from), look(&to));
        // And once more over what is there.
        prop_assert_eq!(unpack(&stream, &to).unwrap(), unpacked);
        // A folder of the caller's own keeps its own time and mode.
        let below = |root: &Path| { let mut seen = look(root); seen.remove(&b""[..]); seen };
        prop_assert_eq!(below(&from), below(&to));
        let survey: Vec<_> = Survey::new(&from, Rules::default()).unwrap().collect();
        prop_assert_eq!(stale(&to, &survey).unwrap(), Vec::<u32>::new());
        prop_assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2, "nothing else is left");
    }

    #[test]
    fn a_stream_that_breaks_off_leaves_nothing(node in any_node(), part in 0.0f64..1.0) {
        let home = TempDir::new().unwrap();
        let (from, to) = (home.path().join("from"), home.path().join("to"));
        build(&from, &node);
        if from.symlink_metadata().unwrap().is_symlink() { return Ok(()) }
        let (stream, _) = pack_all(&from, Rules::default());
        let mut unpacker = Unpacker::new(&to, options());
        unpacker.take(&stream[..(stream.len() as f64 * part) as usize]).unwrap();
        prop_assert!(unpacker.finish().is_err());
        prop_assert!(to.symlink_metadata().is_err());
        prop_assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }
}

fn stream(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        record.encode(&mut bytes);
        if let Record::Data(length) = record {
            bytes.resize(bytes.len() + *length as usize, b'x');
        }
    }
    bytes
}

fn enter(name: &str) -> Record {
    Record::Enter { name: name.into(), meta: Meta { mode: 0o755, ..Meta::default() } }
}

fn file(name: &str, mode: u32) -> Record {
    Record::File { name: name.into(), meta: Meta { mode, ..Meta::default() }, size: 3 }
}

fn link(name: &str, target: &Path) -> Record {
    Record::Link { name: name.into(), target: target.as_os_str().as_bytes().to_vec(), meta: Meta::default() }
}

#[test]
fn a_link_in_the_stream_is_never_gone_through() {
    let home = TempDir::new().unwrap();
    let (outside, to) = (home.path().join("outside"), home.path().join("to"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "kept").unwrap();
    for is_there in [false, true] {
        if is_there {
            fs::create_dir(&to).unwrap();
        }
        let through = [enter(""), link("d", &outside), enter("d"), file("f", 0o644), Record::Data(3)];
        let error = unpack(&stream(&through), &to).unwrap_err();
        assert!(matches!(&error, Trouble::Io { error, .. } if error.raw_os_error() == Some(20)), "{error}");
        let over =
            [enter(""), link("g", &outside.join("f")), file("g", 0o644), Record::Data(3), Record::Whole, Record::Leave];
        let _ = unpack(&stream(&over), &to);
        assert_eq!(fs::read_to_string(outside.join("f")).unwrap(), "kept");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        let _ = fs::remove_dir_all(&to);
    }
}

#[test]
fn a_link_that_waits_in_the_target_is_never_gone_through() {
    let home = TempDir::new().unwrap();
    let (outside, to) = (home.path().join("outside"), home.path().join("to"));
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("f"), "kept").unwrap();
    fs::create_dir(&to).unwrap();
    symlink(&outside, to.join("d")).unwrap();
    symlink(outside.join("f"), to.join("f")).unwrap();
    let into = [enter(""), enter("d"), file("f", 0o644), Record::Data(3), Record::Whole, Record::Leave, Record::Leave];
    assert!(unpack(&stream(&into), &to).is_err());
    let over = [enter(""), file("f", 0o644), Record::Data(3), Record::Whole, Record::Leave];
    unpack(&stream(&over), &to).unwrap();
    assert_eq!(fs::read_to_string(outside.join("f")).unwrap(), "kept");
    assert!(to.join("f").symlink_metadata().unwrap().is_file(), "the link itself is replaced");
}

#[test]
fn a_file_never_lends_its_owners_rights() {
    let home = TempDir::new().unwrap();
    let to = home.path().join("to");
    let records = [enter(""), file("su", 0o6755), Record::Data(3), Record::Whole, Record::Leave];
    unpack(&stream(&records), &to).unwrap();
    assert_eq!(to.join("su").metadata().unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn ceilings_end_a_stream_and_leave_nothing() {
    let home = TempDir::new().unwrap();
    let to = home.path().join("to");
    let ceilings = Ceilings { file_bytes: Some(1000), files: Some(2) };
    let three = [enter(""), link("a", Path::new("x")), link("b", Path::new("x")), link("c", Path::new("x"))];
    for records in [
        &[enter(""), file("f", 0o644), Record::Data(1001)][..],
        &[enter(""), file("f", 0o644), Record::Hole(1001)],
        &[enter(""), file("f", 0o644), Record::Hole(u64::MAX), Record::Hole(u64::MAX)],
        &three,
    ] {
        let mut unpacker = Unpacker::new(&to, UnpackOptions { ceilings, ..options() });
        assert!(matches!(unpacker.take(&stream(records)), Err(Trouble::Ceiling { .. })), "{records:?}");
        drop(unpacker);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_terabyte_of_nothing_takes_no_room() {
    let home = TempDir::new().unwrap();
    let (from, to) = (home.path().join("from"), home.path().join("to"));
    fs::create_dir(&from).unwrap();
    let file = File::create(from.join("big")).unwrap();
    file.set_len(1 << 40).unwrap();
    file.write_all_at(b"needle", 1 << 39).unwrap();
    let (stream, report) = pack_all(&from, Rules::default());
    assert!(stream.len() < 1 << 20 && report.bytes < 1 << 20, "{} bytes", stream.len());
    unpack(&stream, &to).unwrap();
    let there = to.join("big").metadata().unwrap();
    assert_eq!(there.len(), 1 << 40);
    assert!(there.blocks() < 4096);
    let mut found = [0; 6];
    File::open(to.join("big")).unwrap().read_exact_at(&mut found, 1 << 39).unwrap();
    assert_eq!(&found, b"needle");
}

#[test]
fn what_is_no_content_is_skipped_without_waiting_for_it() {
    let home = TempDir::new().unwrap();
    let from = home.path().join("from");
    fs::create_dir(&from).unwrap();
    let made = std::process::Command::new("mkfifo").arg(from.join("fifo")).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
    let (stream, report) = pack_all(&from, Rules::default());
    let to = home.path().join("to");
    assert_eq!(unpack(&stream, &to).unwrap(), report);
    let mut skipped: Vec<_> = report.skipped.iter().map(|skipped| skipped.path.clone()).collect();
    skipped.sort();
    assert_eq!(skipped, [b"fifo".to_vec(), b"socket".to_vec()]);
    let fifo = Packer::open(&from.join("fifo"), Rules::default(), Ceilings::default());
    assert!(matches!(fifo, Err(Trouble::Io { .. })));
}

#[test]
fn rules_leave_out_what_they_say_and_tell_it_once() {
    let home = TempDir::new().unwrap();
    let from = home.path().join("from");
    for folder in ["node_modules/a/b", "src/build", "deep/keep"] {
        fs::create_dir_all(from.join(folder)).unwrap();
    }
    for path in
        ["node_modules/a/b/x.js", "src/a.rs", "src/a.log", "src/build/out", "deep/keep/b.log", "top.log", "secret.env"]
    {
        fs::write(from.join(path), path).unwrap();
    }
    fs::write(from.join(".gitignore"), "node_modules/\n*.log\n/src/build\n").unwrap();
    fs::write(from.join("deep/.gitignore"), "!*.log\n").unwrap();
    let told = |rules: Rules| {
        let (stream, report) = pack_all(&from, rules);
        let to = home.path().join("to");
        unpack(&stream, &to).unwrap();
        let files: Vec<String> = look(&to)
            .into_iter()
            .filter(|(_, what)| what.starts_with("file"))
            .map(|(path, _)| String::from_utf8(path).unwrap())
            .collect();
        fs::remove_dir_all(&to).unwrap();
        let mut skipped: Vec<_> = report
            .skipped
            .iter()
            .map(|entry| format!("{}: {}", String::from_utf8_lossy(&entry.path), entry.reason))
            .collect();
        skipped.sort();
        (files, skipped)
    };
    let (files, skipped) = told(Rules::new(&["*.env".into()], true).unwrap());
    assert_eq!(files, [".gitignore", "deep/.gitignore", "deep/keep/b.log", "src/a.rs"]);
    let ignored =
        ["node_modules", "src/a.log", "src/build", "top.log"].map(|path| format!("{path}: ignored by .gitignore"));
    let mut expected = ignored.to_vec();
    expected.push("secret.env: excluded".into());
    expected.sort();
    assert_eq!(skipped, expected);
    let (files, skipped) = told(Rules::default());
    assert_eq!((files.len(), skipped.len()), (9, 0));
    assert!(Rules::new(&["a{".into()], false).is_err());
}

#[test]
fn only_what_was_selected_is_told_with_its_folders() {
    let home = TempDir::new().unwrap();
    let (from, to) = (home.path().join("from"), home.path().join("to"));
    for path in ["a/b/one", "a/two", "c/d/three", "four"] {
        fs::create_dir_all(from.join(path).parent().unwrap()).unwrap();
        fs::write(from.join(path), path).unwrap();
    }
    fs::create_dir(from.join("empty")).unwrap();
    let mut packer = Packer::selecting(&from, Ceilings::default()).unwrap();
    packer.select(["a/b/one", "../outside", "a/b", "gone/x"].map(|path| path.as_bytes().to_vec()));
    let mut bytes = pack(&mut packer);
    packer.select(["empty", "a", "c/d/three"].map(|path| path.as_bytes().to_vec()));
    bytes.extend(pack(&mut packer));
    packer.close();
    bytes.extend(pack(&mut packer));
    unpack(&bytes, &to).unwrap();
    let paths: Vec<_> = look(&to).into_keys().map(|path| String::from_utf8(path).unwrap()).collect();
    assert_eq!(paths, ["", "a", "a/b", "a/b/one", "c", "c/d", "c/d/three", "empty"]);
}

#[test]
fn what_differs_is_stale_and_nothing_else() {
    let home = TempDir::new().unwrap();
    let (from, to) = (home.path().join("from"), home.path().join("to"));
    fs::create_dir_all(from.join("d")).unwrap();
    for name in ["same", "longer", "touched", "mode", "gone", "d/below"] {
        fs::write(from.join(name), name).unwrap();
    }
    symlink("same", from.join("link")).unwrap();
    symlink("same", from.join("link2")).unwrap();
    let (bytes, _) = pack_all(&from, Rules::default());
    unpack(&bytes, &to).unwrap();
    fs::write(to.join("longer"), "longer than it was").unwrap();
    File::open(to.join("touched")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    fs::set_permissions(to.join("mode"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(to.join("gone")).unwrap();
    fs::remove_file(to.join("link")).unwrap();
    symlink("elsewhere", to.join("link")).unwrap();
    fs::write(to.join("only there"), "").unwrap();
    // A link in the way is not gone through.
    fs::rename(to.join("d"), home.path().join("moved")).unwrap();
    symlink(home.path().join("moved"), to.join("d")).unwrap();
    let survey: Vec<_> = Survey::new(&from, Rules::default()).unwrap().collect();
    let mut differing: Vec<_> = stale(&to, &survey)
        .unwrap()
        .into_iter()
        .map(|index| std::ffi::OsString::from_vec(survey[index as usize].path.clone()).into_string().unwrap())
        .collect();
    differing.sort();
    assert_eq!(differing, ["d", "d/below", "gone", "link", "longer", "mode", "touched"]);
    let mut elsewhere = survey[0].clone();
    elsewhere.path = b"../from".to_vec();
    assert!(stale(&to, &[elsewhere]).is_err());
}

#[test]
fn a_file_goes_where_it_is_sent_and_nowhere_else() {
    let home = TempDir::new().unwrap();
    let from = home.path().join("from");
    fs::write(&from, "content").unwrap();
    let (bytes, _) = pack_all(&from, Rules::default());
    let to = home.path().join("new/folder/to");
    unpack(&bytes, &to).unwrap();
    assert_eq!(fs::read_to_string(&to).unwrap(), "content");
    let folder = unpack(&bytes, &home.path().join("new")).unwrap_err();
    assert!(matches!(&folder, Trouble::Io { error, .. } if error.raw_os_error() == Some(21)), "{folder}");
    let tree = stream(&[enter(""), Record::Leave]);
    let onto = unpack(&tree, &to).unwrap_err();
    assert!(matches!(&onto, Trouble::Io { error, .. } if error.raw_os_error() == Some(20)), "{onto}");
}
