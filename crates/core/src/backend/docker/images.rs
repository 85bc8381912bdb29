//! Images on the engine, pulled if need be.

use bollard::models::CreateImageInfo;
use bollard::query_parameters::CreateImageOptions;
use futures_util::StreamExt;

use super::Engine;
use super::error::status;
use crate::backend::ImageFacts;
use crate::options::{OnPull, PullPolicy, PullProgress};
use crate::{Error, ErrorCode, Result};

pub(super) async fn prepare(
    engine: &Engine,
    image: &str,
    policy: PullPolicy,
    on_pull: Option<&OnPull>,
) -> Result<ImageFacts> {
    if policy == PullPolicy::Always {
        pull(engine, image, on_pull).await?;
    }
    if let Some(facts) = inspect(engine, image).await? {
        return Ok(facts);
    }
    if policy == PullPolicy::Never {
        let message =
            format!("image \"{image}\" is not on this engine, and pull is \"never\". Pull it first, or leave pull out");
        return Err(Error::new(ErrorCode::ImageNotFound, message).with("image", image));
    }
    pull(engine, image, on_pull).await?;
    inspect(engine, image).await?.ok_or_else(|| not_found(image, "the pull succeeded, but the image is still missing"))
}

pub(super) async fn inspect(engine: &Engine, image: &str) -> Result<Option<ImageFacts>> {
    match engine.client.inspect_image(image).await {
        Ok(found) => {
            let user = found.config.and_then(|config| config.user).filter(|user| !user.is_empty());
            Ok(Some(ImageFacts { id: found.id.unwrap_or_default(), user }))
        }
        Err(error) if status(&error) == Some(404) => Ok(None),
        Err(error) => Err(engine.error(&format!("look at the image {image}"), error)),
    }
}

pub(super) async fn pull(engine: &Engine, image: &str, on_pull: Option<&OnPull>) -> Result<()> {
    // Without a tag the engine would pull every tag there is.
    let last = image.rsplit('/').next().unwrap_or(image);
    let tag = (!last.contains([':', '@'])).then(|| "latest".to_owned());
    let options = CreateImageOptions { from_image: Some(image.to_owned()), tag, ..Default::default() };
    let mut steps = engine.client.create_image(Some(options), None, None);
    while let Some(step) = steps.next().await {
        match step {
            Ok(CreateImageInfo { error_detail: Some(error), .. }) => {
                return Err(not_found(image, &error.message.unwrap_or_default()));
            }
            Ok(info) => {
                if let Some(on_pull) = on_pull {
                    on_pull(progress(image, info));
                }
            }
            Err(bollard::errors::Error::DockerResponseServerError { message, .. }) => {
                return Err(not_found(image, &message));
            }
            Err(bollard::errors::Error::DockerStreamError { error }) => return Err(not_found(image, &error)),
            Err(error) => return Err(engine.error(&format!("pull the image {image}"), error)),
        }
    }
    Ok(())
}

fn not_found(image: &str, why: &str) -> Error {
    let message = format!(
        "image \"{image}\" is not on this engine and could not be pulled: {why}. Check the name, pull or build it first, or \
         set pull: \"never\" to fail faster"
    );
    Error::new(ErrorCode::ImageNotFound, message).with("image", image)
}

fn progress(image: &str, info: CreateImageInfo) -> PullProgress {
    let bytes = |count: Option<i64>| count.and_then(|count| u64::try_from(count).ok());
    let detail = info.progress_detail.unwrap_or_default();
    PullProgress {
        image: image.to_owned(),
        layer: info.id,
        status: info.status.unwrap_or_default(),
        current_bytes: bytes(detail.current),
        total_bytes: bytes(detail.total),
    }
}
