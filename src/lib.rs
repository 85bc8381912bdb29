//! The binding between TypeScript and the core. DTOs in, core calls, promises out: no decisions live here.
//!
//! Each native class has one file, and each DTO stands beside the class that takes or gives it. Defaults and checks of
//! shape are TypeScript's; checks of meaning are the core's.

#![allow(missing_docs, reason = "the generated declarations are internal; ts/ documents the public surface")]

mod cancel;
mod convert;
mod events;
mod execution;
mod files;
mod manager;
mod options;
mod process;
mod promise;
mod pull;
mod run;
mod sandbox;
mod search;
// Not behind a class: only what is public counts as used where nothing is exported to JavaScript, as in tests.
pub mod setup;
mod store;
mod transfer;
mod watch;

use napi_derive::napi;

/// This build's version, which must be the package's own.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
