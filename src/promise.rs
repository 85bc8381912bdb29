//! One way from a core call to a promise.
//!
//! `async fn` methods would lose the error's code, so the error is built here, on the JavaScript thread, with `code` and
//! `details` on it. TypeScript makes the public error of it, with the caller's stack.

use std::pin::Pin;

use cofferdam_core::{Error, Result};
use napi::bindgen_prelude::{JsValue, PromiseRaw, ToNapiValue};
use napi::{Env, Status, sys};

/// What is left to do on the JavaScript thread once a call has its outcome.
type Settle = Box<dyn FnOnce(&Env) -> napi::Result<sys::napi_value> + Send>;

/// Runs `call` on the runtime; its value becomes `convert`'s on the JavaScript thread.
///
/// Every call is one and the same type to the runtime: tokio's and napi's code for a task is made once, and not once for each
/// of our methods.
pub(crate) fn promise<'env, T, V>(
    env: &'env Env,
    call: impl Future<Output = Result<T>> + Send + 'static,
    convert: impl FnOnce(&'env Env, T) -> napi::Result<V> + Send + 'static,
) -> napi::Result<PromiseRaw<'env, V>>
where
    T: Send + 'static,
    V: ToNapiValue,
{
    let settled = async move {
        let outcome = call.await;
        let settle: Settle = Box::new(move |env| {
            // SAFETY: values made here go to JavaScript before the scope of this environment ends; the type of the promise
            // only names a lifetime that no value outlives.
            let env = unsafe { std::mem::transmute::<&Env, &'env Env>(env) };
            let value = convert(env, outcome.map_err(|error| rejection(env, &error))?)?;
            // SAFETY: this is the JavaScript thread, and the environment is the one that napi gave us.
            unsafe { V::to_napi_value(env.raw(), value) }
        });
        Ok(settle)
    };
    spawn(env, Box::pin(settled)).map(|promise| PromiseRaw::new(env.raw(), promise))
}

fn spawn(
    env: &Env,
    settled: Pin<Box<dyn Future<Output = napi::Result<Settle>> + Send>>,
) -> napi::Result<sys::napi_value> {
    env.spawn_future_with_callback(settled, |env, settle| settle(env)).map(|promise| promise.raw())
}

/// For values that need no conversion.
pub(crate) fn as_is<T>(_: &Env, value: T) -> napi::Result<T> {
    Ok(value)
}

fn rejection(env: &Env, error: &Error) -> napi::Error {
    reject(env, error).unwrap_or_else(|failure| failure)
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
