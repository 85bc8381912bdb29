//! HTTP to registries, with hyper and rustls: slow ones may take their time, silent ones time out.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap, LOCATION};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioExecutor;

use crate::error::{ImageError, ImageErrorKind, Result, causes};
use crate::reference::is_loopback;

const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
const MOST_REDIRECTS: usize = 5;

type Plain = Client<HttpConnector, Full<Bytes>>;
type Tls = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;
type Proxied = Client<HttpsConnector<Tunnel<HttpConnector>>, Full<Bytes>>;

/// A client for all registries.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    /// For this machine.
    plain: Plain,
    /// For all others; made on first use, because it loads certificates.
    tls: Arc<OnceLock<Tls>>,
    proxied: Arc<OnceLock<Proxied>>,
    /// From `HTTPS_PROXY` and `NO_PROXY`.
    proxies: Arc<Matcher>,
    /// From a request to the head of its answer, and between two pieces of one.
    patience: Duration,
}

impl Wire {
    pub(crate) fn new(patience: Duration) -> Wire {
        Wire {
            plain: Client::builder(TokioExecutor::new()).build(tcp(patience)),
            tls: Arc::default(),
            proxied: Arc::default(),
            proxies: Arc::new(Matcher::from_env()),
            patience,
        }
    }

    /// Off this machine: encrypted, and through a proxy where one is set.
    fn ask_far(&self, request: Request<Full<Bytes>>) -> Result<ResponseFuture> {
        let Some(proxy) = self.proxies.intercept(request.uri()) else {
            let client = made_once(&self.tls, || {
                let mut tcp = tcp(self.patience);
                tcp.enforce_http(false);
                encrypted(tcp)
            });
            return Ok(client?.request(request));
        };
        let client = made_once(&self.proxied, || {
            let tunnel = Tunnel::new(proxy.uri().clone(), tcp(self.patience));
            encrypted(match proxy.basic_auth() {
                Some(credentials) => tunnel.with_auth(credentials.clone()),
                None => tunnel,
            })
        });
        Ok(client?.request(request))
    }

    /// Follows redirects, and sends credentials only to the host they are for.
    pub(crate) async fn get(&self, url: &str, headers: &HeaderMap) -> Result<Response<Incoming>> {
        let mut url: Uri = parse(url)?;
        let mut headers = headers.clone();
        for _ in 0..MOST_REDIRECTS {
            let mut request = Request::get(url.clone()).body(Full::default()).map_err(|error| odd(&url, &error))?;
            *request.headers_mut() = headers.clone();
            let response = self.send(request).await?;
            if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED {
                return Ok(response);
            }
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let next = resolve(&url, location.unwrap_or(""))?;
            if next.authority() != url.authority() || next.scheme() != url.scheme() {
                headers.remove(AUTHORIZATION);
            }
            url = next;
        }
        let message = format!("{url} redirects more than {MOST_REDIRECTS} times");
        Err(ImageError::new(ImageErrorKind::Unreachable, message))
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>> {
        let url = request.uri().clone();
        let is_local = url.authority().is_some_and(|authority| is_loopback(authority.as_str()));
        if url.scheme_str() != Some("https") && !is_local {
            let message = format!("{url} is not encrypted, and not on this machine. Use a registry with TLS");
            return Err(ImageError::unsupported(message));
        }
        let asking = match url.scheme_str() {
            Some("https") => self.ask_far(request)?,
            _ => self.plain.request(request),
        };
        let answer = tokio::time::timeout(self.patience, asking).await;
        answer.map_err(|_| self.late(&url))?.map_err(|error| odd(&url, &error))
    }

    /// The next piece of an answer; nothing at its end.
    pub(crate) async fn piece(&self, body: &mut Incoming, url: &str) -> Result<Option<Bytes>> {
        loop {
            let frame = tokio::time::timeout(self.patience, body.frame()).await;
            let frame = match frame.map_err(|_| self.late(&url))? {
                Some(frame) => frame.map_err(|error| odd(&url, &error))?,
                None => return Ok(None),
            };
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }

    /// An answer of bounded length.
    pub(crate) async fn body(&self, mut body: Incoming, most: usize, url: &str) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        while let Some(piece) = self.piece(&mut body, url).await? {
            if content.len() + piece.len() > most {
                let message = format!("the answer of {url} is longer than {most} bytes, too long for such a document");
                return Err(ImageError::new(ImageErrorKind::TooLarge, message));
            }
            content.extend_from_slice(&piece);
        }
        Ok(content)
    }

    fn late(&self, url: &dyn std::fmt::Display) -> ImageError {
        let message = format!(
            "{url} did not answer within {} s. Check the network and whether the registry is up, and try again",
            self.patience.as_secs_f32()
        );
        ImageError::new(ImageErrorKind::Timeout, message)
    }
}

fn made_once<C>(place: &OnceLock<C>, make: impl FnOnce() -> Result<C>) -> Result<&C> {
    match place.get() {
        Some(client) => Ok(client),
        None => make().map(|client| place.get_or_init(|| client)),
    }
}

fn encrypted<C>(connector: C) -> Result<Client<HttpsConnector<C>, Full<Bytes>>>
where
    HttpsConnector<C>: Connect + Clone,
{
    let tls = hyper_rustls::HttpsConnectorBuilder::new().with_native_roots().map_err(|error| {
        ImageError::unsupported(format!(
            "this machine has no CA certificates ({error}). Install ca-certificates, or set SSL_CERT_FILE"
        ))
    })?;
    let connector = tls.https_only().enable_http1().wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

fn tcp(patience: Duration) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.set_connect_timeout(Some(CONNECT_PATIENCE.min(patience)));
    tcp.set_nodelay(true);
    tcp
}

fn odd(url: &dyn std::fmt::Display, error: &(dyn std::error::Error + 'static)) -> ImageError {
    let told = causes(error);
    let kind = match told.contains("timed out") || told.contains("deadline") {
        true => ImageErrorKind::Timeout,
        false => ImageErrorKind::Unreachable,
    };
    let message = format!("{url} cannot be reached: {told}. Check the name of the registry and the network");
    ImageError::new(kind, message)
}

fn parse(url: &str) -> Result<Uri> {
    let refuse = |_| ImageError::new(ImageErrorKind::Unreachable, format!("{url:?} is not a valid address"));
    url.parse().map_err(refuse)
}

/// Where a redirect leads: a whole address or a path.
fn resolve(from: &Uri, location: &str) -> Result<Uri> {
    match location.starts_with('/') && !location.starts_with("//") {
        true => {
            let authority = from.authority().map_or("", |authority| authority.as_str());
            parse(&format!("{}://{authority}{location}", from.scheme_str().unwrap_or("https")))
        }
        false => parse(location),
    }
}
