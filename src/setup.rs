//! What an administrator does once, so that ordinary users can have sandboxes without an engine.

use std::path::PathBuf;

use cofferdam_core::Result;
use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;

use crate::promise::{as_is, promise};

#[napi(object)]
pub struct NativeSetup {
    pub helper: String,
    pub profile: Option<String>,
}

#[napi(ts_return_type = "Promise<NativeSetup>")]
pub fn setup_namespaces<'env>(env: &'env Env, root: String) -> napi::Result<PromiseRaw<'env, NativeSetup>> {
    promise(env, async move { set_up(root.into()) }, as_is)
}

#[cfg(target_os = "linux")]
fn set_up(root: PathBuf) -> Result<NativeSetup> {
    let report = cofferdam_core::backend::namespaces::setup(&root)?;
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    Ok(NativeSetup { helper: text(report.helper), profile: report.profile.map(text) })
}

#[cfg(not(target_os = "linux"))]
fn set_up(_: PathBuf) -> Result<NativeSetup> {
    let message = "sandboxes of namespaces are Linux's; use a container engine here";
    Err(cofferdam_core::Error::new(cofferdam_core::ErrorCode::Unsupported, message))
}
