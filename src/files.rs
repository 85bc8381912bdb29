//! A sandbox's files.

use std::sync::Arc;

use cofferdam_core::{FileContent, FileEntry, FileReader, FileType, FileWriter, ListRequest, Sandbox, WriteRequest};
use napi::Env;
use napi::bindgen_prelude::{Buffer, BufferSlice, PromiseRaw, Uint8Array};
use napi_derive::napi;
use tokio::sync::Mutex;

use crate::cancel::{Cancel, token, unless};
use crate::convert::{buffer, bytes};
use crate::promise::{as_is, promise};
use crate::sandbox::NativeSandbox;

#[napi(object)]
pub struct NativeWrite {
    pub path: String,
    pub mode: Option<u32>,
    pub keep_existing: bool,
    pub user: Option<String>,
    pub append: bool,
}

impl From<NativeWrite> for WriteRequest {
    fn from(write: NativeWrite) -> WriteRequest {
        WriteRequest {
            path: write.path,
            mode: write.mode,
            keep_existing: write.keep_existing,
            user: write.user,
            append: write.append,
        }
    }
}

#[napi(object)]
pub struct NativeWritten {
    pub path: String,
    pub size_bytes: f64,
}

fn written(_: &Env, (path, size): (String, u64)) -> napi::Result<NativeWritten> {
    Ok(NativeWritten { path, size_bytes: size as f64 })
}

#[napi(object, object_from_js = false)]
pub struct NativeContent {
    pub bytes: Buffer,
    pub truncated: bool,
    pub size_bytes: f64,
}

pub(crate) fn content(_: &Env, content: FileContent) -> napi::Result<NativeContent> {
    let FileContent { bytes, truncated, size } = content;
    Ok(NativeContent { bytes: bytes.into(), truncated, size_bytes: size as f64 })
}

#[napi(object)]
pub struct NativeEntry {
    pub path: String,
    #[napi(ts_type = "'file' | 'dir' | 'symlink' | 'other'")]
    pub file_type: String,
    pub size_bytes: f64,
    pub mode: u32,
    pub mtime_ms: f64,
    pub target: Option<String>,
}

impl From<FileEntry> for NativeEntry {
    fn from(entry: FileEntry) -> NativeEntry {
        let file_type = match entry.file_type {
            FileType::File => "file",
            FileType::Dir => "dir",
            FileType::Symlink => "symlink",
            FileType::Other => "other",
        };
        NativeEntry {
            path: String::from_utf8_lossy(&entry.path).into_owned(),
            file_type: file_type.to_owned(),
            size_bytes: entry.size as f64,
            mode: entry.mode,
            mtime_ms: entry.mtime_ms as f64,
            target: entry.target.map(|target| String::from_utf8_lossy(&target).into_owned()),
        }
    }
}

#[napi]
impl NativeSandbox {
    #[napi(ts_return_type = "Promise<NativeWritten>")]
    pub fn write_file<'env>(
        &self,
        env: &'env Env,
        write: NativeWrite,
        data: Uint8Array,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeWritten>> {
        let (sandbox, data) = (Arc::clone(&self.sandbox), bytes(&data));
        let call = async move { sandbox.write_file(&write.into(), data).await };
        promise(env, unless(token(cancel), call), written)
    }

