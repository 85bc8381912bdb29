//! What happens to a sandbox's files, in batches.

use std::sync::Arc;

use cofferdam_core::{CancellationToken, FileChange, FileWatch};
use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;
use tokio::sync::Mutex;

use crate::cancel::{Cancel, token, unless};
use crate::convert::text;
use crate::promise::promise;
use crate::sandbox::NativeSandbox;

#[napi(object)]
pub struct NativeFileChange {
    #[napi(js_name = "type", ts_type = "'create' | 'change' | 'delete' | 'rename' | 'overflow'")]
    pub kind: String,
    pub path: String,
    pub from: Option<String>,
}

impl From<FileChange> for NativeFileChange {
    fn from(change: FileChange) -> NativeFileChange {
        let (kind, path, from) = match change {
            FileChange::Create(path) => ("create", path, None),
            FileChange::Change(path) => ("change", path, None),
            FileChange::Delete(path) => ("delete", path, None),
            FileChange::Rename { from, to } => ("rename", to, Some(from)),
            FileChange::Overflow => ("overflow", Vec::new(), None),
        };
        NativeFileChange { kind: kind.to_owned(), path: text(path), from: from.map(text) }
    }
}

#[napi]
impl NativeSandbox {
    /// When it resolves, nothing is missed any more.
    #[napi(ts_return_type = "Promise<NativeWatch>")]
    pub fn watch<'env>(
        &self,
        env: &'env Env,
        path: String,
        recursive: bool,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeWatch>> {
        // Asked for here and now, so that calls made after this one wait for it.
        let call = self.sandbox.watch_files(&path, recursive);
        promise(env, unless(token(cancel), call), |_, watch| {
            Ok(NativeWatch { watch: Arc::new(Mutex::new(Some(watch))), stopped: CancellationToken::new() })
        })
    }
}

#[napi]
pub struct NativeWatch {
    watch: Arc<Mutex<Option<FileWatch>>>,
    stopped: CancellationToken,
}

#[napi]
impl NativeWatch {
    /// At least one; none when there will be no more.
    #[napi(ts_return_type = "Promise<NativeFileChange[]>")]
    pub fn next_many<'env>(
        &self,
        env: &'env Env,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, Vec<NativeFileChange>>> {
        let (watch, stopped) = (Arc::clone(&self.watch), self.stopped.clone());
        let next = async move {
            let mut watch = watch.lock().await;
            let changes = match watch.as_mut() {
                Some(open) => stopped.run_until_cancelled(open.next_many()).await,
                None => None,
            };
            if changes.is_none() {
                watch.take();
            }
            changes.unwrap_or_else(|| Ok(Vec::new()))
        };
        promise(env, unless(token(cancel), next), |_, changes| Ok(changes.into_iter().map(Into::into).collect()))
    }

    /// Ends the watch in the sandbox, and a read under way with it.
    #[napi]
    pub fn stop(&self) {
        self.stopped.cancel();
        // A read under way holds the lock, and lets go of the watch itself.
        if let Ok(mut watch) = self.watch.try_lock() {
            watch.take();
        }
    }
}
