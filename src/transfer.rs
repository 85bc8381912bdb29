//! Whole trees between the host and a sandbox.

use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_core::{OnProgress, Progress, Skipped, TransferReport, TransferRequest};
use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;

use crate::cancel::{Cancel, token, unless};
use crate::convert::text;
use crate::promise::promise;
use crate::sandbox::NativeSandbox;

#[napi(object)]
pub struct NativeTransfer {
    pub host_path: String,
    pub path: String,
    pub exclude: Vec<String>,
    pub gitignore: bool,
    pub sync: bool,
}

impl From<NativeTransfer> for TransferRequest {
    fn from(transfer: NativeTransfer) -> TransferRequest {
        TransferRequest {
            host_path: PathBuf::from(transfer.host_path),
            path: transfer.path,
            exclude: transfer.exclude,
            gitignore: transfer.gitignore,
            sync: transfer.sync,
            on_progress: None,
        }
    }
}

#[napi(object)]
pub struct NativeProgress {
    pub files: f64,
    pub bytes: f64,
    pub total_bytes: Option<f64>,
    pub path: String,
}

impl From<Progress> for NativeProgress {
    fn from(progress: Progress) -> NativeProgress {
        NativeProgress {
            files: progress.files as f64,
            bytes: progress.bytes as f64,
            total_bytes: progress.total_bytes.map(|bytes| bytes as f64),
            path: text(progress.path),
        }
    }
}

#[napi(object)]
pub struct NativeSkipped {
    pub path: String,
    pub reason: String,
}

impl From<Skipped> for NativeSkipped {
    fn from(skipped: Skipped) -> NativeSkipped {
        NativeSkipped { path: text(skipped.path), reason: skipped.reason }
    }
}

#[napi(object)]
pub struct NativeTransferReport {
    pub files: f64,
    pub dirs: f64,
    pub links: f64,
    pub bytes: f64,
    pub skipped: Vec<NativeSkipped>,
    pub duration_ms: f64,
}

impl From<TransferReport> for NativeTransferReport {
    fn from(report: TransferReport) -> NativeTransferReport {
        NativeTransferReport {
            files: report.files as f64,
            dirs: report.dirs as f64,
            links: report.links as f64,
            bytes: report.bytes as f64,
            skipped: report.skipped.into_iter().map(Into::into).collect(),
            duration_ms: report.duration.as_secs_f64() * 1000.0,
        }
    }
}

type OnNativeProgress = ThreadsafeFunction<NativeProgress, (), NativeProgress, napi::Status, false, true>;

fn request(transfer: NativeTransfer, on_progress: Option<OnNativeProgress>) -> TransferRequest {
    let on_progress = on_progress.map(|callback| -> OnProgress {
        Arc::new(move |progress| {
            callback.call(progress.into(), ThreadsafeFunctionCallMode::NonBlocking);
        })
    });
    TransferRequest { on_progress, ..transfer.into() }
}

#[napi]
impl NativeSandbox {
    #[napi(ts_return_type = "Promise<NativeTransferReport>")]
    pub fn upload<'env>(
        &self,
        env: &'env Env,
        transfer: NativeTransfer,
        #[napi(ts_arg_type = "((progress: NativeProgress) => void) | null | undefined")] on_progress: Option<
            OnNativeProgress,
        >,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeTransferReport>> {
        let (sandbox, request) = (Arc::clone(&self.sandbox), request(transfer, on_progress));
        let call = async move { sandbox.upload(&request).await };
        promise(env, unless(token(cancel), call), |_, report| Ok(report.into()))
    }

    #[napi(ts_return_type = "Promise<NativeTransferReport>")]
    pub fn download<'env>(
        &self,
        env: &'env Env,
        transfer: NativeTransfer,
        #[napi(ts_arg_type = "((progress: NativeProgress) => void) | null | undefined")] on_progress: Option<
            OnNativeProgress,
        >,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeTransferReport>> {
        let (sandbox, request) = (Arc::clone(&self.sandbox), request(transfer, on_progress));
        let call = async move { sandbox.download(&request).await };
        promise(env, unless(token(cancel), call), |_, report| Ok(report.into()))
    }
}
