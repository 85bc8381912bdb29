//! The guest on the engine: one named volume per guest version, filled once through the archive API, mounted read-only
//! into every sandbox. No bind mount, so a remote engine is no different from a local one.
//!
//! A volume that exists is taken to be filled. Where that is not so (its maker died on the way, or is still at it), no
//! sandbox starts in it, and `container::create` fills it again. Any number of programs may do so at once: the guest
//! appears under its name only when it is whole.

use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, MountVolumeOptions, VolumeCreateRequest};
use bollard::query_parameters::UploadToContainerOptions;
use cofferdam_protocol::GUEST_DIR;

use super::Engine;
use super::error::status;
use super::records;
use crate::guest::{GuestBinary, guest_binary};
use crate::id::random_id;
use crate::{Error, ErrorCode, Result};

fn binary(engine: &Engine) -> Result<GuestBinary> {
    let arch = engine.arch.ok_or_else(|| {
        let message = format!("sandboxes run on x64 and arm64 engines; this one is {}", engine.arch_name);
        Error::new(ErrorCode::Unsupported, message)
    })?;
    guest_binary(arch)
}

fn volume_name(hash: &str) -> String {
    format!("cofferdam-guest-{hash}")
}

/// The volume of this version.
pub(super) fn current(engine: &Engine) -> Result<String> {
    Ok(volume_name(binary(engine)?.hash))
}

/// The mount that brings the guest into a sandbox.
pub(super) fn mount(engine: &Engine) -> Result<Mount> {
    Ok(volume_mount(&current(engine)?, true))
}

fn volume_mount(volume: &str, read_only: bool) -> Mount {
    Mount {
        target: Some(GUEST_DIR.to_owned()),
        source: Some(volume.to_owned()),
        typ: Some(MountType::VOLUME),
        read_only: Some(read_only),
        volume_options: Some(MountVolumeOptions { no_copy: Some(true), ..Default::default() }),
        ..Default::default()
    }
}

/// Makes sure that the volume is there; asks the engine only once.
pub(super) async fn ensure(engine: &Engine, image: &str) -> Result<()> {
    if *engine.guest_ready.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
        return Ok(());
    }
    match engine.client.inspect_volume(&current(engine)?).await {
        Ok(_) => {}
        Err(error) if status(&error) == Some(404) => fill(engine, image).await?,
        Err(error) => return Err(engine.error("look for the guest's volume", error)),
    }
    *engine.guest_ready.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = true;
    Ok(())
}

/// Puts the guest into the volume, by way of a container that is never started.
pub(super) async fn fill(engine: &Engine, image: &str) -> Result<()> {
    let guest = binary(engine)?;
    let volume = volume_name(guest.hash);
    let labels = [
        (records::GUEST.to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        (records::MAKER.to_owned(), super::maker::this_program()),
    ];
    let request =
        VolumeCreateRequest { name: Some(volume.clone()), labels: Some(labels.clone().into()), ..Default::default() };
    let volume_error = |error| engine.error("make the guest's volume", error);
    engine.client.create_volume(request).await.map_err(volume_error)?;
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(vec![cofferdam_protocol::GUEST_PATH.to_owned()]),
        labels: Some(labels.into()),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            mounts: Some(vec![volume_mount(&volume, false)]),
            ..Default::default()
        }),
        ..Default::default()
    };
    let created = engine.client.create_container(None, body).await;
    let helper = created.map_err(|error| engine.error("prepare the guest's volume", error))?.id;
    let options = UploadToContainerOptions { path: GUEST_DIR.to_owned(), ..Default::default() };
    let uploaded = engine
        .client
        .upload_to_container(&helper, Some(options), bollard::body_full(archive(&guest.unpack()?)?.into()))
        .await
        .map_err(|error| engine.error("fill the guest's volume", error));
    let removed = engine.remove(&helper).await;
    uploaded.and(removed)
}

/// The guest under a name that nobody else writes, and then the link to it: of an upload that is cut off, or that another
/// one overtakes, nobody starts a part.
fn archive(guest: &[u8]) -> Result<Vec<u8>> {
    let broken =
        |error: std::io::Error| Error::new(ErrorCode::Internal, format!("the guest cannot be packed: {error}"));
    let whole = random_id("guest-");
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o755);
    header.set_uid(0);
    header.set_gid(0);
    let mut builder = tar::Builder::new(Vec::new());
    header.set_size(guest.len() as u64);
    builder.append_data(&mut header, &whole, guest).map_err(broken)?;
    header.set_size(0);
    header.set_entry_type(tar::EntryType::Symlink);
    builder.append_link(&mut header, "guest", &whole).map_err(broken)?;
    builder.into_inner().map_err(broken)
}
