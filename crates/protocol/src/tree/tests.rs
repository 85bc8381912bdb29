//! Walks through the decoder, however they are cut and whatever is put in their place.

use super::*;
use proptest::prelude::*;

fn name() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 1..20).prop_filter("one name", |name| is_name(name))
}

fn meta() -> impl Strategy<Value = Meta> {
    (0u32..0o10000, any::<i64>(), 0u32..1_000_000_000).prop_map(|(mode, mtime_s, mtime_ns)| Meta {
        mode,
        mtime_s,
        mtime_ns,
    })
}

/// A step of a walk with what belongs to it: content is told with its length.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Record(Record),
    Content(Vec<u8>),
}

fn file(name: Vec<u8>, meta: Meta, pieces: Vec<(bool, Vec<u8>)>, whole: bool) -> Vec<Step> {
    let mut steps = vec![Step::Record(Record::File { name, meta, size: 7 })];
    for (is_hole, bytes) in pieces {
        steps.push(match is_hole {
            true => Step::Record(Record::Hole(bytes.len() as u64)),
            false => Step::Content(bytes),
        });
    }
    steps.push(Step::Record(if whole { Record::Whole } else { Record::Torn { reason: "gone".into() } }));
    steps
}

fn any_file(name: Vec<u8>) -> impl Strategy<Value = Vec<Step>> {
    let piece = (any::<bool>(), proptest::collection::vec(any::<u8>(), 1..50));
    (meta(), proptest::collection::vec(piece, 0..4), any::<bool>())
        .prop_map(move |(meta, pieces, whole)| file(name.clone(), meta, pieces, whole))
}

fn any_entry() -> impl Strategy<Value = Vec<Step>> {
    let leaf = prop_oneof![
        name().prop_flat_map(any_file),
        (name(), name(), meta()).prop_map(|(name, target, meta)| vec![Step::Record(Record::Link {
            name,
            target,
            meta
        })]),
        name().prop_map(|name| vec![Step::Record(Record::Skipped { name, reason: "a socket".into() })]),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        (name(), meta(), proptest::collection::vec(inner, 0..6))
            .prop_map(|(name, meta, children)| folder(name, meta, children))
    })
}

fn folder(name: Vec<u8>, meta: Meta, children: Vec<Vec<Step>>) -> Vec<Step> {
    let mut steps = vec![Step::Record(Record::Enter { name, meta })];
    steps.extend(children.into_iter().flatten());
    steps.push(Step::Record(Record::Leave));
    steps
}

fn any_walk() -> impl Strategy<Value = Vec<Step>> {
    prop_oneof![
        any_file(Vec::new()),
        (meta(), proptest::collection::vec(any_entry(), 0..6)).prop_map(|(meta, children)| folder(
            Vec::new(),
            meta,
            children
        )),
    ]
}

fn wire(walk: &[Step]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for step in walk {
        match step {
            Step::Record(record) => record.encode(&mut bytes),
            Step::Content(content) => {
                Record::Data(content.len() as u32).encode(&mut bytes);
                bytes.extend_from_slice(content);
            }
        }
    }
    bytes
}

/// Pieces of content that belong together are put together again.
fn read(decoder: &mut TreeDecoder, mut bytes: &[u8], steps: &mut Vec<Step>) -> Result<(), TreeError> {
    while let Some(item) = decoder.next(&mut bytes)? {
        match (item, steps.last_mut()) {
            (TreeItem::Content(more), Some(Step::Content(content))) => content.extend_from_slice(more),
            (TreeItem::Content(content), _) => steps.push(Step::Content(content.to_vec())),
            (TreeItem::Record(record), _) => steps.push(Step::Record(record)),
        }
    }
    Ok(())
}

fn merged(walk: &[Step]) -> Vec<Step> {
    let mut merged: Vec<Step> = Vec::new();
    for step in walk {
        match (step, merged.last_mut()) {
            (Step::Content(more), Some(Step::Content(content))) => content.extend_from_slice(more),
            _ => merged.push(step.clone()),
        }
    }
    merged
}

