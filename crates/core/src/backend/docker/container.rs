//! One container: hardened, with the guest as PID 1, attached before it starts so that the first link costs nothing.

use std::collections::HashMap;
use std::pin::Pin;

use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::models::{
    ContainerCreateBody, ContainerState, ContainerStateStatusEnum, HealthConfig, HostConfig, HostConfigLogConfig,
    ResourcesUlimits,
};
use bollard::query_parameters::{AttachContainerOptions, CreateContainerOptions};
use cofferdam_protocol::GUEST_PATH;
use futures_util::StreamExt;

use super::error::{is_name_taken, status};
use super::obituaries::Death;
use super::stream::byte_stream;
use super::{Engine, data_volume, guest_volume, records};
use crate::backend::{BoxSpec, Creation};
use crate::guest::{ByteStream, HELLO_TIMEOUT};
use crate::options::Limits;
use crate::{Error, ErrorCode, Result};

/// What package managers, servers and the guest itself need; all others are dropped.
const CAPABILITIES: [&str; 9] =
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT"];

/// Open files that PID 1 has room for at least: its links, and a few per command.
const GUEST_FILES: u64 = 4096;

/// Read buffer of a further link; bollard's own default is made for log lines.
const LINK_BUFFER: usize = 128 * 1024;

/// How often a sandbox is tried whose guest does not start: others may be bringing it at the same moment.
const TRIES: usize = 3;

pub(super) async fn create(engine: &Engine, spec: &BoxSpec, runtime: Option<&str>) -> Result<Creation> {
    guest_volume::ensure(engine, &spec.image).await?;
    for _ in 1..TRIES {
        match create_once(engine, spec, runtime).await {
            Err(Failed::Guest(_)) => guest_volume::mend(engine, &spec.image).await?,
            other => return other.map_err(Failed::into_error),
        }
    }
    create_once(engine, spec, runtime).await.map_err(Failed::into_error)
}

enum Failed {
    /// PID 1 could not be executed, or ended without a word: the guest's volume may not be filled.
    Guest(Error),
    Otherwise(Error),
}

impl Failed {
    fn into_error(self) -> Error {
        match self {
            Failed::Guest(error) | Failed::Otherwise(error) => error,
        }
    }
}

async fn create_once(engine: &Engine, spec: &BoxSpec, runtime: Option<&str>) -> Result<Creation, Failed> {
    let options = CreateContainerOptions { name: Some(spec.claim.clone()), ..Default::default() };
    let body = body(engine, spec, runtime).map_err(Failed::Otherwise)?;
    let handle = match engine.client.create_container(Some(options), body).await {
        Ok(created) => created.id,
        Err(error) if is_name_taken(&error) => return Ok(Creation::Taken),
        Err(error) => return Err(Failed::Otherwise(engine.error("create the sandbox", error))),
    };
    engine.obituaries.follow(&engine.client, &handle);
    match start(engine, &handle).await {
        Ok(stream) => Ok(Creation::New { handle, stream }),
        Err(failed) => {
            // Not ours to keep; the first failure is the one to tell.
            let _ = engine.remove(&handle).await;
            Err(failed)
        }
    }
}