    #[napi(ts_return_type = "Promise<NativeFileWriter>")]
    pub fn file_writer<'env>(
        &self,
        env: &'env Env,
        write: NativeWrite,
    ) -> napi::Result<PromiseRaw<'env, NativeFileWriter>> {
        let (sandbox, of) = (Arc::clone(&self.sandbox), Arc::clone(&self.sandbox));
        promise(env, async move { sandbox.file_writer(&write.into()).await }, move |_, writer| {
            Ok(NativeFileWriter { writer: Arc::new(Mutex::new(Some(writer))), sandbox: of })
        })
    }

    #[napi(ts_return_type = "Promise<NativeContent>")]
    pub fn read_file<'env>(
        &self,
        env: &'env Env,
        path: String,
        offset: f64,
        limit: f64,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeContent>> {
        let sandbox = Arc::clone(&self.sandbox);
        let call = async move { sandbox.read_file(&path, offset as u64, limit as u64).await };
        promise(env, unless(token(cancel), call), content)
    }

    #[napi(ts_return_type = "Promise<NativeFileReader>")]
    pub fn file_reader<'env>(
        &self,
        env: &'env Env,
        path: String,
        offset: f64,
        limit: f64,
    ) -> napi::Result<PromiseRaw<'env, NativeFileReader>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.file_reader(&path, offset as u64, limit as u64).await }, |_, reader| {
            Ok(NativeFileReader { reader: Arc::new(Mutex::new(reader)) })
        })
    }

    #[napi(ts_return_type = "Promise<NativeEntry[]>")]
    pub fn list<'env>(
        &self,
        env: &'env Env,
        path: String,
        recursive: bool,
        max_entries: f64,
    ) -> napi::Result<PromiseRaw<'env, Vec<NativeEntry>>> {
        let sandbox = Arc::clone(&self.sandbox);
        let request = ListRequest { path, recursive, max_entries: max_entries as u64 };
        promise(env, async move { sandbox.list(&request).await }, |_, entries| {
            Ok(entries.into_iter().map(Into::into).collect())
        })
    }

    #[napi(ts_return_type = "Promise<NativeEntry | null>")]
    pub fn stat<'env>(&self, env: &'env Env, path: String) -> napi::Result<PromiseRaw<'env, Option<NativeEntry>>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.stat(&path).await }, |_, entry| Ok(entry.map(Into::into)))
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn mkdir<'env>(&self, env: &'env Env, path: String, mode: Option<u32>) -> napi::Result<PromiseRaw<'env, ()>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.mkdir(&path, mode).await }, as_is)
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn rename<'env>(&self, env: &'env Env, from: String, to: String) -> napi::Result<PromiseRaw<'env, ()>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.rename(&from, &to).await }, as_is)
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn copy<'env>(&self, env: &'env Env, from: String, to: String) -> napi::Result<PromiseRaw<'env, ()>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.copy(&from, &to).await }, as_is)
    }

    #[napi(ts_return_type = "Promise<boolean>")]
    pub fn remove<'env>(&self, env: &'env Env, path: String, recursive: bool) -> napi::Result<PromiseRaw<'env, bool>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise(env, async move { sandbox.remove(&path, recursive).await }, as_is)
    }
}

/// A file that is being written piece by piece. Not finished, it never was.
#[napi]
pub struct NativeFileWriter {
    writer: Arc<Mutex<Option<FileWriter>>>,
    sandbox: Arc<Sandbox>,
}

#[napi]
impl NativeFileWriter {
    #[napi(ts_return_type = "Promise<void>")]
    pub fn write<'env>(
        &self,
        env: &'env Env,
        data: Uint8Array,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let (writer, data) = (Arc::clone(&self.writer), bytes(&data));
        let call = async move {
            match &mut *writer.lock().await {
                Some(writer) => writer.write(data).await,
                None => Ok(()),
            }
        };
        promise(env, unless(token(cancel), call), as_is)
    }

    #[napi(ts_return_type = "Promise<NativeWritten>")]
    pub fn finish<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, NativeWritten>> {
        let writer = Arc::clone(&self.writer);
        let call = async move {
            match writer.lock().await.take() {
                Some(writer) => writer.finish().await,
                None => {
                    Err(cofferdam_core::Error::new(cofferdam_core::ErrorCode::Internal, "a file was finished twice"))
                }
            }
        };
        promise(env, call, written)
    }

    /// Rejects when the sandbox is gone, and not before.
    #[napi(ts_return_type = "Promise<never>")]
    pub fn lost<'env>(&self, env: &'env Env, cancel: &Cancel) -> napi::Result<PromiseRaw<'env, ()>> {
        let sandbox = Arc::clone(&self.sandbox);
        let call = async move { Err::<(), _>(sandbox.lost().await) };
        promise(env, unless(token(Some(cancel)), call), as_is)
    }

    #[napi]
    pub fn abandon(&self) {
        if let Ok(mut writer) = self.writer.try_lock() {
            writer.take();
        }
    }
}

/// A file that is being read piece by piece.
#[napi]
pub struct NativeFileReader {
    reader: Arc<Mutex<FileReader>>,
}

#[napi]
impl NativeFileReader {
    /// The next piece; null at the end.
    #[napi(ts_return_type = "Promise<Buffer | null>")]
    pub fn next<'env>(
        &self,
        env: &'env Env,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, Option<BufferSlice<'env>>>> {
        let reader = Arc::clone(&self.reader);
        let call = async move { reader.lock().await.next().await };
        promise(env, unless(token(cancel), call), |env, piece| piece.map(|piece| buffer(env, piece)).transpose())
    }
}
