//! HTTP for the S3 client, over the same hyper and rustls as the engine client: no second HTTP or TLS stack.

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

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit from the start of a request to its response headers; covers a part sent on a slow line.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Creates clients for one URL scheme.
#[derive(Debug)]
pub(super) enum Wire {
    /// For an endpoint with `http://`.
    Plain,
    /// For every other endpoint: accepts only `https://`.
    Tls,
}

impl HttpConnector for Wire {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = Tcp::new();
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
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
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, self.0.request(request)).await;
        let response = answer.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?.map_err(|error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { kind_of(&error) };
            HttpError::new(kind, ErrorChain::new(&error))
        })?;
        let broken = |error: hyper::Error| HttpError::new(kind_of(&error), ErrorChain::new(&error));
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(broken))))
    }
}

/// The kind of an error, which decides whether to retry.
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
struct ErrorChain(String);

impl ErrorChain {
    fn new(error: &(dyn StdError + 'static)) -> ErrorChain {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        ErrorChain(text)
    }
}

impl std::fmt::Display for ErrorChain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl StdError for ErrorChain {}
