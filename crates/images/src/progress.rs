//! The progress of a pull.

use std::sync::Arc;

use crate::digest::Digest;

/// A step of a pull.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The image, as it was asked for.
    pub image: String,
    /// The layer.
    pub layer: Option<String>,
    /// As docker words it.
    pub status: String,
    /// Of `total_bytes`.
    pub current_bytes: Option<u64>,
    /// Where known.
    pub total_bytes: Option<u64>,
}

/// Called for each step of a pull, from any thread; it must not block.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// Bytes between two reports: enough for a progress bar, and cheap.
const STEPS: u64 = 50;
const SMALLEST_STEP: u64 = 256 * 1024;

/// Reports on one image.
#[derive(Clone)]
pub(crate) struct Reporter {
    image: String,
    listener: Option<OnProgress>,
}

impl Reporter {
    pub(crate) fn new(image: &str, listener: Option<&OnProgress>) -> Reporter {
        Reporter { image: image.to_owned(), listener: listener.cloned() }
    }

    pub(crate) fn report(&self, status: impl Into<String>) {
        self.tell(Progress { status: status.into(), ..Progress::default() });
    }

    pub(crate) fn layer(&self, digest: &Digest) -> LayerReporter {
        LayerReporter { reporter: self.clone(), layer: digest.short().to_owned() }
    }

    fn tell(&self, progress: Progress) {
        if let Some(listener) = &self.listener {
            listener(Progress { image: self.image.clone(), ..progress });
        }
    }
}

/// Reports on one of its layers.
#[derive(Clone)]
pub(crate) struct LayerReporter {
    reporter: Reporter,
    layer: String,
}

impl LayerReporter {
    pub(crate) fn report(&self, status: &str) {
        self.reporter.tell(Progress {
            layer: Some(self.layer.clone()),
            status: status.to_owned(),
            ..Progress::default()
        });
    }

    pub(crate) fn counter(&self, status: &'static str, total: u64) -> Counter {
        Counter { reporter: self.clone(), status, total, current: 0, told: None }
    }
}

/// Counts bytes, and reports them from time to time.
pub(crate) struct Counter {
    reporter: LayerReporter,
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
        self.reporter.reporter.tell(Progress {
            layer: Some(self.reporter.layer.clone()),
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
