//! The watched folders as a tree: a rename is one change in it, and paths are built when they are sent.
//!
//! Makes no system calls. Invariant: every folder but the root has a parent that is here, and following parents
//! leads to the root.

use std::collections::{BTreeMap, HashMap};

/// A name in a watched folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Spot {
    pub(super) folder: i32,
    pub(super) name: Box<[u8]>,
}

impl Spot {
    pub(super) fn new(folder: i32, name: &[u8]) -> Spot {
        Spot { folder, name: name.into() }
    }
}

/// Longer paths cannot be used on Linux; moving folders below others can make them.
const MAX_PATH: usize = 4096;

/// A folder cannot be at this path: the known tree is out of date.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Circle;

#[derive(Debug)]
pub(super) struct Nodes {
    root: i32,
    /// Where each folder is; all but the root.
    spots: HashMap<i32, Spot>,
    /// Folders by place; those of one parent are neighbours.
    folders: BTreeMap<Spot, i32>,
}

impl Nodes {
    pub(super) fn new(root: i32) -> Nodes {
        Nodes { root, spots: HashMap::new(), folders: BTreeMap::new() }
    }

    pub(super) fn root(&self) -> i32 {
        self.root
    }

    pub(super) fn len(&self) -> usize {
        self.spots.len() + 1
    }

    pub(super) fn all(&self) -> impl Iterator<Item = i32> {
        self.spots.keys().copied().chain([self.root])
    }

    pub(super) fn contains(&self, folder: i32) -> bool {
        folder == self.root || self.spots.contains_key(&folder)
    }

    pub(super) fn at(&self, spot: &Spot) -> Option<i32> {
        self.folders.get(spot).copied()
    }

    pub(super) fn spot(&self, folder: i32) -> Option<&Spot> {
        self.spots.get(&folder)
    }

    /// The path below the root; `None` for a folder that is not watched, or whose path is too long.
    pub(super) fn path(&self, spot: &Spot) -> Option<Vec<u8>> {
        let mut names = vec![&spot.name];
        let mut length = spot.name.len();
        let mut folder = spot.folder;
        while folder != self.root {
            let above = self.spots.get(&folder)?;
            names.push(&above.name);
            length += above.name.len() + 1;
            if length >= MAX_PATH {
                return None;
            }
            folder = above.folder;
        }
        let mut path = Vec::with_capacity(length);
        for (index, name) in names.iter().rev().enumerate() {
            if index > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(name);
        }
        Some(path)
    }

    /// Moves a folder, with all known ones below it, to its new place. Returns those that it replaced, which are forgotten.
    pub(super) fn place(&mut self, folder: i32, spot: Spot) -> Result<Vec<i32>, Circle> {
        if self.spots.get(&folder) == Some(&spot) {
            return Ok(Vec::new());
        }
        let mut above = spot.folder;
        while above != self.root {
            if above == folder {
                return Err(Circle);
            }
            above = self.spots.get(&above).ok_or(Circle)?.folder;
        }
        if folder == self.root {
            return Err(Circle);
        }
        let displaced = match self.at(&spot) {
            Some(other) => self.remove(other),
            None => Vec::new(),
        };
        // It may itself have been below what it replaces.
        if let Some(old) = self.spots.remove(&folder) {
            self.folders.remove(&old);
        }
        self.folders.insert(spot.clone(), folder);
        self.spots.insert(folder, spot);
        Ok(displaced.into_iter().filter(|other| *other != folder).collect())
    }

