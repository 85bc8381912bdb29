//! One way from a core call to a promise.
//!
//! `async fn` methods would lose the error's code, so the error is built here, on the JavaScript thread, with `code` and
//! `details` on it. TypeScript makes the public error of it, with the caller's stack.

use cofferdam_core::{Error, Result};
use napi::bindgen_prelude::{JsValue, PromiseRaw, ToNapiValue};
use napi::{Env, Status};

/// Runs `call` on the runtime; its value becomes `convert`'s on the JavaScript thread.
pub(crate) fn promise<'env, T, V>(
    env: &'env Env,
    call: impl Future<Output = Result<T>> + Send + 'static,
    convert: impl FnOnce(&'env Env, T) -> napi::Result<V> + 'static,
) -> napi::Result<PromiseRaw<'env, V>>
where
    T: Send + 'static,
    V: ToNapiValue,
{
    env.spawn_future_with_callback(async move { Ok(call.await) }, move |env, outcome| match outcome {
        Ok(value) => convert(env, value),
        Err(error) => Err(reject(env, &error)?),
    })
}

/// For values that need no conversion.
pub(crate) fn as_is<T>(_: &Env, value: T) -> napi::Result<T> {
    Ok(value)
}

fn reject(env: &Env, error: &Error) -> napi::Result<napi::Error> {
    let mut object = env.create_error(napi::Error::new(Status::GenericFailure, error.to_string()))?;
    let (code, details) = match error {
        Error::Coded { code, details, .. } => (code.as_str(), serde_json::Value::Object(details.clone()).to_string()),
        Error::Aborted => ("ABORTED", "{}".to_owned()),
    };
    object.set("code", code)?;
    object.set("details", details)?;
    Ok(object.to_unknown().into())
}
