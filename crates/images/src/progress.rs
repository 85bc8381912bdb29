//! How far a pull is, told step by step.

use std::sync::Arc;

use crate::digest::Digest;

/// A step of a pull.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Which image, as it was asked for.
    pub image: String,
    /// Which of its layers.
    pub layer: Option<String>,
    /// In docker's words.
    pub status: String,
    /// Of `total_bytes`.
    pub current_bytes: Option<u64>,
    /// Where known.
    pub total_bytes: Option<u64>,
}

/// Told of each step of a pull; it is called from any thread and must not block.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// Steps between two words about bytes: enough for a bar, and little beside the work.
const STEPS: u64 = 50;
const SMALLEST_STEP: u64 = 256 * 1024;

/// Tells of one image.
#[derive(Clone)]
pub(crate) struct Herald {
    image: String,
    listener: Option<OnProgress>,
}

impl Herald {
    pub(crate) fn new(image: &str, listener: Option<&OnProgress>) -> Herald {
        Herald { image: image.to_owned(), listener: listener.cloned() }
    }

    pub(crate) fn say(&self, status: impl Into<String>) {
        self.tell(Progress { status: status.into(), ..Progress::default() });
    }

    pub(crate) fn layer(&self, digest: &Digest) -> LayerHerald {
        LayerHerald { herald: self.clone(), layer: digest.short().to_owned() }
    }

    fn tell(&self, progress: Progress) {
        if let Some(listener) = &self.listener {
            listener(Progress { image: self.image.clone(), ..progress });
        }
    }
}

/// Tells of one of its layers.
#[derive(Clone)]
pub(crate) struct LayerHerald {
    herald: Herald,
    layer: String,
}

impl LayerHerald {
    pub(crate) fn say(&self, status: &str) {
        self.herald.tell(Progress {
            layer: Some(self.layer.clone()),
            status: status.to_owned(),
            ..Progress::default()
        });
    }

    pub(crate) fn counter(&self, status: &'static str, total: u64) -> Counter {
        Counter { herald: self.clone(), status, total, current: 0, told: None }
    }
}

/// Counts bytes, and tells of them now and then.
pub(crate) struct Counter {
    herald: LayerHerald,
    status: &'static str,
    total: u64,
    current: u64,
    told: Option<u64>,
}

impl Counter {
    pub(crate) fn reach(&mut self, current: u64) {
        self.current = current;
        let step = (self.total / STEPS).max(SMALLEST_STEP);
        let is_due = self.told.is_none_or(|told| current < told || current - told >= step);
        if !is_due && (current < self.total || self.told == Some(current)) {
            return;
        }
        self.told = Some(current);
        self.herald.herald.tell(Progress {
            layer: Some(self.herald.layer.clone()),
            status: self.status.to_owned(),
            current_bytes: Some(current),
            total_bytes: Some(self.total),
            ..Progress::default()
        });
    }

    pub(crate) fn add(&mut self, count: usize) {
        self.reach(self.current + count as u64);
    }
}
