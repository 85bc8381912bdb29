//! A sandbox: its commands. Its files are in [`crate::files`].

use std::sync::Arc;

use cofferdam_core::{ExecRequest, ExecResult, ProcessInfo, Sandbox, SpawnRequest};
use napi::Env;
use napi::bindgen_prelude::{Either, PromiseRaw, Uint8Array};
use napi_derive::napi;

use crate::cancel::{Cancel, token};
use crate::convert::{bytes, command, millis, text};
use crate::manager::NativeSandboxInfo;
use crate::process::NativeProcess;
use crate::promise::{as_is, promise};

#[napi(object)]
pub struct NativeCommand {
    pub command: Either<String, Vec<String>>,
    pub cwd: Option<String>,
    /// Name, value, name, value…
    pub env: Vec<String>,
    pub user: Option<String>,
    pub timeout_ms: Option<f64>,
    pub kill_grace_ms: f64,
    pub max_output_bytes: f64,
    pub detached: bool,
    pub keep_stdin: bool,
}

impl From<NativeCommand> for SpawnRequest {
    fn from(native: NativeCommand) -> SpawnRequest {
        let mut words = native.env.into_iter();
        let mut env = Vec::new();
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            env.push((name, value));
        }
        SpawnRequest {
            command: command(native.command),
            cwd: native.cwd,
            env,
            user: native.user,
            timeout: native.timeout_ms.map(millis),
            kill_grace: millis(native.kill_grace_ms),
            max_output: native.max_output_bytes as usize,
            detached: native.detached,
            keep_stdin: native.keep_stdin,
        }
    }
}

#[napi(object)]
pub struct NativeExecResult {
    pub exec_id: String,
    pub exit_code: u32,
    pub signal: Option<String>,
    pub stdout: String,
    pub stderr: String,
    pub duration_ms: f64,
    pub timed_out: bool,
    pub oom_killed: bool,
    pub stdout_truncated: bool,
    pub stderr_truncated: bool,
}

impl From<ExecResult> for NativeExecResult {
    fn from(result: ExecResult) -> NativeExecResult {
        NativeExecResult {
            exec_id: result.exec_id,
            exit_code: result.exit_code.into(),
            signal: result.signal,
            stdout: text(result.stdout),
            stderr: text(result.stderr),
            duration_ms: result.duration.as_micros() as f64 / 1000.0,
            timed_out: result.timed_out,
            oom_killed: result.oom_killed,
            stdout_truncated: result.stdout_truncated,
            stderr_truncated: result.stderr_truncated,
        }
    }
}

#[napi(object)]
pub struct NativeProcessInfo {
    pub exec_id: String,
    pub pid: u32,
    pub command: String,
    pub age_ms: f64,
    pub exit_code: Option<u32>,
}

impl From<ProcessInfo> for NativeProcessInfo {
    fn from(info: ProcessInfo) -> NativeProcessInfo {
        NativeProcessInfo {
            exec_id: info.exec_id,
            pid: info.pid,
            command: info.command,
            age_ms: info.age_ms as f64,
            exit_code: info.exit.map(|exit| exit.code.into()),
        }
    }
}

#[napi]
pub struct NativeSandbox {
    pub(crate) sandbox: Arc<Sandbox>,
    created: bool,
}

impl NativeSandbox {
    pub(crate) fn new(sandbox: Arc<Sandbox>, created: bool) -> NativeSandbox {
        NativeSandbox { sandbox, created }
    }
}

#[napi]
impl NativeSandbox {
    #[napi(getter)]
    pub fn id(&self) -> &str {
        self.sandbox.id()
    }

    #[napi(getter)]
    pub fn key(&self) -> &str {
        self.sandbox.key()
    }

    #[napi(getter)]
    pub fn image(&self) -> &str {
        self.sandbox.image()
    }

    #[napi(getter)]
    pub fn workdir(&self) -> &str {
        self.sandbox.workdir()
    }

    #[napi(getter)]
    pub fn created(&self) -> bool {
        self.created
    }

    #[napi(ts_return_type = "Promise<NativeExecResult>")]
    pub fn exec<'env>(
        &self,
        env: &'env Env,
        command: NativeCommand,
        stdin: Option<Uint8Array>,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeExecResult>> {
        let sandbox = Arc::clone(&self.sandbox);
        let stdin = stdin.as_ref().map(bytes);
        let request = ExecRequest { spawn: command.into(), stdin, cancel: token(cancel) };
        promise(env, async move { sandbox.exec(request).await }, |_, result| Ok(result.into()))
    }

    #[napi(ts_return_type = "Promise<NativeProcess>")]
    pub fn spawn<'env>(&self, env: &'env Env, command: NativeCommand) -> napi::Result<PromiseRaw<'env, NativeProcess>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.spawn(command.into()).await }, |_, process| Ok(NativeProcess::new(process)))
    }

    #[napi(ts_return_type = "Promise<NativeProcess>")]
    pub fn process<'env>(&self, env: &'env Env, exec_id: String) -> napi::Result<PromiseRaw<'env, NativeProcess>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.process(&exec_id).await }, |_, process| Ok(NativeProcess::new(process)))
    }

    #[napi(ts_return_type = "Promise<NativeProcessInfo[]>")]
    pub fn processes<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Vec<NativeProcessInfo>>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.processes().await }, |_, list| Ok(list.into_iter().map(Into::into).collect()))
    }

    #[napi(ts_return_type = "Promise<NativeSandboxInfo>")]
    pub fn info<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, NativeSandboxInfo>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.info().await }, |_, record| Ok(record.into()))
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn close<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.close().await }, as_is)
    }
}
