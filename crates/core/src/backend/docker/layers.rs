//! Images with packages, built here and never pushed. The name is a hash of the contents; a label has the id of the base image.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::{ContainerConfig, ImageSummary};
use bollard::query_parameters::{CommitContainerOptions, ListImagesOptions, RemoveImageOptions};

use super::Engine;
use super::error::status;
use crate::Result;
use crate::backend::PruneRequest;
use crate::clock::now_ms;

/// Marks a layer, with the id of the image below it.
const BASE: &str = "cofferdam.base";

pub(super) async fn exists(engine: &Engine, name: &str) -> Result<bool> {
    match engine.client.inspect_image(name).await {
        Ok(_) => Ok(true),
        Err(error) if status(&error) == Some(404) => Ok(false),
        Err(error) => Err(engine.error(&format!("look for the layer {name}"), error)),
    }
}

pub(super) async fn commit(engine: &Engine, handle: &str, name: &str, image_id: &str) -> Result<()> {
    let (repo, tag) = name.split_once(':').unwrap_or((name, "latest"));
    let options = CommitContainerOptions {
        container: Some(handle.to_owned()),
        repo: Some(repo.to_owned()),
        tag: Some(tag.to_owned()),
        // The installers are done, and nothing else runs in it.
        pause: false,
        ..Default::default()
    };
    let config = ContainerConfig {
        labels: Some(HashMap::from([(BASE.to_owned(), image_id.to_owned())])),
        // The container's own would reveal whose it was.
        entrypoint: Some(Vec::new()),
        cmd: Some(vec!["sh".to_owned()]),
        ..Default::default()
    };
    let made = engine.client.commit_container(options, config).await;
    made.map(drop).map_err(|error| engine.error("keep the packages", error))
}

/// Removes layers whose image is gone, and all unused ones if the request says so.
pub(super) async fn prune(engine: &Engine, request: &PruneRequest) -> Result<Vec<String>> {
    let filters = HashMap::from([("label".to_owned(), vec![BASE.to_owned()])]);
    let options = ListImagesOptions { filters: Some(filters), ..Default::default() };
    let found = engine.client.list_images(Some(options)).await;
    let found = found.map_err(|error| engine.error("look for old packages", error))?;
    let mut removed = Vec::new();
    for layer in found {
        let age = Duration::from_millis(now_ms().saturating_sub(u64::try_from(layer.created).unwrap_or(0) * 1000));
        let is_unneeded = request.packages || !has_base(engine, &layer).await;
        if !is_unneeded || age < request.older_than {
            continue;
        }
        for name in layer.repo_tags {
            // Without force, a layer that a sandbox uses stays.
            let options = None::<RemoveImageOptions>;
            if request.dry_run || engine.client.remove_image(&name, options, None).await.is_ok() {
                removed.push(name);
            }
        }
    }
    Ok(removed)
}

async fn has_base(engine: &Engine, layer: &ImageSummary) -> bool {
    let Some(base) = layer.labels.get(BASE) else { return true };
    match engine.client.inspect_image(base).await {
        // The engine keeps an image as long as another is built on it; one without a name is nobody's.
        Ok(found) => found.repo_tags.is_some_and(|tags| !tags.is_empty()),
        Err(error) => status(&error) != Some(404),
    }
}
