//! How `open()` gets its sandbox: one that this manager has open, one that another program created, or a new one; within the
//! policy.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::request::{check_request, check_same_image, specify};
use super::{Inner, Opened};
use crate::backend::{BoxSpec, BoxState};
use crate::events::{Event, EventKind};
use crate::guest::ExecRequest;
use crate::key::SessionKey;
use crate::options::{Limits, OpenRequest, PullPolicy};
use crate::packages::LayerRequest;
use crate::policy::NetworkRule;
use crate::register::Ownership;
use crate::sandbox::Sandbox;
use crate::sessions::{self, adopt, disappearing};
use crate::{DEFAULT_IMAGE, Error, ErrorCode, Result};

/// How long a session may disappear again and again before `open()` gives up.
const DISAPPEARING: Duration = Duration::from_secs(30);

/// Between two looks for a session that has just disappeared.
const PAUSE: Duration = Duration::from_millis(25);

impl Inner {
    pub(super) async fn open(self: &Arc<Self>, request: OpenRequest) -> Result<Opened> {
        self.check_open()?;
        let key = SessionKey::new(&request.scope, &request.session, &self.owner)?;
        let image = self.host.resolve_image(request.image.as_deref().unwrap_or(DEFAULT_IMAGE)).await?;
        self.policy.admit_limits(request.limits)?;
        check_request(&request)?;
        let slot = self.register.slot(key.as_str());
        let mut slot = slot.lock().await;
        self.check_open()?;
        if let Some((sandbox, _)) = &*slot
            && self.is_usable(sandbox).await?
        {
            check_same_image(&request, &image, sandbox)?;
            return Ok(self.opened(Arc::clone(sandbox), false));
        }
        *slot = None;
        let deadline = Instant::now() + DISAPPEARING;
        let (sandbox, created) = loop {
            match self.obtain(&request, &key, &image).await? {
                Some(obtained) => break obtained,
                None if Instant::now() < deadline => tokio::time::sleep(PAUSE).await,
                None => return Err(disappearing()),
            }
        };
        let ownership = if created { Ownership::Owned } else { Ownership::Adopted };
        *slot = Some((Arc::clone(&sandbox), ownership));
        if created && let Err(error) = seed(&sandbox, &request).await {
            let _ = sandbox.close().await;
            *slot = None;
            return Err(error);
        }
        self.reconcile();
        Ok(self.opened(sandbox, created))
    }

    /// Finds or creates it, within the policy; `None` when it went away before the policy could be checked.
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
            // Whatever its image is: the default image need not even exist.
            return Ok(self.is_admitted(&sandbox).await?.then_some((sandbox, false)));
        }
        let limits = self.policy.admit(request, image)?;
        let spec = self.specify(request, Some(key), image, limits).await?;
        // Warm boxes are older than the image that `pull: 'always'` asks for.
        let pool = (request.pull != PullPolicy::Always).then_some(&self.pool);
        let (sandbox, created) = sessions::get_or_create(&self.host, pool, spec, &request.cancel).await?;
        if !created {
            if !self.is_admitted(&sandbox).await? {
                return Ok(None);
            }
            check_same_image(request, image, &sandbox)?;
        }
        Ok(Some((sandbox, created)))
    }

    /// The box for a request. Pulls its image and installs its packages if need be.
    pub(super) async fn specify(
        &self,
        request: &OpenRequest,
        key: Option<&SessionKey>,
        image: &str,
        limits: Limits,
    ) -> Result<BoxSpec> {
        let (mut spec, image_id) = specify(&self.host, request, key, image, limits, self.timeouts).await?;
        if !request.packages.is_empty() {
            let layer = LayerRequest {
                packages: &request.packages,
                base: &spec,
                image_id: &image_id,
                network_allowed: self.policy.network == NetworkRule::Allow,
                cancel: request.cancel.clone(),
            };
            spec.layer = Some(self.layers.prepare(&self.host, &layer).await?);
        }
        Ok(spec)
    }

    async fn find_running(&self, key: &SessionKey) -> Result<Option<Arc<Sandbox>>> {
        let Some(record) = self.host.backend().await?.holder(key).await? else { return Ok(None) };
        if record.state != BoxState::Running {
            return Ok(None);
        }
        adopt(&self.host, &record).await
    }

    /// The policy holds for sandboxes of other programs, too. False when it is gone.
    pub(super) async fn is_admitted(&self, sandbox: &Sandbox) -> Result<bool> {
        let admitted = match sandbox.info().await {
            Ok(found) => self.policy.admit_found(&found, self.allowed_as(&found.image).await).map(|()| true),
            Err(error) if error.code() == Some(ErrorCode::SandboxLost) => Ok(false),
            Err(error) => Err(error),
        };
        if !matches!(admitted, Ok(true)) {
            sandbox.detach();
        }
        admitted
    }

    /// The allowed name that stands for an image here, or its own: a sandbox does not say by which shortcut it was opened.
    async fn allowed_as<'a>(&'a self, image: &'a str) -> &'a str {
        for name in self.policy.allowed_images.iter().flatten() {
            if self.host.resolve_image(name).await.is_ok_and(|stands_for| stands_for == image) {
                return name;
            }
        }
        image
    }

    fn opened(&self, sandbox: Arc<Sandbox>, created: bool) -> Opened {
        sandbox.opens.fetch_add(1, Ordering::AcqRel);
        let kind = if created { EventKind::Opened } else { EventKind::Resumed };
        self.host.events.emit(|| {
            Event::new(kind).of(sandbox.id(), sandbox.key().as_str()).with("image", sandbox.image().to_owned())
        });
        Opened { sandbox, created }
    }

    /// False when it is gone and must be created again.
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

/// Writes the initial files of a new sandbox and runs its `init`.
async fn seed(sandbox: &Sandbox, request: &OpenRequest) -> Result<()> {
    sandbox.write_many(&request.files).await?;
    let Some(command) = &request.init else { return Ok(()) };
    let mut exec = ExecRequest::shell("");
    exec.spawn.command = command.clone();
    exec.cancel = request.cancel.clone();
    let result = sandbox.exec(exec).await?;
    if result.exit_code == 0 {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&result.stderr);
    let message = format!("init ended with exit code {}: {}", result.exit_code, errors.trim());
    Err(Error::invalid(message).with("exitCode", result.exit_code))
}
