//! A pull under way, step by step.

use std::sync::Arc;

use cofferdam_core::{Manager, OnPull, PullProgress};
use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;
use tokio::sync::{Mutex, mpsc};

use crate::cancel::{Cancel, token, unless};
use crate::promise::promise;

#[napi(object)]
pub struct NativePullProgress {
    pub image: String,
    pub layer: Option<String>,
    pub status: String,
    pub current_bytes: Option<f64>,
    pub total_bytes: Option<f64>,
}

impl From<PullProgress> for NativePullProgress {
    fn from(progress: PullProgress) -> NativePullProgress {
        NativePullProgress {
            image: progress.image,
            layer: progress.layer,
            status: progress.status,
            current_bytes: progress.current_bytes.map(|count| count as f64),
            total_bytes: progress.total_bytes.map(|count| count as f64),
        }
    }
}

type Step = cofferdam_core::Result<PullProgress>;

/// A pull under way.
#[napi]
pub struct NativePull {
    manager: Manager,
    image: String,
    sender: std::sync::Mutex<Option<mpsc::UnboundedSender<Step>>>,
    steps: Arc<Mutex<mpsc::UnboundedReceiver<Step>>>,
}

impl NativePull {
    pub(crate) fn new(manager: Manager, image: String) -> NativePull {
        let (sender, steps) = mpsc::unbounded_channel();
        NativePull { manager, image, sender: Some(sender).into(), steps: Arc::new(Mutex::new(steps)) }
    }
}

#[napi]
impl NativePull {
    /// At least one step; none when the image is there.
    #[napi(ts_return_type = "Promise<NativePullProgress[]>")]
    pub fn next_many<'env>(
        &self,
        env: &'env Env,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, Vec<NativePullProgress>>> {
        let start = self.sender.lock().ok().and_then(|mut sender| sender.take());
        let (manager, image, steps) = (self.manager.clone(), self.image.clone(), Arc::clone(&self.steps));
        let next = async move {
            if let Some(sender) = start {
                let progress = sender.clone();
                let on_pull: OnPull = Arc::new(move |step| {
                    let _ = progress.send(Ok(step));
                });
                tokio::spawn(async move {
                    tokio::select! {
                        outcome = manager.pull(&image, Some(&on_pull)) => if let Err(error) = outcome {
                            let _ = sender.send(Err(error));
                        },
                        // Nobody listens any more: the engine gives up a pull whose client is gone.
                        () = sender.closed() => {}
                    }
                });
            }
            let mut batch = Vec::new();
            steps.lock().await.recv_many(&mut batch, 256).await;
            batch.into_iter().collect::<cofferdam_core::Result<Vec<_>>>()
        };
        promise(env, unless(token(cancel), next), |_, steps| Ok(steps.into_iter().map(Into::into).collect()))
    }
}
