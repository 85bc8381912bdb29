//! How an `open()` comes to its sandbox: the one at hand, one that somebody else has, or a new one; within the policy.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Inner, Opened};
use crate::backend::{BoxSpec, BoxState};
use crate::events::{Event, EventKind};
use crate::key::SessionKey;
use crate::options::{Limits, OpenRequest, PullPolicy};
use crate::packages::Order;
use crate::policy::NetworkRule;
use crate::register::Origin;
use crate::sandbox::Sandbox;
use crate::sessions::{self, adopt, check_request, check_same, furnish, specify};
use crate::{DEFAULT_IMAGE, Error, ErrorCode, Result};

/// How long one session after the other may go away in our hands before that is the answer.
const VANISHING: Duration = Duration::from_secs(30);

/// Between two looks for a session that has just gone away.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

impl Inner {
    pub(super) async fn open(self: &Arc<Self>, request: OpenRequest) -> Result<Opened> {
        self.check_open()?;
        let key = SessionKey::new(&request.scope, &request.session, &self.owner)?;
        let image = self.host.backend.resolve_image(request.image.as_deref().unwrap_or(DEFAULT_IMAGE)).await?;
        self.policy.admit_limits(request.limits)?;
        check_request(&request)?;
        let slot = self.register.slot(key.as_str());
        let mut slot = slot.lock().await;
        self.check_open()?;
        if let Some((sandbox, _)) = &*slot
            && self.is_usable(sandbox).await?
        {
            check_same(&request, &image, sandbox)?;
            return Ok(self.opened(Arc::clone(sandbox), false));
        }
        *slot = None;
        let deadline = Instant::now() + VANISHING;
        let (sandbox, created) = loop {
            match self.obtain(&request, &key, &image).await? {
                Some(obtained) => break obtained,
                None if Instant::now() < deadline => tokio::time::sleep(LOOK_AGAIN).await,
                None => return Err(Error::new(ErrorCode::SandboxLost, "the session goes away whenever it is found")),
            }
        };
        let origin = if created { Origin::Made } else { Origin::Adopted };
        *slot = Some((Arc::clone(&sandbox), origin));
        if created && let Err(error) = furnish(&sandbox, &request).await {
            let _ = sandbox.close().await;
            *slot = None;
            return Err(error);
        }
        self.reconcile();
        Ok(self.opened(sandbox, created))
    }

    /// Finds or makes it, within the policy; `None` when what was found went away before we had a good look at it.
    async fn obtain(
        &self,
        request: &OpenRequest,
        key: &SessionKey,
        image: &str,
    ) -> Result<Option<(Arc<Sandbox>, bool)>> {
        if request.image.is_none()
            && !key.is_private()
            && let Some(sandbox) = self.find_running(key).await?
        {
            // Whatever its image is: the default one need not even be there.
            return Ok(self.is_admitted(&sandbox).await?.then_some((sandbox, false)));
        }
        let limits = self.policy.admit(request, image)?;
        let spec = self.specify(request, key.as_str(), image, limits).await?;
        // What is in the pool is older than the image that such a caller wants.
        let pool = (request.pull != PullPolicy::Always).then_some(&self.pool);
        let (sandbox, created) = sessions::get_or_create(&self.host, pool, spec).await?;
        if !created {
            if !self.is_admitted(&sandbox).await? {
                return Ok(None);
            }
            check_same(request, image, &sandbox)?;
        }
        Ok(Some((sandbox, created)))
    }

    /// What to make for a request; its image is pulled, and its packages are installed, if need be.
    pub(super) async fn specify(
        &self,
        request: &OpenRequest,
        key: &str,
        image: &str,
        limits: Limits,
    ) -> Result<BoxSpec> {
        let (mut spec, image_id) = specify(&self.host, request, key, image, limits, self.timeouts).await?;
        if !request.packages.is_empty() {
            let order = Order {
                packages: &request.packages,
                base: &spec,
                image_id: &image_id,
                network_allowed: self.policy.network == NetworkRule::Allow,
                cancel: request.cancel.clone(),
            };
            spec.layer = Some(self.layers.prepare(&self.host, &order).await?);
        }
        Ok(spec)
    }

    async fn find_running(&self, key: &SessionKey) -> Result<Option<Arc<Sandbox>>> {
        let Some(record) = self.host.backend.find(&key.claim()).await? else { return Ok(None) };
        if record.state != BoxState::Running {
            return Ok(None);
        }
        adopt(&self.host, &record).await
    }

    /// What somebody else made is not a way around the policy. False when it is gone.
    pub(super) async fn is_admitted(&self, sandbox: &Sandbox) -> Result<bool> {
        let admitted = match sandbox.info().await {
            Ok(found) => self.policy.admit_found(&found, self.allowed_as(&found.image).await).map(|()| true),
            Err(error) if error.code() == Some(ErrorCode::SandboxLost) => Ok(false),
            Err(error) => Err(error),
        };
        if !matches!(admitted, Ok(true)) {
            sandbox.leave();
        }
        admitted
    }

    /// The allowed name that stands for an image here, or its own: a sandbox does not tell by which shortcut it was made.
    async fn allowed_as<'a>(&'a self, image: &'a str) -> &'a str {
        for name in self.policy.allowed_images.iter().flatten() {
            if self.host.backend.resolve_image(name).await.is_ok_and(|stands_for| stands_for == image) {
                return name;
            }
        }
        image
    }

    fn opened(&self, sandbox: Arc<Sandbox>, created: bool) -> Opened {
        sandbox.opens.fetch_add(1, Ordering::AcqRel);
        let kind = if created { EventKind::Opened } else { EventKind::Resumed };
        self.host
            .events
            .emit(|| Event::new(kind).of(sandbox.id(), sandbox.key()).with("image", sandbox.image().to_owned()));
        Opened { sandbox, created }
    }

    /// False when it is gone and must be made anew.
    async fn is_usable(&self, sandbox: &Sandbox) -> Result<bool> {
        if sandbox.is_closed() {
            return Ok(false);
        }
        match sandbox.link().await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some(ErrorCode::EngineUnavailable) => Err(error),
            Err(_) => Ok(false),
        }
    }
}