    /// Forgets a folder and all below it; returns them.
    pub(super) fn remove(&mut self, folder: i32) -> Vec<i32> {
        let Some(spot) = self.spots.remove(&folder) else { return Vec::new() };
        self.folders.remove(&spot);
        let mut removed = vec![folder];
        let mut next = 0;
        while let Some(&above) = removed.get(next) {
            next += 1;
            let below: Vec<Spot> = self
                .folders
                .range(Spot::new(above, b"")..)
                .map(|(spot, _)| spot)
                .take_while(|spot| spot.folder == above)
                .cloned()
                .collect();
            for spot in below {
                if let Some(folder) = self.folders.remove(&spot) {
                    self.spots.remove(&folder);
                    removed.push(folder);
                }
            }
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spot(folder: i32, name: &str) -> Spot {
        Spot::new(folder, name.as_bytes())
    }

    fn path(nodes: &Nodes, folder: i32, name: &str) -> Option<String> {
        nodes.path(&spot(folder, name)).map(|path| String::from_utf8(path).unwrap())
    }

    /// a/b/c and d
    fn tree() -> Nodes {
        let mut nodes = Nodes::new(1);
        for (folder, above, name) in [(2, 1, "a"), (3, 2, "b"), (4, 3, "c"), (5, 1, "d")] {
            assert_eq!(nodes.place(folder, spot(above, name)), Ok(vec![]));
        }
        nodes
    }

    #[test]
    fn a_renamed_folder_takes_the_paths_below_it_along() {
        let mut nodes = tree();
        assert_eq!(path(&nodes, 4, "f").as_deref(), Some("a/b/c/f"));
        assert_eq!(nodes.place(3, spot(5, "x")), Ok(vec![]));
        assert_eq!(path(&nodes, 4, "f").as_deref(), Some("d/x/c/f"));
        assert_eq!(path(&nodes, 1, "f").as_deref(), Some("f"));
        assert_eq!(nodes.at(&spot(2, "b")), None);
    }

    #[test]
    fn a_folder_that_goes_away_takes_all_below_it_along() {
        let mut nodes = tree();
        assert_eq!(nodes.remove(2), vec![2, 3, 4]);
        assert_eq!((nodes.len(), path(&nodes, 4, "f")), (2, None));
        assert_eq!(nodes.remove(2), vec![]);
    }

    #[test]
    fn who_takes_a_place_displaces_who_was_there() {
        let mut nodes = tree();
        assert_eq!(nodes.place(5, spot(1, "a")), Ok(vec![2, 3, 4]));
        assert_eq!(path(&nodes, 5, "f").as_deref(), Some("a/f"));
        let mut nodes = tree();
        assert_eq!(nodes.place(4, spot(1, "a")), Ok(vec![2, 3]), "from within what it replaces");
        assert_eq!(path(&nodes, 4, "f").as_deref(), Some("a/f"));
    }

    #[test]
    fn a_folder_is_never_below_itself() {
        let mut nodes = tree();
        assert_eq!(nodes.place(2, spot(4, "x")), Err(Circle));
        assert_eq!(nodes.place(2, spot(2, "x")), Err(Circle));
        assert_eq!(nodes.place(1, spot(2, "x")), Err(Circle));
        assert_eq!(nodes.place(9, spot(77, "x")), Err(Circle));
        assert_eq!(path(&nodes, 4, "f").as_deref(), Some("a/b/c/f"));
    }

    proptest! {
        #[test]
        fn whatever_happens_every_folder_has_a_path_and_is_found_at_it(
            steps in proptest::collection::vec((2i32..12, 1i32..12, 0u8..4, any::<bool>()), 0..200),
        ) {
            let mut nodes = Nodes::new(1);
            for (folder, above, name, remove) in steps {
                let before = nodes.len();
                if remove {
                    let gone = nodes.remove(folder);
                    prop_assert_eq!(nodes.len(), before - gone.len());
                } else {
                    let _ = nodes.place(folder, Spot::new(above, &[name]));
                }
                for folder in nodes.all().filter(|folder| *folder != 1) {
                    let spot = nodes.spot(folder).cloned().unwrap();
                    prop_assert_eq!(nodes.at(&spot), Some(folder));
                    prop_assert!(nodes.path(&spot).is_some());
                }
                prop_assert_eq!(nodes.folders.len(), nodes.spots.len());
            }
        }
    }
}
