//! Layers that are tried one by one, with an eye on all that is not theirs.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};

use cofferdam_images::{ImageError, ImageStore, Limits, PullPolicy, StoreOptions};

use crate::support::{Place, image, layout, plain};

pub(crate) const MIB: u64 = 1024 * 1024;

/// Loads one layer and checks that nothing but the store changed. Gives where it was unpacked.
pub(crate) fn try_layer(place: &Place, layer: Vec<u8>) -> Result<PathBuf, ImageError> {
    let limits = Limits { bytes: 8 * MIB, entries: 10_000 };
    std::fs::create_dir_all(place.path("outside")).unwrap();
    std::fs::write(place.path("outside/kept"), "kept").unwrap();
    layout(&place.path("layout"), &image(&plain(vec![layer])), "test/hostile:1");
    let before = place.everything_but(&["store"]);
    let options = StoreOptions { limits, ..StoreOptions::default() };
    let store = ImageStore::with(place.path("store"), options);
    let outcome = run(async {
        let name = store.load(&place.path("layout")).await?;
        assert_eq!(name, "docker.io/test/hostile:1");
        store.prepare(&name, PullPolicy::Never, None).await
    });
    assert_eq!(place.everything_but(&["store"]), before, "something outside the store changed");
    let image = outcome.inspect_err(|_| {
        assert_eq!(std::fs::read_dir(place.path("store/layers")).unwrap().count(), 0, "a refused layer was kept");
        assert_eq!(std::fs::read_dir(place.path("store/drafts")).unwrap().count(), 0, "a refused layer left something");
    })?;
    Ok(image.layers[0].clone())
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn refused(layer: Vec<u8>) -> ImageError {
    try_layer(&Place::new(), layer).expect_err("the layer was taken")
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap()
}
