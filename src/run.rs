//! One program in a sandbox of its own.

use cofferdam_core::{Artifact, Omitted, RunRequest, RunResult, Runtime};
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

use crate::cancel::{Cancel, token};
use crate::convert::millis;
use crate::options::NativeOpen;
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
