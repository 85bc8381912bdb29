//! A process that goes on by itself, and its output as a stream.

use std::sync::Arc;

use cofferdam_core::{Chunk, OutputStream, Process, Recent, StreamName};
use napi::Env;
use napi::bindgen_prelude::{BufferSlice, PromiseRaw, Uint8Array};
use napi_derive::napi;
use tokio::sync::Mutex;

use crate::cancel::{Cancel, token};
use crate::convert::{buffer, bytes, millis};
use crate::promise::{as_is, promise};
use crate::sandbox::{NativeExecResult, NativeTerminalSize};

#[napi(object, object_from_js = false)]
pub struct NativeChunk<'env> {
    pub seq: f64,
    pub is_stderr: bool,
    #[napi(ts_type = "Buffer")]
    pub data: BufferSlice<'env>,
}

pub(crate) fn to_chunks<'env>(env: &'env Env, chunks: Vec<Chunk>) -> napi::Result<Vec<NativeChunk<'env>>> {
    let convert = |chunk: Chunk| {
        Ok(NativeChunk {
            seq: chunk.seq as f64,
            is_stderr: chunk.stream == StreamName::Stderr,
            data: buffer(env, chunk.data)?,
        })
    };
    chunks.into_iter().map(convert).collect()
}

#[napi(object, object_from_js = false)]
pub struct NativeRecent<'env> {
    pub chunks: Vec<NativeChunk<'env>>,
    pub done: bool,
    pub lost_bytes: f64,
}

#[napi]
pub struct NativeProcess {
    process: Arc<Process>,
}

impl NativeProcess {
    pub(crate) fn new(process: impl Into<Arc<Process>>) -> NativeProcess {
        NativeProcess { process: process.into() }
    }
}

#[napi]
impl NativeProcess {
    #[napi(getter)]
    pub fn exec_id(&self) -> &str {
        self.process.exec_id()
    }

    #[napi(getter)]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Where its whole output is, if that was asked for.
    #[napi(getter)]
    pub fn log_path(&self) -> String {
        self.process.log_path()
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn resize<'env>(&self, env: &'env Env, size: NativeTerminalSize) -> napi::Result<PromiseRaw<'env, ()>> {
        let process = Arc::clone(&self.process);
        promise(env, async move { process.resize(size.into()).await }, as_is)
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn wait_for_port<'env>(
        &self,
        env: &'env Env,
        port: u16,
        timeout_ms: Option<f64>,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let (process, token) = (Arc::clone(&self.process), token(cancel));
        promise(env, async move { process.wait_for_port(port, timeout_ms.map(millis), &token).await }, as_is)
    }

    #[napi]
    pub fn output(&self, since_seq: f64) -> NativeOutput {
        NativeOutput { output: Arc::new(Mutex::new(Some(self.process.output(since_seq as u64)))) }
    }

    #[napi(ts_return_type = "Promise<NativeRecent>")]
    pub fn read<'env>(
        &self,
        env: &'env Env,
        since_seq: f64,
        max_chunks: f64,
        wait_ms: f64,
    ) -> napi::Result<PromiseRaw<'env, NativeRecent<'env>>> {
        let process = Arc::clone(&self.process);
        let read = async move { process.read(since_seq as u64, max_chunks as u32, millis(wait_ms)).await };
        promise(env, read, |env, Recent { chunks, done, lost_bytes }| {
            Ok(NativeRecent { chunks: to_chunks(env, chunks)?, done, lost_bytes: lost_bytes as f64 })
        })
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn write<'env>(&self, env: &'env Env, data: Uint8Array) -> napi::Result<PromiseRaw<'env, ()>> {
        let (process, data) = (Arc::clone(&self.process), bytes(&data));
        promise(env, async move { process.write(data).await }, as_is)
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn end<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let process = Arc::clone(&self.process);
        promise(env, async move { process.end().await }, as_is)
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn kill<'env>(&self, env: &'env Env, signal: Option<String>) -> napi::Result<PromiseRaw<'env, ()>> {
        let process = Arc::clone(&self.process);
        promise(env, async move { process.kill(signal.as_deref()).await }, as_is)
    }

    #[napi(ts_return_type = "Promise<NativeExecResult>")]
    pub fn wait<'env>(
        &self,
        env: &'env Env,
        timeout_ms: Option<f64>,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeExecResult>> {
        let (process, token) = (Arc::clone(&self.process), token(cancel));
        let wait = async move { process.wait(timeout_ms.map(millis), &token).await };
        promise(env, wait, |_, result| Ok(result.into()))
    }
}

/// A process's output, a batch at a time: a promise per chunk would cost more than the chunk.
#[napi]
pub struct NativeOutput {
    output: Arc<Mutex<Option<OutputStream>>>,
}

#[napi]
impl NativeOutput {
    /// At least one chunk; none after the end.
    #[napi(ts_return_type = "Promise<NativeChunk[]>")]
    pub fn next_many<'env>(&self, env: &'env Env, max: u32) -> napi::Result<PromiseRaw<'env, Vec<NativeChunk<'env>>>> {
        let output = Arc::clone(&self.output);
        let next = async move {
            match &mut *output.lock().await {
                Some(output) => output.next_many(max as usize).await,
                None => Ok(Vec::new()),
            }
        };
        promise(env, next, to_chunks)
    }

    /// Stops reading; the process goes on.
    #[napi]
    pub fn stop(&self) {
        // A read under way holds the lock; then the last reference goes with it.
        if let Ok(mut output) = self.output.try_lock() {
            output.take();
        }
    }
}