proptest! {
    #[test]
    fn a_walk_survives_any_way_of_cutting_the_stream(
        walk in any_walk(),
        cuts in proptest::collection::vec(1usize..40, 1..50),
    ) {
        let bytes = wire(&walk);
        let (mut decoder, mut steps, mut rest) = (TreeDecoder::default(), Vec::new(), &bytes[..]);
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            read(&mut decoder, piece, &mut steps).unwrap();
            rest = after;
        }
        prop_assert_eq!(decoder.finish(), Ok(()));
        prop_assert_eq!(merged(&steps), merged(&walk));
    }

    #[test]
    fn a_walk_that_is_cut_off_is_not_complete(walk in any_walk(), part in 0.0f64..1.0) {
        let bytes = wire(&walk);
        let mut decoder = TreeDecoder::default();
        read(&mut decoder, &bytes[..(bytes.len() as f64 * part) as usize], &mut Vec::new()).unwrap();
        prop_assert_eq!(decoder.finish(), Err(TreeError::CutShort));
    }

    #[test]
    fn garbage_gives_an_error_or_a_walk_and_never_a_bad_name(
        walk in any_walk(),
        place in any::<prop::sample::Index>(),
        garbage in proptest::collection::vec(any::<u8>(), 0..30),
    ) {
        let mut bytes = wire(&walk);
        let at = place.index(bytes.len());
        bytes.splice(at..(at + garbage.len()).min(bytes.len()), garbage);
        let (mut decoder, mut steps) = (TreeDecoder::default(), Vec::new());
        let _ = read(&mut decoder, &bytes, &mut steps);
        let mut depth = 0usize;
        for (index, step) in steps.iter().enumerate() {
            let Step::Record(record) = step else { continue };
            prop_assert!(record.name().is_none_or(|name| is_name(name) || (index == 0 && name.is_empty())));
            match record {
                Record::Enter { .. } => depth += 1,
                Record::Leave => depth = depth.checked_sub(1).expect("never above the root"),
                _ => {}
            }
        }
    }
}

fn refused(records: &[Record]) -> Option<TreeError> {
    let mut bytes = Vec::new();
    records.iter().for_each(|record| record.encode(&mut bytes));
    read(&mut TreeDecoder::default(), &bytes, &mut Vec::new()).err()
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let meta = Meta::default();
    let root = || Record::Enter { name: vec![], meta };
    for bad in [&b".."[..], b".", b"", b"a/b", b"/etc", b"a\0", &[b'x'; 256]] {
        let name = bad.to_vec();
        let steps = [
            Record::Enter { name: name.clone(), meta },
            Record::File { name: name.clone(), meta, size: 0 },
            Record::Link { name: name.clone(), target: b"t".to_vec(), meta },
            Record::Skipped { name, reason: String::new() },
        ];
        for step in steps {
            assert_eq!(refused(&[root(), step.clone()]), Some(TreeError::BadName), "{step:?}");
        }
    }
    assert_eq!(refused(&[Record::Enter { name: b"etc".to_vec(), meta }]), Some(TreeError::BadName));
}

#[test]
fn steps_out_of_order_are_refused() {
    let meta = Meta::default();
    let root = || Record::Enter { name: vec![], meta };
    let file = || Record::File { name: b"f".to_vec(), meta, size: 1 };
    for walk in [
        vec![Record::Leave],
        vec![Record::Data(1)],
        vec![root(), Record::Hole(1)],
        vec![root(), file(), file()],
        vec![root(), file(), Record::Leave],
        vec![root(), Record::Leave, Record::Leave],
        vec![root(), Record::Leave, file()],
        vec![Record::Link { name: vec![], target: b"x".to_vec(), meta }],
    ] {
        assert!(matches!(refused(&walk), Some(TreeError::Misplaced(_))), "{walk:?}");
    }
    let deep: Vec<_> =
        std::iter::once(root()).chain((0..MAX_DEPTH).map(|_| Record::Enter { name: b"d".to_vec(), meta })).collect();
    assert_eq!(refused(&deep), Some(TreeError::TooDeep));
    assert_eq!(refused(&deep[..MAX_DEPTH]), None);
}
