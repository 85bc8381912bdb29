//! A sandbox: its commands. Its files are in [`crate::files`], its way to the object store in [`crate::store`].

use std::sync::Arc;

use cofferdam_core::{
    Command, ExecRequest, ExecResult, Killed, Manager, PortForward, ProcessInfo, Sandbox, SpawnRequest, Stats,
    TerminalSize, session_name,
};
use napi::Env;
use napi::bindgen_prelude::{Either, PromiseRaw, Uint8Array};
use napi_derive::napi;

use crate::cancel::{Cancel, token};
use crate::convert::{bytes, command, millis, text};
use crate::execution::NativeExecution;
use crate::manager::NativeSandboxInfo;
use crate::options::NativeLimits;
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
    pub log_bytes: Option<f64>,
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
            terminal: None,
            log_bytes: native.log_bytes.map(|bytes| bytes as u64),
        }
    }
}

#[napi(object)]
pub struct NativeKilled {
    pub pid: u32,
    pub command: String,
}

impl From<Killed> for NativeKilled {
    fn from(killed: Killed) -> NativeKilled {
        NativeKilled { pid: killed.pid, command: killed.command }
    }
}

#[napi(object)]
pub struct NativeStats {
    pub cpu_ms: f64,
    pub memory_bytes: f64,
    pub memory_peak_bytes: f64,
    pub pids: f64,
    pub io_read_bytes: f64,
    pub io_write_bytes: f64,
    pub workspace_bytes: f64,
    pub oom_kills: f64,
}

impl From<Stats> for NativeStats {
    fn from(stats: Stats) -> NativeStats {
        NativeStats {
            cpu_ms: stats.cpu_us as f64 / 1000.0,
            memory_bytes: stats.memory_bytes as f64,
            memory_peak_bytes: stats.memory_peak_bytes as f64,
            pids: stats.pids as f64,
            io_read_bytes: stats.io_read_bytes as f64,
            io_write_bytes: stats.io_write_bytes as f64,
            workspace_bytes: stats.workspace_bytes as f64,
            oom_kills: stats.oom_kills as f64,
        }
    }
}

#[napi(object)]
pub struct NativeTerminalSize {
    pub cols: u16,
    pub rows: u16,
}

impl From<NativeTerminalSize> for TerminalSize {
    fn from(size: NativeTerminalSize) -> TerminalSize {
        TerminalSize { cols: size.cols, rows: size.rows }
    }
}

/// A port of the sandbox on the host's loopback.
#[napi]
pub struct NativePortForward {
    forward: PortForward,
}

#[napi]
impl NativePortForward {
    #[napi(getter)]
    pub fn host_port(&self) -> u16 {
        self.forward.host_port()
    }

    #[napi]
    pub fn close(&self) {
        self.forward.close();
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
    pub killed: Vec<NativeKilled>,
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
            killed: result.killed.into_iter().map(Into::into).collect(),
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
    manager: Manager,
    pub(crate) sandbox: Arc<Sandbox>,
    created: bool,
}

impl NativeSandbox {
    pub(crate) fn new(manager: Manager, sandbox: Arc<Sandbox>, created: bool) -> NativeSandbox {
        NativeSandbox { manager, sandbox, created }
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
        self.sandbox.key().as_str()
    }

    /// The session's name, as `open()` takes it.
    #[napi(getter)]
    pub fn session(&self) -> String {
        session_name(self.sandbox.key().as_str())
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

    /// Starts with the first read.
    #[napi]
    pub fn exec_streaming(
        &self,
        command: NativeCommand,
        stdin: Option<Uint8Array>,
        cancel: Option<&Cancel>,
    ) -> NativeExecution {
        let stdin = stdin.as_ref().map(bytes);
        let request = ExecRequest { spawn: command.into(), stdin, cancel: token(cancel) };
        NativeExecution::new(self.sandbox.exec_streaming(request))
    }

    #[napi(ts_return_type = "Promise<NativeProcess>")]
    pub fn spawn<'env>(&self, env: &'env Env, command: NativeCommand) -> napi::Result<PromiseRaw<'env, NativeProcess>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.spawn(command.into()).await }, |_, process| Ok(NativeProcess::new(process)))
    }

    /// A process on a terminal; an empty command is the user's own shell.
    #[napi(ts_return_type = "Promise<NativeProcess>")]
    pub fn terminal<'env>(
        &self,
        env: &'env Env,
        command: NativeCommand,
        size: NativeTerminalSize,
    ) -> napi::Result<PromiseRaw<'env, NativeProcess>> {
        let sandbox = Arc::clone(&self.sandbox);
        let mut request: SpawnRequest = command.into();
        request.terminal = Some(size.into());
        if matches!(&request.command, Command::Program(words) if words.is_empty()) {
            request.command = Command::UserShell;
        }
        promise(env, async move { sandbox.spawn(request).await }, |_, process| Ok(NativeProcess::new(process)))
    }

    #[napi(ts_return_type = "Promise<NativePortForward>")]
    pub fn forward<'env>(
        &self,
        env: &'env Env,
        port: u16,
        host_port: Option<u16>,
    ) -> napi::Result<PromiseRaw<'env, NativePortForward>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.forward(port, host_port).await }, |_, forward| {
            Ok(NativePortForward { forward })
        })
    }

    #[napi(ts_return_type = "Promise<NativeStats>")]
    pub fn stats<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, NativeStats>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.stats().await }, |_, stats| Ok(stats.into()))
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
    pub fn set_limits<'env>(&self, env: &'env Env, limits: NativeLimits) -> napi::Result<PromiseRaw<'env, ()>> {
        let (manager, sandbox) = (self.manager.clone(), Arc::clone(&self.sandbox));
        promise(env, async move { manager.set_limits(&sandbox, limits.into()).await }, as_is)
    }

    /// 0 means never.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn extend<'env>(
        &self,
        env: &'env Env,
        idle_timeout_ms: Option<f64>,
        max_lifetime_ms: Option<f64>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let sandbox = Arc::clone(&self.sandbox);
        let (idle, max_lifetime) = (idle_timeout_ms.map(millis), max_lifetime_ms.map(millis));
        promise(env, async move { sandbox.extend(idle, max_lifetime).await }, as_is)
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn stop<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.stop().await }, as_is)
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn start<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.start().await }, as_is)
    }

    /// Says what shall become of a persistent workspace; without, it stays.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn close<'env>(&self, env: &'env Env, keep_data: Option<bool>) -> napi::Result<PromiseRaw<'env, ()>> {
        let sandbox = Arc::clone(&self.sandbox);
        let close = async move {
            match keep_data {
                Some(keep) => sandbox.close_data(keep).await,
                None => sandbox.close().await,
            }
        };
        promise(env, close, as_is)
    }
}
