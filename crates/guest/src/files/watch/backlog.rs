//! Turns kernel events into file changes: the two halves of a rename become one, and drafts become their final files. Makes
//! no system calls.
//!
//! Order is kept: a rename stands where its first half stood. The second half may come with a later read, so a
//! first half without a second counts as complete only after the kernel had time to send more.

use std::collections::VecDeque;

use rustix::fs::inotify::ReadFlags;

use super::inotify::Event;
use super::nodes::Spot;
use cofferdam_tree::{Fate, draft_fate};

/// Never waits for a second half behind this many events: the kernel sends both halves together.
const FAR: usize = 2048;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Happening {
    Made {
        at: Spot,
        is_dir: bool,
    },
    Changed(Spot),
    Gone {
        at: Spot,
        is_dir: bool,
    },
    Moved {
        from: Spot,
        to: Spot,
        is_dir: bool,
    },
    /// The kernel watches this folder no longer.
    Unwatched(i32),
    /// The kernel dropped events.
    Overflow,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Happening(Happening),
    /// The first half of a rename, whose second half may be still to come.
    Half,
    Empty,
}

/// Events that were read, and not handled yet.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    events: VecDeque<Event>,
    /// This many of the first events have waited long enough.
    settled: usize,
}

impl Backlog {
    pub(super) fn extend(&mut self, events: Vec<Event>) {
        self.events.extend(events);
    }

