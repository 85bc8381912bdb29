//! A command whose output is read while it runs, and then how it went.

use std::sync::Arc;

use cofferdam_core::{Error, ErrorCode, Execution};
use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;
use tokio::sync::Mutex;

use crate::process::{NativeChunk, to_chunks};
use crate::promise::{as_is, promise};
use crate::sandbox::NativeExecResult;

#[napi]
pub struct NativeExecution {
    execution: Arc<Mutex<Option<Execution>>>,
}

impl NativeExecution {
    pub(crate) fn new(execution: Execution) -> NativeExecution {
        NativeExecution { execution: Arc::new(Mutex::new(Some(execution))) }
    }
}

#[napi]
impl NativeExecution {
    /// At least one chunk; none after the end.
    #[napi(ts_return_type = "Promise<NativeChunk[]>")]
    pub fn next_many<'env>(&self, env: &'env Env, max: u32) -> napi::Result<PromiseRaw<'env, Vec<NativeChunk<'env>>>> {
        let execution = Arc::clone(&self.execution);
        let next = async move {
            match &mut *execution.lock().await {
                Some(execution) => execution.next_many(max as usize).await,
                None => Ok(Vec::new()),
            }
        };
        promise(env, next, to_chunks)
    }

    /// How it went; once.
    #[napi(ts_return_type = "Promise<NativeExecResult>")]
    pub fn result<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, NativeExecResult>> {
        let execution = Arc::clone(&self.execution);
        let result = async move {
            match execution.lock().await.take() {
                Some(execution) => execution.result().await,
                None => Err(Error::new(ErrorCode::Internal, "the result of the command was taken already")),
            }
        };
        promise(env, result, |_, result| Ok(result.into()))
    }

    /// Ends the command with all that it started.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn kill<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let execution = Arc::clone(&self.execution);
        let kill = async move {
            if let Some(execution) = &*execution.lock().await {
                execution.kill().await;
            }
            Ok(())
        };
        promise(env, kill, as_is)
    }
}