async fn start(engine: &Engine, handle: &str) -> Result<ByteStream, Failed> {
    let attach = AttachContainerOptions { stream: true, stdin: true, stdout: true, ..Default::default() };
    let attached = engine.client.attach_container(handle, Some(attach)).await;
    let attached = attached.map_err(|error| Failed::Otherwise(engine.error("attach to the sandbox", error)))?;
    if let Err(error) = engine.client.start_container(handle, None).await {
        let about_guest = error.to_string().contains(GUEST_PATH);
        let error = engine.error("start the sandbox", error);
        return Err(if about_guest { Failed::Guest(error) } else { Failed::Otherwise(error) });
    }
    // Whoever gets the stream waits for the guest's first word too, so that waiting for it here costs nothing.
    let mut output = attached.output.peekable();
    let lost = |message: String| Error::new(ErrorCode::SandboxLost, message);
    match tokio::time::timeout(HELLO_TIMEOUT, Pin::new(&mut output).peek()).await {
        Ok(Some(Ok(_))) => Ok(byte_stream(Box::pin(output), attached.input)),
        Ok(_) => {
            let fate = fate(engine, handle).await;
            Err(Failed::Guest(fate.unwrap_or_else(|| lost("the sandbox ended before its guest said hello".to_owned()))))
        }
        Err(_) => {
            let message = format!("the sandbox's guest said nothing for {} s", HELLO_TIMEOUT.as_secs());
            Err(Failed::Otherwise(lost(message)))
        }
    }
}

/// A further link: `guest link` in the container hands the stream to PID 1.
pub(super) async fn link(engine: &Engine, handle: &str) -> Result<ByteStream> {
    let exec = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        cmd: Some(vec![GUEST_PATH, "link"]),
        user: Some("0:0"),
        ..Default::default()
    };
    let created = match engine.client.create_exec(handle, exec).await {
        Ok(created) => created,
        Err(error) => return Err(lost(engine, handle, error).await),
    };
    let options = StartExecOptions { output_capacity: Some(LINK_BUFFER), ..Default::default() };
    match engine.client.start_exec(&created.id, Some(options)).await {
        Ok(StartExecResults::Attached { output, input }) => Ok(byte_stream(output, input)),
        Ok(StartExecResults::Detached) => Err(Error::new(ErrorCode::Internal, "the engine detached a link")),
        Err(error) => Err(lost(engine, handle, error).await),
    }
}

/// Why there is no way into a container any more.
async fn lost(engine: &Engine, handle: &str, error: bollard::errors::Error) -> Error {
    match fate(engine, handle).await {
        Some(fate) => fate,
        None => engine.error("link to the sandbox", error),
    }
}

/// What has become of a container; `None` while it runs.
pub(super) async fn fate(engine: &Engine, handle: &str) -> Option<Error> {
    let lost = |reason: &str, message: String| {
        Error::new(ErrorCode::SandboxLost, format!("the sandbox is gone: {message}; open() gives a new one"))
            .with("reason", reason)
    };
    let exited =
        |code: i64| lost("exited", format!("its container ended with exit code {code}")).with("exitCode", code);
    let oom = || lost("oom", "it ran out of memory".to_owned());
    let state = match engine.client.inspect_container(handle, None).await {
        Ok(container) => container.state.unwrap_or_default(),
        Err(error) if status(&error) == Some(404) => {
            ContainerState { status: Some(ContainerStateStatusEnum::REMOVING), ..Default::default() }
        }
        Err(error) => return Some(engine.error("look at the sandbox", error)),
    };
    let restarted = engine.obituaries.has_outlived_engine(handle);
    Some(match state {
        ContainerState { paused: Some(true), .. } => {
            Error::new(ErrorCode::Unsupported, "the sandbox's container is paused; unpause it first")
        }
        // Before those below: one that is being removed may still say that it runs.
        ContainerState { status: Some(ContainerStateStatusEnum::REMOVING), .. } if !restarted => {
            match engine.obituaries.of(handle).await {
                Some(Death { oom: true, .. }) => oom(),
                Some(Death { exit_code, .. }) => exited(exit_code),
                None => lost("removed", "its container was removed, or its lease ran out".to_owned()),
            }
        }
        ContainerState { running: Some(true), .. } => return None,
        _ if restarted => lost("engine-restarted", "its engine was restarted".to_owned()),
        ContainerState { oom_killed: Some(true), .. } => oom(),
        ContainerState { exit_code, .. } => exited(exit_code.unwrap_or_default()),
    })
}

