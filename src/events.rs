//! What happens to sandboxes, in batches.

use std::sync::Arc;

use cofferdam_core::{Event, EventStream};
use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;
use tokio::sync::Mutex;

use crate::cancel::{Cancel, token, unless};
use crate::convert::unix_ms;
use crate::promise::promise;

#[napi(object)]
pub struct NativeEvent {
    #[napi(js_name = "type")]
    pub kind: String,
    pub at_ms: f64,
    pub sandbox_id: Option<String>,
    pub key: Option<String>,
    /// JSON
    pub details: String,
}

impl From<Event> for NativeEvent {
    fn from(event: Event) -> NativeEvent {
        let (sandbox_id, key) = event.sandbox.unzip();
        NativeEvent {
            kind: event.kind.as_str().to_owned(),
            at_ms: unix_ms(event.at),
            sandbox_id,
            key,
            details: serde_json::Value::Object(event.details).to_string(),
        }
    }
}

#[napi]
pub struct NativeEvents {
    stream: Arc<Mutex<EventStream>>,
}

impl NativeEvents {
    pub(crate) fn new(stream: EventStream) -> NativeEvents {
        NativeEvents { stream: Arc::new(Mutex::new(stream)) }
    }
}

#[napi]
impl NativeEvents {
    /// At least one; none when there will be no more.
    #[napi(ts_return_type = "Promise<NativeEvent[]>")]
    pub fn next_many<'env>(
        &self,
        env: &'env Env,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, Vec<NativeEvent>>> {
        let stream = Arc::clone(&self.stream);
        let next = async move { Ok(stream.lock().await.next_many().await) };
        promise(env, unless(token(cancel), next), |_, events| Ok(events.into_iter().map(Into::into).collect()))
    }
}
