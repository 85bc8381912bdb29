//! Authentication: none, a name and a password, or a token that another server issues for those.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Request, StatusCode};
use serde::Deserialize;

use super::wire::Wire;
use crate::credentials::Credentials;
use crate::error::{ImageError, ImageErrorKind, Result};

const LONGEST_ANSWER: usize = 1024 * 1024;

/// The challenge in a refusal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

impl Challenge {
    pub(super) fn read(headers: &HeaderMap) -> Option<Challenge> {
        let all = headers.get_all(WWW_AUTHENTICATE);
        all.iter().filter_map(|value| value.to_str().ok()).find_map(Challenge::parse)
    }

    fn parse(text: &str) -> Option<Challenge> {
        let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Challenge::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let parameters = parameters(rest);
        let get = |name: &str| parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        Some(Challenge::Bearer { realm: get("realm")?, service: get("service"), scope: get("scope") })
    }

    /// The `Authorization` that meets it.
    pub(super) async fn answer(
        &self,
        wire: &Wire,
        credentials: Option<&Credentials>,
        repository: &str,
    ) -> Result<Option<HeaderValue>> {
        let header = match (self, credentials) {
            (_, Some(Credentials::Token(token))) => format!("Bearer {token}"),
            (Challenge::Basic, Some(Credentials::Login { user, password })) => Credentials::basic(user, password),
            (Challenge::Basic, _) => return Ok(None),
            (Challenge::Bearer { realm, service, scope }, credentials) => {
                let pull = format!("repository:{repository}:pull");
                let scope = scope.as_deref().unwrap_or(&pull);
                format!("Bearer {}", token(wire, realm, service.as_deref(), scope, credentials).await?)
            }
        };
        let mut header = HeaderValue::from_str(&header).map_err(|_| {
            ImageError::new(ImageErrorKind::Unauthorized, "the credentials have characters that HTTP cannot carry")
        })?;
        header.set_sensitive(true);
        Ok(Some(header))
    }
}

async fn token(
    wire: &Wire,
    realm: &str,
    service: Option<&str>,
    scope: &str,
    credentials: Option<&Credentials>,
) -> Result<String> {
    let mut query = format!("scope={}", escape(scope));
    if let Some(service) = service {
        query = format!("service={}&{query}", escape(service));
    }
    let mut headers = HeaderMap::new();
    let response = match credentials {
        Some(Credentials::Identity(token)) => {
            let form = format!("grant_type=refresh_token&client_id=cofferdam&refresh_token={}&{query}", escape(token));
            let request = Request::post(realm).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
            let request = request.body(Full::new(Bytes::from(form))).map_err(|error| {
                ImageError::new(ImageErrorKind::Unreachable, format!("{realm:?} issues no tokens: {error}"))
            })?;
            wire.send(request).await?
        }
        other => {
            if let Some(Credentials::Login { user, password }) = other
                && let Ok(mut header) = HeaderValue::from_str(&Credentials::basic(user, password))
            {
                header.set_sensitive(true);
                headers.insert(AUTHORIZATION, header);
            }
            let joint = if realm.contains('?') { '&' } else { '?' };
            wire.get(&format!("{realm}{joint}{query}"), &headers).await?
        }
    };
    let status = response.status();
    let content = wire.body(response.into_body(), LONGEST_ANSWER, realm).await?;
    #[derive(Deserialize)]
    struct Answer {
        token: Option<String>,
        access_token: Option<String>,
    }
    let answer: Option<Answer> = serde_json::from_slice(&content).ok();
    match answer.and_then(|answer| answer.token.or(answer.access_token)).filter(|token| !token.is_empty()) {
        Some(token) if status == StatusCode::OK => Ok(token),
        _ => {
            let kind = match status {
                StatusCode::TOO_MANY_REQUESTS => ImageErrorKind::RateLimited,
                status if status.is_server_error() => ImageErrorKind::Unreachable,
                _ => ImageErrorKind::Unauthorized,
            };
            let who = if credentials.is_some() {
                "with the credentials of docker's configuration"
            } else {
                "without credentials"
            };
            Err(ImageError::new(kind, format!("{realm} issued no token {who} (status {})", status.as_u16())))
        }
    }
}

/// `name="value", name=value`; a comma may be inside quotes.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',', '\t']).to_ascii_lowercase();
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.push((name, value.trim().to_owned()));
        rest = after;
    }
    found
}

fn escape(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            Some(Challenge::Bearer { realm: realm.to_owned(), service: owned(service), scope: owned(scope) })
        };
        for (text, challenge) in [
            (
                r#"Bearer realm="https://auth.example/token",service="reg",scope="repository:a/b:pull,push""#,
                bearer("https://auth.example/token", Some("reg"), Some("repository:a/b:pull,push")),
            ),
            (r#"bearer REALM="https://x" , service=y"#, bearer("https://x", Some("y"), None)),
            (r#"Basic realm="x""#, Some(Challenge::Basic)),
            ("Basic", Some(Challenge::Basic)),
            ("Bearer", None),
            ("Negotiate", None),
            ("", None),
        ] {
            assert_eq!(Challenge::parse(text), challenge, "{text}");
        }
        assert_eq!(escape("repository:a/b:pull"), "repository%3Aa%2Fb%3Apull");
    }
}
