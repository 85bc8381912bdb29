//! A backend in memory: boxes and claims, and no capability. What the smallest backend looks like.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::BytesMut;
use cofferdam_core::backend::{
    Backend, BoxRecord, BoxSpec, BoxState, Claims, Creation, EngineInfo, PruneReport, PruneRequest,
};
use cofferdam_core::guest::ByteStream;
use cofferdam_core::{CancellationToken, Error, ErrorCode, Result, SessionKey};
use cofferdam_protocol::{
    Assembler, Decoder, Frame, Hello, Kind, LINK_CHANNEL, Lease, Reply, Request, Setup, Status, encode,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A box: its spec, and the setup of its guest.
struct MemoryBox {
    spec: BoxSpec,
    claim: Option<String>,
    setup: Arc<Mutex<Setup>>,
    /// Ends its guests when it is removed.
    over: CancellationToken,
}

impl MemoryBox {
    fn connect(&self) -> ByteStream {
        let (host, guest) = tokio::io::duplex(64 * 1024);
        let served = serve(guest, Arc::clone(&self.setup));
        tokio::spawn(self.over.clone().run_until_cancelled_owned(served));
        let (reader, writer) = tokio::io::split(host);
        ByteStream { reader: Box::pin(reader), writer: Box::pin(writer) }
    }
}

#[derive(Default)]
pub struct Memory {
    boxes: Mutex<HashMap<String, MemoryBox>>,
    pub created: AtomicUsize,
}

impl Memory {
    fn boxes(&self) -> MutexGuard<'_, HashMap<String, MemoryBox>> {
        self.boxes.lock().unwrap()
    }

    fn record(handle: &str, found: &MemoryBox) -> BoxRecord {
        BoxRecord {
            handle: handle.to_owned(),
            claim: found.claim.clone(),
            id: found.spec.sandbox_id.clone(),
            key: found.spec.key_text().to_owned(),
            image: found.spec.image.clone(),
            workdir: found.spec.workdir.clone(),
            state: if found.claim.is_some() { BoxState::Running } else { BoxState::Warm },
            created_at: SystemTime::now(),
            expires_at: None,
            limits: found.spec.limits,
            network: found.spec.network,
            persist: false,
            labels: found.spec.labels.clone(),
        }
    }
}

fn lost() -> Error {
    Error::new(ErrorCode::SandboxLost, "the box was removed").with("reason", "removed")
}

#[async_trait]
impl Claims for Memory {
    async fn holder(&self, key: &SessionKey) -> Result<Option<BoxRecord>> {
        let claim = Some(key.claim());
        Ok(self
            .boxes()
            .iter()
            .find(|(_, found)| found.claim == claim)
            .map(|(handle, found)| Self::record(handle, found)))
    }

    async fn assign(&self, handle: &str, key: &SessionKey, _: Lease) -> Result<bool> {
        let mut boxes = self.boxes();
        let claim = Some(key.claim());
        if boxes.values().any(|found| found.claim == claim) {
            return Ok(false);
        }
        boxes.get_mut(handle).ok_or_else(lost)?.claim = claim;
        Ok(true)
    }
}

#[async_trait]
impl Backend for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn info(&self) -> Result<EngineInfo> {
        Ok(EngineInfo {
            backend: self.name(),
            version: "0".to_owned(),
            api_version: None,
            tier: None,
            abilities: BTreeMap::new(),
            limits: BTreeMap::new(),
            tried: Vec::new(),
        })
    }

    async fn create(&self, spec: &BoxSpec) -> Result<Creation> {
        let mut boxes = self.boxes();
        let claim = spec.key.as_ref().map(SessionKey::claim);
        if claim.is_some() && boxes.values().any(|found| found.claim == claim) {
            return Ok(Creation::Taken);
        }
        let handle = format!("box_{}", self.created.fetch_add(1, Ordering::SeqCst));
        let setup = Arc::new(Mutex::new(spec.setup(Some("image-user".to_owned()))));
        let created = MemoryBox { spec: spec.clone(), claim, setup, over: CancellationToken::new() };
        let stream = created.connect();
        boxes.insert(handle.clone(), created);
        Ok(Creation::New { handle, stream })
    }

    async fn find(&self, handle: &str) -> Result<Option<BoxRecord>> {
        Ok(self.boxes().get(handle).map(|found| Self::record(handle, found)))
    }

    async fn list(&self) -> Result<Vec<BoxRecord>> {
        Ok(self.boxes().iter().map(|(handle, found)| Self::record(handle, found)).collect())
    }

    async fn link(&self, handle: &str) -> Result<ByteStream> {
        self.boxes().get(handle).map(MemoryBox::connect).ok_or_else(lost)
    }

    async fn fate(&self, handle: &str) -> Option<Error> {
        (!self.boxes().contains_key(handle)).then(lost)
    }

    async fn remove(&self, handle: &str) -> Result<()> {
        if let Some(removed) = self.boxes().remove(handle) {
            removed.over.cancel();
        }
        Ok(())
    }

    async fn prune(&self, _: &PruneRequest) -> Result<PruneReport> {
        Ok(PruneReport::default())
    }
}

/// A guest that answers what opening, claiming and closing a sandbox asks.
async fn serve(mut stream: DuplexStream, setup: Arc<Mutex<Setup>>) {
    let hello = Hello { version: "0".to_owned(), setup: setup.lock().unwrap().clone(), uptime_ms: 1 };
    send(&mut stream, &[hello.to_frame()]).await;
    let (mut decoder, mut buffer) = (Decoder::default(), BytesMut::new());
    loop {
        let frame = match decoder.next(&mut buffer).unwrap() {
            Some(frame) => frame,
            None if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 => return,
            None => continue,
        };
        if frame.channel == LINK_CHANNEL || frame.kind != Kind::Message {
            continue;
        }
        let reply = match Assembler::default().finish(&frame.payload).unwrap() {
            Request::Claim(claim) => {
                let mut setup = setup.lock().unwrap();
                let is_free = !setup.is_claimed();
                if is_free {
                    *setup = claim;
                }
                Reply::Claimed(is_free)
            }
            Request::Status => {
                let setup = setup.lock().unwrap().clone();
                Reply::Status(Status { setup, expires_in_ms: None, workspace_bytes: 0, oom_kills: 0 })
            }
            Request::End => return,
            _ => Reply::Done,
        };
        send(&mut stream, &encode(frame.channel, &reply).unwrap()).await;
    }
}

async fn send(stream: &mut DuplexStream, frames: &[Frame]) {
    let mut bytes = BytesMut::new();
    frames.iter().for_each(|frame| frame.encode(&mut bytes));
    let _ = stream.write_all(&bytes).await;
}
