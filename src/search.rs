//! Search and edit in a sandbox's files.

use std::sync::Arc;

use cofferdam_core::{GlobRequest, GrepRequest, Hit, ReplaceRequest, SearchScope};
use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;

use crate::cancel::{Cancel, token, unless};
use crate::convert::{bytes, text};
use crate::files::{NativeContent, NativeEntry, content};
use crate::options::NativeFile;
use crate::promise::{as_is, promise};
use crate::sandbox::NativeSandbox;

#[napi(object)]
pub struct NativeSearchScope {
    pub path: String,
    pub exclude: Vec<String>,
    pub gitignore: bool,
    pub hidden: bool,
}

impl From<NativeSearchScope> for SearchScope {
    fn from(scope: NativeSearchScope) -> SearchScope {
        SearchScope { path: scope.path, exclude: scope.exclude, gitignore: scope.gitignore, hidden: scope.hidden }
    }
}

#[napi(object)]
pub struct NativeGlob {
    pub scope: NativeSearchScope,
    pub patterns: Vec<String>,
    pub max_results: f64,
}

#[napi(object, object_from_js = false)]
pub struct NativeEntries {
    pub entries: Vec<NativeEntry>,
    pub truncated: bool,
}

#[napi(object)]
pub struct NativeGrep {
    pub scope: NativeSearchScope,
    pub pattern: String,
    pub literal: bool,
    pub ignore_case: bool,
    pub include: Vec<String>,
    pub before: f64,
    pub after: f64,
    pub max_matches: f64,
    pub max_matches_per_file: f64,
    pub max_file_bytes: f64,
}

impl From<NativeGrep> for GrepRequest {
    fn from(grep: NativeGrep) -> GrepRequest {
        GrepRequest {
            scope: grep.scope.into(),
            pattern: grep.pattern,
            literal: grep.literal,
            ignore_case: grep.ignore_case,
            include: grep.include,
            before: grep.before as u64,
            after: grep.after as u64,
            max_matches: grep.max_matches as u64,
            max_per_file: grep.max_matches_per_file as u64,
            max_file_bytes: grep.max_file_bytes as u64,
        }
    }
}

#[napi(object, object_from_js = false)]
pub struct NativeMatch {
    pub path: String,
    pub line: f64,
    pub column: f64,
    pub text: String,
    pub before: Vec<String>,
    pub after: Vec<String>,
}

impl From<Hit> for NativeMatch {
    fn from(hit: Hit) -> NativeMatch {
        NativeMatch {
            path: text(hit.path),
            line: hit.line as f64,
            column: hit.column as f64,
            text: text(hit.text),
            before: hit.before.into_iter().map(text).collect(),
            after: hit.after.into_iter().map(text).collect(),
        }
    }
}

#[napi(object, object_from_js = false)]
pub struct NativeMatches {
    pub matches: Vec<NativeMatch>,
    pub truncated: bool,
    pub files_searched: f64,
    pub files_skipped: f64,
}

#[napi(object)]
pub struct NativeReplace {
    pub path: String,
    pub search: String,
    pub replacement: String,
    pub all: bool,
    pub expected: Option<f64>,
}

#[napi(object)]
pub struct NativeReplaced {
    pub path: String,
    pub replacements: f64,
}

#[napi]
impl NativeSandbox {
    #[napi(ts_return_type = "Promise<NativeEntries>")]
    pub fn glob<'env>(
        &self,
        env: &'env Env,
        glob: NativeGlob,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeEntries>> {
        let sandbox = Arc::clone(&self.sandbox);
        let NativeGlob { scope, patterns, max_results } = glob;
        let request = GlobRequest { scope: scope.into(), patterns, max_results: max_results as u64 };
        promise(env, unless(token(cancel), async move { sandbox.glob(&request).await }), |_, found| {
            let entries = found.results.into_iter().map(Into::into).collect();
            Ok(NativeEntries { entries, truncated: found.truncated })
        })
    }

    #[napi(ts_return_type = "Promise<NativeMatches>")]
    pub fn grep<'env>(
        &self,
        env: &'env Env,
        grep: NativeGrep,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeMatches>> {
        let sandbox = Arc::clone(&self.sandbox);
        let request = GrepRequest::from(grep);
        promise(env, unless(token(cancel), async move { sandbox.grep(&request).await }), |_, found| {
            Ok(NativeMatches {
                matches: found.results.into_iter().map(Into::into).collect(),
                truncated: found.truncated,
                files_searched: found.files as f64,
                files_skipped: found.skipped as f64,
            })
        })
    }

    #[napi(ts_return_type = "Promise<NativeReplaced>")]
    pub fn replace<'env>(
        &self,
        env: &'env Env,
        replace: NativeReplace,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeReplaced>> {
        let sandbox = Arc::clone(&self.sandbox);
        let NativeReplace { path, search, replacement, all, expected } = replace;
        let expected = expected.map(|expected| expected as u64);
        let request = ReplaceRequest { path, search, replacement, all, expected };
        promise(env, unless(token(cancel), async move { sandbox.replace(&request).await }), |_, (path, count)| {
            Ok(NativeReplaced { path, replacements: count as f64 })
        })
    }

    #[napi(ts_return_type = "Promise<NativeContent>")]
    pub fn read_lines<'env>(
        &self,
        env: &'env Env,
        path: String,
        from: f64,
        to: Option<f64>,
        limit: f64,
        cancel: Option<&Cancel>,
    ) -> napi::Result<PromiseRaw<'env, NativeContent>> {
        let sandbox = Arc::clone(&self.sandbox);
        let to = to.map_or(u64::MAX, |to| to as u64);
        let call = async move { sandbox.read_lines(&path, from as u64, to, limit as u64).await };
        promise(env, unless(token(cancel), call), content)
    }

    #[napi(ts_return_type = "Promise<void>")]
    pub fn write_many<'env>(&self, env: &'env Env, files: Vec<NativeFile>) -> napi::Result<PromiseRaw<'env, ()>> {
        let sandbox = Arc::clone(&self.sandbox);
        let files: Vec<_> = files.into_iter().map(|file| (file.path, bytes(&file.data))).collect();
        promise(env, async move { sandbox.write_many(&files).await }, as_is)
    }
}
