//! The guest on the engine: one named volume per guest version, filled once through the archive API, mounted read-only
//! into every sandbox. No bind mount, so a remote engine is no different from a local one.
//!
//! A volume that exists is assumed to be complete. If it is not (the program that fills it died or is still at work), no sandbox
//! starts in it, and `container::create` fills it again. Any number of programs may do so at once: the guest appears under its
//! name only when it is complete.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::PathBuf;

use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, MountVolumeOptions, VolumeCreateRequest};
use bollard::query_parameters::{DownloadFromContainerOptions, UploadToContainerOptions};
use bytes::BytesMut;
use cofferdam_protocol::{GUEST_DIR, GUEST_FILE};
use futures_util::TryStreamExt;

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

/// Makes sure that the volume exists; asks the engine only once.
pub(super) async fn ensure(engine: &Engine, image: &str) -> Result<()> {
    let mut is_ready = engine.guest_ready.lock().await;
    if *is_ready {
        return Ok(());
    }
    match engine.client.inspect_volume(&current(engine)?).await {
        Ok(_) => {}
        Err(error) if status(&error) == Some(404) => fill(engine, image).await?,
        Err(error) => return Err(engine.error("look for the guest's volume", error)),
    }
    *is_ready = true;
    Ok(())
}

/// For a sandbox whose guest did not start: makes sure that the guest is complete.
pub(super) async fn mend(engine: &Engine, image: &str) -> Result<()> {
    let _one_at_a_time = engine.guest_ready.lock().await;
    fill(engine, image).await
}

/// Puts the guest into the volume, through a container that is never started.
async fn fill(engine: &Engine, image: &str) -> Result<()> {
    let guest = binary(engine)?;
    let (volume, bytes) = (volume_name(guest.hash), guest.unpack()?);
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
    let brought = bring(engine, &helper, &bytes).await;
    let removed = engine.remove(&helper).await;
    brought.and(removed)
}

async fn bring(engine: &Engine, helper: &str, guest: &[u8]) -> Result<()> {
    if is_there(engine, helper, guest).await {
        return Ok(());
    }
    let options = UploadToContainerOptions { path: GUEST_DIR.to_owned(), ..Default::default() };
    let body = bollard::body_full(archive(guest)?.into());
    match engine.client.upload_to_container(helper, Some(options), body).await {
        Ok(()) => Ok(()),
        // The engine may reject one of two uploads that link at the same moment.
        Err(_) if is_there(engine, helper, guest).await => Ok(()),
        Err(error) => Err(engine.error("fill the guest's volume", error)),
    }
}

async fn is_there(engine: &Engine, helper: &str, guest: &[u8]) -> bool {
    let options = DownloadFromContainerOptions { path: GUEST_DIR.to_owned() };
    let folder: Result<BytesMut, _> = engine.client.download_from_container(helper, Some(options)).try_collect().await;
    folder.is_ok_and(|folder| holds(&folder, guest).unwrap_or_default())
}

/// Whether an archive of the volume has the guest under its name, byte for byte.
fn holds(folder: &[u8], guest: &[u8]) -> io::Result<bool> {
    let (mut named, mut whole) = (PathBuf::from(GUEST_FILE), HashSet::new());
    for entry in tar::Archive::new(folder).entries()? {
        let mut entry = entry?;
        let Some(name) = entry.path()?.file_name().map(PathBuf::from) else { continue };
        match entry.link_name()? {
            Some(target) if name == named => named = target.into_owned(),
            Some(_) => {}
            None => {
                let mut content = Vec::new();
                entry.read_to_end(&mut content)?;
                if content == guest {
                    whole.insert(name);
                }
            }
        }
    }
    Ok(whole.contains(&named))
}

/// The guest under a unique name, then a link to it: a partial upload is never started.
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
    builder.append_link(&mut header, GUEST_FILE, &whole).map_err(broken)?;
    builder.into_inner().map_err(broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, format!(".cofferdam/{name}"), *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    #[test]
    fn what_is_uploaded_is_what_is_looked_for() {
        let guest = vec![7; 3000];
        let archive = archive(&guest).unwrap();
        assert!(holds(&archive, &guest).unwrap());
        assert!(!holds(&archive, &guest[1..]).unwrap());
        assert!(!holds(&archive[..2000], &guest).unwrap_or_default());
    }

    #[test]
    fn a_guest_without_its_name_is_not_there() {
        let guest = b"guest".as_slice();
        assert!(holds(&folder(&[("guest", guest)]), guest).unwrap());
        assert!(!holds(&folder(&[("guest-1", guest)]), guest).unwrap());
        assert!(!holds(&folder(&[("guest", b""), ("guest-1", guest)]), guest).unwrap());
        assert!(!holds(&folder(&[]), guest).unwrap());
    }
}
