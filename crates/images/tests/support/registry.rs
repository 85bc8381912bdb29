//! A registry on loopback that does what a real one cannot be made to do: lie, stall, break off and send elsewhere.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofferdam_images::{Image, ImageError, ImageStore, PullPolicy, StoreOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Layer, Made, Place, image, plain};

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// How much of it really comes.
    pub(crate) sent: usize,
    /// Whether anything comes at all.
    pub(crate) silent: bool,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        let body = body.into();
        Answer { status, headers: Vec::new(), sent: body.len(), body, silent: false }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Answer {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn cut(mut self, sent: usize) -> Answer {
        self.sent = sent;
        self
    }

    pub(crate) fn silent() -> Answer {
        Answer { silent: true, ..Answer::new(200, "") }
    }
}

type Script = Arc<dyn Fn(&Asked) -> Answer + Send + Sync>;

pub(crate) struct FakeRegistry {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    serving: tokio::task::JoinHandle<()>,
}

impl FakeRegistry {
    pub(crate) async fn start(script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> FakeRegistry {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (script, log): (Script, _) = (Arc::new(script), asked.clone());
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, script.clone(), log.clone()));
            }
        });
        FakeRegistry { address, asked, serving }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.path).collect()
    }
}

impl Drop for FakeRegistry {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn converse(mut stream: TcpStream, script: Script, log: Arc<Mutex<Vec<Asked>>>) {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read_buf(&mut request).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    let text = String::from_utf8_lossy(&request).into_owned();
    let mut lines = text.lines();
    let path = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or("").to_owned();
    let pair = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    let asked = Asked { path, headers: lines.filter_map(pair).collect() };
    log.lock().unwrap().push(asked.clone());
    let answer = script(&asked);
    if answer.silent {
        // Until the other side has had enough.
        let _ = stream.read_buf(&mut request).await;
        return;
    }
    let mut head =
        format!("HTTP/1.1 {} x\r\ncontent-length: {}\r\nconnection: close\r\n", answer.status, answer.body.len());
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let _ = stream.write_all(format!("{head}\r\n").as_bytes()).await;
    let _ = stream.write_all(&answer.body[..answer.sent]).await;
    let _ = stream.shutdown().await;
}

/// Serves an image under every tag.
pub(crate) fn serve(made: &Made, asked: &Asked) -> Answer {
    let name = asked.path.rsplit('/').next().unwrap_or("");
    match (asked.path.contains("/manifests/"), made.blobs.get(name)) {
        (_, Some(blob)) => Answer::new(200, blob.clone()),
        (true, None) if !name.starts_with("sha256:") => Answer::new(200, made.manifest.clone()),
        _ => Answer::new(404, r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#),
    }
}

pub(crate) fn small() -> Made {
    image(&plain(vec![Layer::new().file("etc/name", "small").finish()]))
}

pub(crate) struct Pulling {
    pub(crate) place: Place,
    pub(crate) store: ImageStore,
}

impl Pulling {
    pub(crate) fn new() -> Pulling {
        Pulling::with_config(None)
    }

    /// For a registry that never answers.
    pub(crate) fn impatient() -> Pulling {
        Pulling::with(None, Duration::from_millis(700))
    }

    pub(crate) fn with_config(config: Option<&str>) -> Pulling {
        Pulling::with(config, Duration::from_secs(30))
    }

    fn with(config: Option<&str>, patience: Duration) -> Pulling {
        let place = Place::new();
        let path = config.map(|config| {
            std::fs::write(place.path("config.json"), config).unwrap();
            place.path("config.json")
        });
        let docker_config = Some(path.unwrap_or_else(|| place.path("no-config.json")));
        let options = StoreOptions { docker_config, patience, ..StoreOptions::default() };
        Pulling { store: ImageStore::with(place.path("store"), options), place }
    }

    pub(crate) async fn pull(&self, registry: &FakeRegistry, name: &str) -> Result<Image, ImageError> {
        self.store.prepare(&format!("{}/{name}", registry.address), PullPolicy::Missing, None).await
    }

    pub(crate) fn stored(&self) -> Vec<PathBuf> {
        let folders = ["layers", "images", "names"].map(|name| self.place.path("store").join(name));
        folders
            .iter()
            .flat_map(|folder| std::fs::read_dir(folder).unwrap())
            .map(|entry| entry.unwrap().path())
            .collect()
    }
}

pub(crate) fn content(image: &Image, name: &str) -> String {
    std::fs::read_to_string(image.layers.last().unwrap().join(name)).unwrap()
}
