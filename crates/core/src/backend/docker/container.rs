//! One container: hardened, with the guest as PID 1, attached before it starts so that the first link costs nothing.

use std::collections::HashMap;
use std::pin::Pin;

use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::models::{
    ContainerCreateBody, ContainerState, ContainerStateStatusEnum, HealthConfig, HostConfig, HostConfigLogConfig,
    ResourcesUlimits,
};
use bollard::query_parameters::{AttachContainerOptions, CreateContainerOptions};
use cofferdam_protocol::{GUEST_OPEN_FILES, GUEST_PATH, memory_share};
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;

use super::error::{is_name_taken, status};
use super::exit_events::Exit;
use super::stream::byte_stream;
use super::{Engine, guest_volume, records, workspaces};
use crate::backend::exit::exited;
use crate::backend::{BoxSpec, Creation};
use crate::guest::{ByteStream, HELLO_TIMEOUT, setup_bytes};
use crate::id::random_id;
use crate::options::Limits;
use crate::{Error, ErrorCode, Result};

/// What package managers, servers and the guest itself need; all others are dropped.
const CAPABILITIES: [&str; 9] =
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT"];

/// Read buffer of an additional link; bollard's default is made for log lines.
const LINK_BUFFER: usize = 128 * 1024;

/// Attempts to create a sandbox whose guest does not start: another program may be uploading it at this moment.
const TRIES: usize = 3;

/// A container to create.
pub(super) struct Order<'a> {
    pub(super) spec: &'a BoxSpec,
    /// The user that the image names.
    pub(super) image_user: Option<String>,
    /// An OCI runtime other than the engine's own.
    pub(super) runtime: Option<&'a str>,
}

pub(super) async fn create(engine: &Engine, order: &Order<'_>) -> Result<Creation> {
    let image = &order.spec.image;
    guest_volume::ensure(engine, image).await?;
    for _ in 1..TRIES {
        match create_once(engine, order).await {
            Err(Failed::Guest(_)) => guest_volume::mend(engine, image).await?,
            other => return other.map_err(Failed::into_error),
        }
    }
    create_once(engine, order).await.map_err(Failed::into_error)
}

enum Failed {
    /// PID 1 could not be executed, or exited silently: the guest's volume may be incomplete.
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

async fn create_once(engine: &Engine, order: &Order<'_>) -> Result<Creation, Failed> {
    // The engine keeps names unique: the name of a claimed container is its claim.
    let claim = order.spec.key.as_ref().map(|key| key.claim());
    let name = claim.unwrap_or_else(|| random_id(records::UNCLAIMED));
    let options = CreateContainerOptions { name: Some(name), ..Default::default() };
    let body = body(engine, order).map_err(Failed::Otherwise)?;
    let setup = setup_bytes(&order.spec.setup(order.image_user.clone())).map_err(Failed::Otherwise)?;
    let handle = match engine.client.create_container(Some(options), body).await {
        Ok(created) => created.id,
        Err(error) if is_name_taken(&error) => return Ok(Creation::Taken),
        Err(error) => return Err(Failed::Otherwise(engine.error("create the sandbox", error))),
    };
    engine.exits.follow(&engine.client, &handle);
    match start(engine, &handle, &setup).await {
        Ok(stream) => Ok(Creation::New { handle, stream }),
        Err(failed) => {
            // Report the first failure, not one of the clean-up.
            let _ = engine.remove(&handle).await;
            Err(failed)
        }
    }
}

async fn start(engine: &Engine, handle: &str, setup: &[u8]) -> Result<ByteStream, Failed> {
    let attach = AttachContainerOptions { stream: true, stdin: true, stdout: true, ..Default::default() };
    let attached = engine.client.attach_container(handle, Some(attach)).await;
    let mut attached = attached.map_err(|error| Failed::Otherwise(engine.error("attach to the sandbox", error)))?;
    if let Err(error) = engine.client.start_container(handle, None).await {
        let about_guest = error.to_string().contains(GUEST_PATH);
        let error = engine.error("start the sandbox", error);
        return Err(if about_guest { Failed::Guest(error) } else { Failed::Otherwise(error) });
    }
    // The caller would wait for the guest's hello anyway, so waiting here costs nothing.
    let mut output = attached.output.peekable();
    let hello = async {
        // A guest that is gone takes no setup, and says no hello either.
        let _ = attached.input.write_all(setup).await;
        let _ = attached.input.flush().await;
        Pin::new(&mut output).peek().await.is_some_and(Result::is_ok)
    };
    let lost = |message: String| Error::new(ErrorCode::SandboxLost, message);
    match tokio::time::timeout(HELLO_TIMEOUT, hello).await {
        Ok(true) => Ok(byte_stream(Box::pin(output), attached.input)),
        Ok(false) => {
            let fate = fate(engine, handle).await;
            Err(Failed::Guest(fate.unwrap_or_else(|| lost("the sandbox ended before its guest said hello".to_owned()))))
        }
        Err(_) => {
            let message = format!("the sandbox's guest said nothing for {} s", HELLO_TIMEOUT.as_secs());
            Err(Failed::Otherwise(lost(message)))
        }
    }
}

/// An additional link: `guest link` in the container passes the stream to PID 1.
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
        Err(error) => return Err(lost(engine, handle, "link to the sandbox", error).await),
    };
    let options = StartExecOptions { output_capacity: Some(LINK_BUFFER), ..Default::default() };
    match engine.client.start_exec(&created.id, Some(options)).await {
        Ok(StartExecResults::Attached { output, input }) => Ok(byte_stream(output, input)),
        Ok(StartExecResults::Detached) => Err(Error::new(ErrorCode::Internal, "the engine detached a link")),
        Err(error) => Err(lost(engine, handle, "link to the sandbox", error).await),
    }
}

