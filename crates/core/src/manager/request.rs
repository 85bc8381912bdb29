//! From an open request to the box it asks for.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_protocol::Lease;

use crate::backend::{BoxSpec, CommandUser};
use crate::events::{Event, EventKind};
use crate::guest::{check_env, check_path};
use crate::host::Host;
use crate::id::random_id;
use crate::key::SessionKey;
use crate::options::{DEFAULT_WORKDIR, Limits, OnPull, OpenRequest, Timeouts};
use crate::sandbox::Sandbox;
use crate::{Error, Result};

/// Checks everything that needs no backend.
pub(super) fn check_request(request: &OpenRequest) -> Result<()> {
    if let Some(workdir) = &request.workdir {
        check_path(workdir)?;
        if !workdir.starts_with('/') || workdir == "/" {
            return Err(Error::invalid(format!("workdir must be an absolute path below /, not {workdir:?}")));
        }
    }
    if request.user.as_deref() == Some("") {
        return Err(Error::invalid("user is empty; leave it out to run as the image's own user"));
    }
    request.packages.check()?;
    let env: Vec<_> = request.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    check_env(&env)
}

/// A session has one image: a caller that names another would be surprised by what it finds.
pub(super) fn check_same_image(request: &OpenRequest, image: &str, sandbox: &Sandbox) -> Result<()> {
    if request.image.is_none() || sandbox.image() == image {
        return Ok(());
    }
    let message = format!(
        "session {} is open with image \"{}\", not \"{image}\"; close it first, or give this one another session name",
        sandbox.key().as_str(),
        sandbox.image()
    );
    Err(Error::invalid(message).with("image", sandbox.image()))
}

/// The box for a request, and the id of its image, which is pulled if need be. Without a key, the box is unclaimed.
pub(super) async fn specify(
    host: &Host,
    request: &OpenRequest,
    key: Option<&SessionKey>,
    image: &str,
    limits: Limits,
    timeouts: Timeouts,
) -> Result<(BoxSpec, String)> {
    let image_id = match host.backend().await?.images() {
        Some(images) => {
            let on_pull = forward_pulls(host, request.on_pull.clone());
            images.prepare(image, request.pull, Some(&on_pull)).await?.id
        }
        None => String::new(),
    };
    let spec = BoxSpec {
        sandbox_id: random_id("sbx_"),
        key: key.cloned(),
        image: image.to_owned(),
        layer: None,
        workdir: request.workdir.clone().unwrap_or_else(|| DEFAULT_WORKDIR.to_owned()),
        user: request.user.clone().map_or(CommandUser::Image, CommandUser::Named),
        env: request.env.clone(),
        labels: request.labels.clone(),
        lease: lease(timeouts),
        limits,
        network: request.network,
        read_only_root: request.read_only_root,
        persist: request.persist,
    };
    Ok((spec, image_id))
}

/// Forwards the progress of a pull to the caller's listener and as events.
pub(super) fn forward_pulls(host: &Host, callers: Option<OnPull>) -> OnPull {
    let events = host.events.clone();
    Arc::new(move |step| {
        events.emit(|| {
            Event::new(EventKind::Pull)
                .with("image", step.image.clone())
                .with("layer", step.layer.clone())
                .with("status", step.status.clone())
                .with("currentBytes", step.current_bytes)
                .with("totalBytes", step.total_bytes)
        });
        if let Some(callers) = &callers {
            callers(step);
        }
    })
}

fn lease(timeouts: Timeouts) -> Lease {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Lease { idle_ms: ms(timeouts.idle), max_ms: ms(timeouts.max_lifetime), orphan_ms: ms(timeouts.orphan) }
}
