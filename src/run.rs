//! One program in a sandbox of its own.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use cofferdam_core::{Artifact, Omitted, Process, Result, RunRequest, RunResult, Running, Runtime};
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Uint8Array};
use napi_derive::napi;
use tokio::sync::oneshot;

use crate::cancel::{Cancel, token};
use crate::convert::millis;
use crate::options::NativeOpen;
use crate::process::NativeProcess;
use crate::promise::promise;
use crate::sandbox::NativeExecResult;

#[napi(object)]
pub struct NativeRun {
    #[napi(ts_type = "'python' | 'node' | 'bash'")]
    pub runtime: String,
    pub open: NativeOpen,
    pub code: String,
    pub args: Vec<String>,
    pub artifacts: Vec<String>,
    pub timeout_ms: Option<f64>,
    pub max_output_bytes: f64,
    pub max_artifact_bytes: f64,
    pub max_artifacts: f64,
}

impl NativeRun {
    pub(crate) fn request(self, cancel: Option<&Cancel>) -> RunRequest {
        RunRequest {
            runtime: Runtime::parse(&self.runtime).unwrap_or_default(),
            open: self.open.into(),
            code: self.code,
            args: self.args,
            artifacts: self.artifacts,
            timeout: self.timeout_ms.map(millis),
            max_output: self.max_output_bytes as usize,
            max_artifact: self.max_artifact_bytes as u64,
            max_artifacts: self.max_artifacts as usize,
            cancel: token(cancel),
        }
    }
}

#[napi(object)]
pub struct NativeArtifact {
    pub path: String,
    pub size_bytes: f64,
    pub content: Option<Uint8Array>,
    #[napi(ts_type = "'too large' | 'too many'")]
    pub omitted: Option<String>,
}

impl From<Artifact> for NativeArtifact {
    fn from(artifact: Artifact) -> NativeArtifact {
        let (content, omitted) = match artifact.content {
            Ok(bytes) => (Some(bytes.into()), None),
            Err(Omitted::TooLarge) => (None, Some("too large".to_owned())),
            Err(Omitted::TooMany) => (None, Some("too many".to_owned())),
        };
        NativeArtifact { path: artifact.path, size_bytes: artifact.size as f64, content, omitted }
    }
}

#[napi(object)]
pub struct NativePhase {
    #[napi(ts_type = "'connect' | 'prepare_files' | 'exec' | 'collect_artifacts' | 'destroy'")]
    pub name: String,
    pub duration_ms: f64,
}

#[napi(object)]
pub struct NativeRunResult {
    pub exec: NativeExecResult,
    pub image: String,
    pub artifacts: Vec<NativeArtifact>,
    pub phases: Vec<NativePhase>,
}

impl From<RunResult> for NativeRunResult {
    fn from(result: RunResult) -> NativeRunResult {
        let phases = result
            .phases
            .into_iter()
            .map(|(name, took)| NativePhase { name: name.to_owned(), duration_ms: took.as_secs_f64() * 1000.0 });
        NativeRunResult {
            exec: result.exec.into(),
            image: result.image,
            artifacts: result.artifacts.into_iter().map(Into::into).collect(),
            phases: phases.collect(),
        }
    }
}

/// A run whose program somebody listens to. Each of its methods is for one call.
#[napi]
pub struct NativeRunning {
    program: Mutex<Option<oneshot::Receiver<Arc<Process>>>>,
    rest: Mutex<Option<(oneshot::Sender<()>, Outcome)>>,
}

type Outcome = Pin<Box<dyn Future<Output = Result<RunResult>> + Send>>;

impl From<Running> for NativeRunning {
    fn from(running: Running) -> NativeRunning {
        let Running { program, listening, result } = running;
        NativeRunning { program: Some(program).into(), rest: Some((listening, result)).into() }
    }
}

#[napi]
impl NativeRunning {
    /// The program, once it has begun; `null` where it never does, of which the result says why.
    #[napi(ts_return_type = "Promise<NativeProcess | null>")]
    pub fn program<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Option<NativeProcess>>> {
        let program = take(&self.program);
        let begun = async move {
            match program {
                Some(program) => Ok(program.await.ok()),
                None => Ok(None),
            }
        };
        promise(env, begun, |_, process| Ok(process.map(NativeProcess::new)))
    }

    /// What came of it. From now on nobody listens.
    #[napi(ts_return_type = "Promise<NativeRunResult>")]
    pub fn result<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, NativeRunResult>> {
        let rest = take(&self.rest);
        let ended = async move {
            let Some((listening, result)) = rest else { return Err(cofferdam_core::Error::Aborted) };
            drop(listening);
            result.await
        };
        promise(env, ended, |_, result| Ok(result.into()))
    }
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}
