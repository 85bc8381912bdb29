//! HTTP for the S3 client, over the same hyper and rustls that reach the engine: no second HTTP stack, no second
//! cryptography.

use std::error::Error as StdError;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connect, HttpConnector as Tcp};
use hyper_util::rt::TokioExecutor;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};

const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// From a whole request to the head of its answer: a part of an upload on a slow line is part of that.
const REQUEST_PATIENCE: Duration = Duration::from_secs(60);

/// Makes clients for one kind of address.
#[derive(Debug)]
pub(super) enum Wire {
    /// For an endpoint that was named as `http://`.
    Plain,
    /// For everything else: anything but `https://` is refused.
    Tls,
}

impl HttpConnector for Wire {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = Tcp::new();
        tcp.set_connect_timeout(Some(CONNECT_PATIENCE));
        tcp.set_nodelay(true);
        match self {
            Wire::Plain => Ok(HttpClient::new(Service(Client::builder(TokioExecutor::new()).build(tcp)))),
            Wire::Tls => {
                tcp.enforce_http(false);
                let unusable =
                    |source: std::io::Error| object_store::Error::Generic { store: "S3", source: source.into() };
                let tls = hyper_rustls::HttpsConnectorBuilder::new().with_native_roots().map_err(unusable)?;
                let connector = tls.https_only().enable_http1().wrap_connector(tcp);
                Ok(HttpClient::new(Service(Client::builder(TokioExecutor::new()).build(connector))))
            }
        }
    }
}

struct Service<C>(Client<C, HttpRequestBody>);

impl<C> std::fmt::Debug for Service<C> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Service")
    }
}

#[async_trait]
impl<C: Connect + Clone + Send + Sync + 'static> HttpService for Service<C> {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = tokio::time::timeout(REQUEST_PATIENCE, self.0.request(request)).await;
        let response = answer.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?.map_err(|error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { kind_of(&error) };
            HttpError::new(kind, Told::new(&error))
        })?;
        let broken = |error: hyper::Error| HttpError::new(kind_of(&error), Told::new(&error));
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(broken))))
    }
}

/// Whether it is worth another try.
fn kind_of(error: &(dyn StdError + 'static)) -> HttpErrorKind {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(hyper) = error.downcast_ref::<hyper::Error>() {
            if hyper.is_timeout() {
                return HttpErrorKind::Timeout;
            }
            if hyper.is_closed() || hyper.is_incomplete_message() || hyper.is_canceled() {
                return HttpErrorKind::Request;
            }
        }
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return match io.kind() {
                std::io::ErrorKind::TimedOut => HttpErrorKind::Timeout,
                _ => HttpErrorKind::Interrupted,
            };
        }
        cause = error.source();
    }
    HttpErrorKind::Unknown
}

/// An error with all its causes in one sentence: hyper's own is only "client error (Connect)".
#[derive(Debug)]
struct Told(String);

impl Told {
    fn new(error: &(dyn StdError + 'static)) -> Told {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Told(text)
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl StdError for Told {}