    /// All second halves of the present events have come, or never will.
    pub(super) fn settle(&mut self, events: usize) {
        self.settled = events.min(self.events.len());
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether the next step may have to read folders.
    pub(super) fn has_folders(&self) -> bool {
        let folders = ReadFlags::ISDIR | ReadFlags::QUEUE_OVERFLOW;
        self.events.iter().any(|event| event.flags.intersects(folders))
    }

    pub(super) fn next(&mut self) -> Next {
        loop {
            let Some(event) = self.events.front() else { return Next::Empty };
            let mate = match event.flags.contains(ReadFlags::MOVED_FROM) {
                false => None,
                true => match self.mate_of(event.cookie) {
                    None if self.settled == 0 && self.events.len() < FAR => return Next::Half,
                    found => found,
                },
            };
            let mate = mate.and_then(|index| self.take(index));
            let Some(event) = self.take(0) else { return Next::Empty };
            if let Some(happening) = happening(event, mate) {
                return Next::Happening(happening);
            }
        }
    }

    fn mate_of(&self, cookie: u32) -> Option<usize> {
        let is_mate = |event: &Event| event.cookie == cookie && event.flags.contains(ReadFlags::MOVED_TO);
        self.events.iter().position(is_mate)
    }

    fn take(&mut self, index: usize) -> Option<Event> {
        if index < self.settled {
            self.settled -= 1;
        }
        self.events.remove(index)
    }
}

fn happening(event: Event, mate: Option<Event>) -> Option<Happening> {
    let Event { folder, flags, name, .. } = event;
    if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
        return Some(Happening::Overflow);
    }
    if flags.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT) {
        return Some(Happening::Unwatched(folder));
    }
    if name.is_empty() {
        // About the folder itself, which its parent folder reports too.
        return None;
    }
    let is_dir = flags.contains(ReadFlags::ISDIR);
    let fate = |name: &[u8]| if is_dir { None } else { draft_fate(name) };
    let at = Spot { folder, name };
    if let Some(Event { folder, name, .. }) = mate {
        let to = Spot { folder, name };
        return match (fate(&at.name), fate(&to.name)) {
            (None, None) => Some(Happening::Moved { from: at, to, is_dir }),
            (Some(Fate::New), None) => Some(Happening::Made { at: to, is_dir }),
            (Some(Fate::Replaces), None) => Some(Happening::Changed(to)),
            (None, Some(_)) => Some(Happening::Gone { at, is_dir }),
            (Some(_), Some(_)) => None,
        };
    }
    if fate(&at.name).is_some() {
        return None;
    }
    if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
        Some(Happening::Made { at, is_dir })
    } else if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
        Some(Happening::Gone { at, is_dir })
    } else if flags.intersects(ReadFlags::MODIFY | ReadFlags::ATTRIB) {
        Some(Happening::Changed(at))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ReadFlags as Is;
    use proptest::prelude::*;

    fn event(folder: i32, flags: ReadFlags, cookie: u32, name: &str) -> Event {
        Event { folder, flags, cookie, name: name.as_bytes().into() }
    }

    fn at(folder: i32, name: &str) -> Spot {
        Spot::new(folder, name.as_bytes())
    }

    fn backlog(events: Vec<Event>) -> Backlog {
        let mut backlog = Backlog::default();
        backlog.extend(events);
        backlog
    }

    fn all(backlog: &mut Backlog) -> Vec<Happening> {
        let mut seen = Vec::new();
        loop {
            match backlog.next() {
                Next::Happening(happening) => seen.push(happening),
                Next::Half => backlog.settle(backlog.len()),
                Next::Empty => return seen,
            }
        }
    }

    #[test]
    fn two_halves_are_one_rename_where_the_first_half_was() {
        let mut backlog = backlog(vec![
            event(1, Is::MOVED_FROM, 7, "a"),
            event(3, Is::MODIFY, 0, "x"),
            event(2, Is::MOVED_TO, 7, "b"),
        ]);
        let moved = Happening::Moved { from: at(1, "a"), to: at(2, "b"), is_dir: false };
        assert_eq!(all(&mut backlog), vec![moved, Happening::Changed(at(3, "x"))]);
    }

    #[test]
    fn a_second_half_may_come_with_the_next_read() {
        let mut backlog = backlog(vec![event(1, Is::MOVED_FROM | Is::ISDIR, 7, "a")]);
        assert_eq!(backlog.next(), Next::Half);
        backlog.extend(vec![event(1, Is::MOVED_TO | Is::ISDIR, 7, "b")]);
        let moved = Happening::Moved { from: at(1, "a"), to: at(1, "b"), is_dir: true };
        assert_eq!(backlog.next(), Next::Happening(moved));
        assert_eq!(backlog.next(), Next::Empty);
    }

    #[test]
    fn a_half_without_a_mate_is_a_whole_after_a_while_and_so_are_those_that_waited_with_it() {
        let gone = |name| Next::Happening(Happening::Gone { at: at(1, name), is_dir: false });
        let mut backlog = backlog(vec![event(1, Is::MOVED_FROM, 7, "a"), event(1, Is::MOVED_FROM, 8, "b")]);
        assert_eq!(backlog.next(), Next::Half);
        backlog.settle(2);
        backlog.extend(vec![event(1, Is::MOVED_FROM, 9, "c")]);
        assert_eq!((backlog.next(), backlog.next()), (gone("a"), gone("b")));
        assert_eq!(backlog.next(), Next::Half, "the one that came later has not waited");
        let alone = event(1, Is::MOVED_TO, 5, "d");
        assert_eq!(all(&mut self::backlog(vec![alone])), vec![Happening::Made { at: at(1, "d"), is_dir: false }]);
    }

    #[test]
    fn drafts_are_seen_as_what_they_become() {
        let written = |draft: &str| {
            all(&mut backlog(vec![
                event(1, Is::CREATE, 0, draft),
                event(1, Is::ATTRIB, 0, draft),
                event(1, Is::MODIFY, 0, draft),
                event(1, Is::MOVED_FROM, 3, draft),
                event(1, Is::MOVED_TO, 3, "f"),
            ]))
        };
        assert_eq!(written(".f.1.new.cofferdam"), vec![Happening::Made { at: at(1, "f"), is_dir: false }]);
        assert_eq!(written(".f.1.cofferdam"), vec![Happening::Changed(at(1, "f"))]);
        let given_up = vec![event(1, Is::CREATE, 0, ".f.1.cofferdam"), event(1, Is::DELETE, 0, ".f.1.cofferdam")];
        assert_eq!(all(&mut backlog(given_up)), vec![]);
        let folder = vec![event(1, Is::CREATE | Is::ISDIR, 0, ".f.1.cofferdam")];
        assert_eq!(all(&mut backlog(folder)).len(), 1, "a folder is no draft");
    }

    proptest! {
        #[test]
        fn no_rename_is_lost_however_reads_cut_it(
            kinds in proptest::collection::vec(0u8..3, 1..60),
            cuts in proptest::collection::vec(1usize..5, 1..20),
        ) {
            let mut events = Vec::new();
            for (index, kind) in kinds.iter().enumerate() {
                let (cookie, name) = (index as u32 + 1, index.to_string());
                match kind {
                    0 => {
                        events.push(event(1, Is::MOVED_FROM, cookie, &name));
                        events.push(event(2, Is::MOVED_TO, cookie, &name));
                    }
                    1 => events.push(event(1, Is::CREATE, 0, &name)),
                    _ => events.push(event(1, Is::DELETE, 0, &name)),
                }
            }
            let mut backlog = Backlog::default();
            let mut cuts = cuts.iter().cycle();
            let mut seen = Vec::new();
            loop {
                match backlog.next() {
                    Next::Happening(happening) => seen.push(happening),
                    Next::Half | Next::Empty if events.is_empty() => break,
                    Next::Half | Next::Empty => {
                        let cut = cuts.next().map_or(1, |cut| *cut).min(events.len());
                        backlog.extend(events.drain(..cut).collect());
                    }
                }
            }
            prop_assert_eq!(seen.len(), kinds.len());
            for (happening, kind) in seen.iter().zip(&kinds) {
                prop_assert_eq!(matches!(happening, Happening::Moved { .. }), *kind == 0);
            }
        }
    }
}
