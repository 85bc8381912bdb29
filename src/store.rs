//! The object store of a manager, and the files that go to it and come from it.

use std::sync::Arc;

use cofferdam_core::{
    NatsOptions, Published, S3Options, Secret, StageRequest, Staged, StoreKind, StoreOptions, WriteRequest,
};
use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;

use crate::cancel::{Cancel, token, unless};
use crate::files::NativeWrite;
use crate::promise::promise;
use crate::sandbox::NativeSandbox;

/// One of them; none is the memory of the manager.
#[napi(object)]
pub struct NativeStore {
    pub nats: Option<NativeNats>,
    pub s3: Option<NativeS3>,
    pub folder: Option<String>,
    pub prefix: String,
}

#[napi(object)]
pub struct NativeNats {
    pub servers: Vec<String>,
    pub bucket: String,
    pub create: bool,
    pub user: Option<String>,
    pub password: Option<String>,
    pub token: Option<String>,
    pub credentials_file: Option<String>,
}

#[napi(object)]
pub struct NativeS3 {
    pub bucket: String,
    pub region: String,
    pub endpoint: Option<String>,
    pub access_key_id: String,
    pub secret_access_key: String,
    pub session_token: Option<String>,
}

impl From<NativeStore> for StoreOptions {
    fn from(store: NativeStore) -> StoreOptions {
        let kind = match (store.nats, store.s3, store.folder) {
            (Some(nats), _, _) => StoreKind::Nats(nats.into()),
            (None, Some(s3), _) => StoreKind::S3(s3.into()),
            (None, None, Some(path)) => StoreKind::Folder(path),
            (None, None, None) => StoreKind::Memory,
        };
        StoreOptions { kind, prefix: store.prefix }
    }
}

impl From<NativeNats> for NatsOptions {
    fn from(nats: NativeNats) -> NatsOptions {
        NatsOptions {
            servers: nats.servers.into_iter().map(Secret::from).collect(),
            bucket: nats.bucket,
            create: nats.create,
            user: nats.user.map(Secret::from),
            password: nats.password.map(Secret::from),
            token: nats.token.map(Secret::from),
            credentials_file: nats.credentials_file,
        }
    }
}

impl From<NativeS3> for S3Options {
    fn from(s3: NativeS3) -> S3Options {
        S3Options {
            bucket: s3.bucket,
            region: s3.region,
            endpoint: s3.endpoint,
            access_key_id: s3.access_key_id.into(),
            secret_access_key: s3.secret_access_key.into(),
            session_token: s3.session_token.map(Secret::from),
        }
    }
}

#[napi(object)]
pub struct NativeStaged {
    pub path: String,
    pub size_bytes: f64,
    pub sha256: String,
}

impl From<Staged> for NativeStaged {
    fn from(staged: Staged) -> NativeStaged {
        NativeStaged { path: staged.path, size_bytes: staged.size as f64, sha256: staged.sha256 }
    }
}

#[napi(object)]
pub struct NativePublished {
    pub key: String,
    pub size_bytes: f64,
    pub sha256: String,
}

impl From<Published> for NativePublished {
    fn from(published: Published) -> NativePublished {
        NativePublished { key: published.key, size_bytes: published.size as f64, sha256: published.sha256 }
    }
}

#[napi]
impl NativeSandbox {
    #[napi(ts_return_type = "Promise<NativeStaged>")]
    pub fn stage<'env>(
        &self,
        env: &'env Env,
        key: String,
        write: NativeWrite,
        sha256: Option<String>,
        max_bytes: Option<f64>,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeStaged>> {
        let sandbox = Arc::clone(&self.sandbox);
        let file = WriteRequest::from(write);
        let request = StageRequest { key, file, sha256, max_bytes: max_bytes.map(|most| most as u64) };
        let call = async move { sandbox.stage(&request).await };
        promise(env, unless(token(cancel), call), |_, staged| Ok(staged.into()))
    }

    #[napi(ts_return_type = "Promise<NativePublished>")]
    pub fn publish<'env>(
        &self,
        env: &'env Env,
        path: String,
        key: Option<String>,
        max_bytes: Option<f64>,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativePublished>> {
        let sandbox = Arc::clone(&self.sandbox);
        let most = max_bytes.map(|most| most as u64);
        let call = async move { sandbox.publish(&path, key.as_deref(), most).await };
        promise(env, unless(token(cancel), call), |_, published| Ok(published.into()))
    }
}