/// Why something failed: the container is gone, or else the engine's own error.
pub(super) async fn lost(engine: &Engine, handle: &str, doing: &str, error: bollard::errors::Error) -> Error {
    fate(engine, handle).await.unwrap_or_else(|| engine.error(doing, error))
}

/// Why a container is gone; `None` while it runs.
pub(super) async fn fate(engine: &Engine, handle: &str) -> Option<Error> {
    let state = match engine.client.inspect_container(handle, None).await {
        Ok(container) => container.state.unwrap_or_default(),
        Err(error) if status(&error) == Some(404) => {
            ContainerState { status: Some(ContainerStateStatusEnum::REMOVING), ..Default::default() }
        }
        Err(error) => return Some(engine.error("look at the sandbox", error)),
    };
    let restarted = engine.exits.has_outlived_engine(handle);
    Some(match state {
        ContainerState { paused: Some(true), .. } => {
            Error::new(ErrorCode::Unsupported, "the sandbox's container is paused; unpause it first")
        }
        // Checked first: a container that is being removed may still be reported as running.
        ContainerState { status: Some(ContainerStateStatusEnum::REMOVING), .. } if !restarted => {
            match engine.exits.of(handle).await {
                Some(Exit { exit_code, oom }) => exited("its container", exit_code, oom),
                None => Error::gone("removed", "its container was removed, or its lease ran out"),
            }
        }
        ContainerState { running: Some(true), .. } => return None,
        _ if restarted => Error::gone("engine-restarted", "its engine was restarted"),
        ContainerState { exit_code, oom_killed, .. } => {
            exited("its container", exit_code.unwrap_or_default(), oom_killed == Some(true))
        }
    })
}

pub(super) fn bytes(megabytes: Option<u64>) -> Option<i64> {
    megabytes.map(|count| i64::try_from(count.saturating_mul(1 << 20)).unwrap_or(i64::MAX))
}

/// Engines reject more processors than they have; the default must work on a small machine.
pub(super) fn nano_cpus(engine: &Engine, limits: &Limits) -> Option<i64> {
    limits.cpus.map(|cpus| (cpus.min(engine.cpus) * 1e9) as i64)
}

pub(super) fn pids(limits: &Limits) -> Option<i64> {
    limits.pids.and_then(|count| i64::try_from(count).ok())
}

fn body(engine: &Engine, order: &Order<'_>) -> Result<ContainerCreateBody> {
    let Order { spec, runtime, .. } = order;
    let memory = bytes(spec.limits.memory_mb);
    // The guest sets the exact number for each command; it needs some for itself.
    let open_files = spec.limits.open_files.map(|count| i64::try_from(count.max(GUEST_OPEN_FILES)).unwrap_or(i64::MAX));
    let open_files = open_files.map(|count| ResourcesUlimits {
        name: Some("nofile".to_owned()),
        soft: Some(count),
        hard: Some(count),
    });
    let mounts = [guest_volume::mount(engine)?].into_iter().chain(workspaces::mount(spec)).collect();
    let tmpfs = spec.read_only_root.then(|| {
        let size = memory.map(|bytes| format!(",size={}", memory_share(bytes as u64))).unwrap_or_default();
        let writable = |path: &str, size: &str| (path.to_owned(), format!("exec,mode=1777{size}"));
        let mut folders = HashMap::from([writable("/tmp", &size)]);
        if !spec.persist {
            // The kernel enforces the workspace limit here.
            let limit = bytes(spec.limits.workspace_mb).map(|bytes| format!(",size={bytes}"));
            folders.extend([writable(&spec.workdir, &limit.unwrap_or_else(|| size.clone()))]);
        }
        folders
    });
    Ok(ContainerCreateBody {
        image: Some(spec.root().to_owned()),
        entrypoint: Some(vec![GUEST_PATH.to_owned()]),
        cmd: Some(vec!["init".to_owned()]),
        env: Some(spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        // The guest is root and gives commands their own user.
        user: Some("0:0".to_owned()),
        working_dir: Some("/".to_owned()),
        labels: Some(records::labels(spec)),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        open_stdin: Some(true),
        // When the first link ends, PID 1's input ends: it learns that its host is gone.
        stdin_once: Some(true),
        stop_signal: Some("SIGTERM".to_owned()),
        // The runtime then creates a network namespace with only a loopback device. The engine sets up no network, which would
        // take as long as the rest of the start, and writes no /etc/hosts; the guest does, where it can. Untested with other
        // runtimes than the engine's own.
        network_disabled: Some(!spec.network.is_on() && !spec.read_only_root && runtime.is_none()),
        healthcheck: Some(HealthConfig { test: Some(vec!["NONE".to_owned()]), ..Default::default() }),
        host_config: Some(HostConfig {
            mounts: Some(mounts),
            network_mode: Some(if spec.network.is_on() { "bridge" } else { "none" }.to_owned()),
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