pub(super) fn bytes(megabytes: Option<u64>) -> Option<i64> {
    megabytes.map(|count| i64::try_from(count.saturating_mul(1 << 20)).unwrap_or(i64::MAX))
}

/// Engines refuse more processors than they have; the default must work on a small machine.
pub(super) fn nano_cpus(engine: &Engine, limits: &Limits) -> Option<i64> {
    limits.cpus.map(|cpus| (cpus.min(engine.cpus) * 1e9) as i64)
}

pub(super) fn pids(limits: &Limits) -> Option<i64> {
    limits.pids.and_then(|count| i64::try_from(count).ok())
}

fn body(engine: &Engine, spec: &BoxSpec, runtime: Option<&str>) -> Result<ContainerCreateBody> {
    let memory = bytes(spec.limits.memory_mb);
    // The guest gives each command the exact number; it needs some for itself.
    let open_files = spec.limits.open_files.map(|count| i64::try_from(count.max(GUEST_FILES)).unwrap_or(i64::MAX));
    let open_files = open_files.map(|count| ResourcesUlimits {
        name: Some("nofile".to_owned()),
        soft: Some(count),
        hard: Some(count),
    });
    let mut mounts = vec![guest_volume::mount(engine)?];
    if spec.persist {
        mounts.push(data_volume::mount(spec));
    }
    let tmpfs = spec.read_only_root.then(|| {
        // Both together stay below the memory limit: what is written there is memory that nobody can be killed for.
        let size = memory.map(|bytes| format!(",size={}", bytes / 5 * 2)).unwrap_or_default();
        let writable = |path: &str, size: &str| (path.to_owned(), format!("exec,mode=1777{size}"));
        let mut folders = HashMap::from([writable("/tmp", &size)]);
        if !spec.persist {
            // Here a limit of the workspace is the kernel's to keep.
            let limit = bytes(spec.limits.workspace_mb).map(|bytes| format!(",size={bytes}"));
            folders.extend([writable(&spec.setup.workdir, &limit.unwrap_or_else(|| size.clone()))]);
        }
        folders
    });
    Ok(ContainerCreateBody {
        image: Some(spec.root().to_owned()),
        entrypoint: Some(vec![GUEST_PATH.to_owned()]),
        cmd: Some(vec!["init".to_owned(), spec.setup.to_argument()]),
        env: Some(spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        // The guest is root and gives commands their own user.
        user: Some("0:0".to_owned()),
        working_dir: Some("/".to_owned()),
        labels: Some(records::labels(spec)),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        open_stdin: Some(true),
        // The end of the first link ends PID 1's input: that is how it learns that its host is gone.
        stdin_once: Some(true),
        stop_signal: Some("SIGTERM".to_owned()),
        // Then the runtime makes a network namespace with nothing but the loopback, and the engine none, which takes as long
        // as all the rest of a start. It writes no /etc/hosts either: the guest does, where it can. What other runtimes
        // than the engine's own make of that is not known.
        network_disabled: Some(!spec.network && !spec.read_only_root && runtime.is_none()),
        healthcheck: Some(HealthConfig { test: Some(vec!["NONE".to_owned()]), ..Default::default() }),
        host_config: Some(HostConfig {
            mounts: Some(mounts),
            network_mode: Some(if spec.network { "bridge" } else { "none" }.to_owned()),
            cap_drop: Some(vec!["ALL".to_owned()]),
            cap_add: Some(CAPABILITIES.map(str::to_owned).to_vec()),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            pids_limit: pids(&spec.limits),
            memory,
            // The same as memory: no swap.
            memory_swap: memory,
            nano_cpus: nano_cpus(engine, &spec.limits),
            ulimits: open_files.map(|limit| vec![limit]),
            readonly_rootfs: Some(spec.read_only_root),
            tmpfs,
            auto_remove: Some(true),
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            init: Some(false),
            runtime: runtime.map(str::to_owned),
            ..Default::default()
        }),
        ..Default::default()
    })
}
