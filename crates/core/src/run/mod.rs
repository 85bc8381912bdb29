//! Compute mode: one program in a sandbox of its own.
//!
//! Invariant: whatever becomes of the run, and of whoever waits for it, the sandbox is ended. The answer is given when its
//! guest has said that it ends; the engine makes sure of that beside. Where somebody listens to the program, the sandbox also
//! stays until they have heard it all.

mod artifacts;
mod runtime;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::guest::{ExecRequest, ExecResult, Guest, Process, SpawnRequest, check_patterns, leads_out, overdue};
use crate::manager::{Manager, Opened};
use crate::options::{DEFAULT_WORKDIR, OpenRequest};
use crate::sandbox::Sandbox;
use crate::{Command, Error, ErrorCode, Result, Session};

use artifacts::collect;
pub use artifacts::{Artifact, Omitted};
pub use runtime::Runtime;

/// Doing nothing takes no longer, but in an image that is not what its name says.
const WARMING: Duration = Duration::from_secs(5);

/// A program to run, and what to bring back.
#[derive(Clone, Default)]
pub struct RunRequest {
    /// What runs it.
    pub runtime: Runtime,
    /// The sandbox; its scope and session do not matter, and its files are written before the code runs.
    pub open: OpenRequest,
    /// The program.
    pub code: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Globs under the workdir.
    pub artifacts: Vec<String>,
    /// Of the program.
    pub timeout: Option<Duration>,
    /// How much of each stream is kept.
    pub max_output: usize,
    /// Larger artifacts are only named.
    pub max_artifact: u64,
    /// Artifacts beyond so many are only named.
    pub max_artifacts: usize,
    /// Ends the run early.
    pub cancel: CancellationToken,
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// How the program went.
    pub exec: ExecResult,
    /// Resolved.
    pub image: String,
    /// What it left.
    pub artifacts: Vec<Artifact>,
    /// Its parts, in order, and how long each took.
    pub phases: Vec<(&'static str, Duration)>,
}

/// A run under way, whose program somebody listens to.
pub struct Running {
    /// The program, once it has begun; an error where it never does.
    pub program: oneshot::Receiver<Arc<Process>>,
    /// Dropped by whoever listens when they have heard enough.
    pub listening: oneshot::Sender<()>,
    /// What came of it.
    pub result: BoxFuture<'static, Result<RunResult>>,
}

/// The other end of a [`Running`].
struct Audience {
    program: oneshot::Sender<Arc<Process>>,
    listening: oneshot::Receiver<()>,
}

/// Takes the time of one part after the other.
struct Phases {
    began: Instant,
    done: Vec<(&'static str, Duration)>,
}

impl Phases {
    fn new() -> Phases {
        Phases { began: Instant::now(), done: Vec::with_capacity(5) }
    }

    fn end(&mut self, name: &'static str) {
        let now = Instant::now();
        self.done.push((name, now - std::mem::replace(&mut self.began, now)));
    }
}

impl Manager {
    /// Runs a program in a sandbox of its own, which is gone afterwards. A program that fails is a result, not an error.
    pub async fn run(&self, request: RunRequest) -> Result<RunResult> {
        self.start_run(request, None).await
    }

    /// As [`Manager::run`], for somebody who listens to the program while it runs. To be called in a runtime.
    pub fn run_aloud(&self, request: RunRequest) -> Running {
        let (begin, program) = oneshot::channel();
        let (listening, listens) = oneshot::channel();
        let audience = Audience { program: begin, listening: listens };
        Running { program, listening, result: self.start_run(request, Some(audience)) }
    }

    fn start_run(&self, request: RunRequest, audience: Option<Audience>) -> BoxFuture<'static, Result<RunResult>> {
        let manager = self.clone();
        // A task of its own: a caller that goes away must not leave a sandbox behind.
        let running = self.background().spawn(async move { manager.run_and_end(request, audience).await });
        let crashed = |error| Error::new(ErrorCode::Internal, format!("a run crashed: {error}"));
        async move { running.await.map_err(crashed)? }.boxed()
    }

    async fn run_and_end(&self, request: RunRequest, audience: Option<Audience>) -> Result<RunResult> {
        check(&request)?;
        let mut phases = Phases::new();
        let Opened { sandbox, .. } = self.open(order(&request)).await?;
        phases.end("connect");
        let outcome = tokio::select! {
            outcome = work(&sandbox, &request, audience, &mut phases) => outcome,
            () = request.cancel.cancelled() => Err(Error::Aborted),
        };
        let ended = sandbox.retire("run-ended").await;
        let (exec, artifacts) = outcome?;
        ended?;
        phases.end("destroy");
        Ok(RunResult { exec, image: sandbox.image().to_owned(), artifacts, phases: phases.done })
    }
}

/// Runs nothing by what an image is most likely there for, where it has that. A first run in a box finds nothing of its image
/// in the kernel's caches, and takes a quarter longer: better before anybody waits for it.
pub(crate) async fn warm_up(guest: &Arc<Guest>, image: &str) {
    let words = Runtime::of_image(image).nothing().iter().map(|word| (*word).to_owned());
    let spawn = SpawnRequest {
        command: Command::Program(words.collect()),
        // The box stays as it was.
        env: vec![("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned())],
        timeout: Some(WARMING),
        ..SpawnRequest::shell("")
    };
    let _ = guest.exec(ExecRequest { spawn, stdin: None, cancel: CancellationToken::new() }).await;
}

fn check(request: &RunRequest) -> Result<()> {
    let (file, workdir) = (request.runtime.file(), request.open.workdir.as_deref().unwrap_or(DEFAULT_WORKDIR));
    let is_code = |path: &str| {
        let path = path.strip_prefix(workdir).map_or(path, |rest| rest.trim_start_matches('/'));
        path.trim_start_matches("./") == file
    };
    if request.open.files.iter().any(|(path, _)| is_code(path)) {
        let message = format!("files has {file:?}, which is where the code goes; give it another name");
        return Err(Error::invalid(message).with("path", file));
    }
    check_patterns("artifacts", &request.artifacts)?;
    if let Some(pattern) = request.artifacts.iter().find(|pattern| leads_out(pattern)) {
        let message =
            format!("artifacts has {pattern:?}, which is not below the workdir; let the code copy it to there first");
        return Err(Error::invalid(message));
    }
    if request.code.trim().is_empty() {
        return Err(Error::invalid("code is empty; give the program to run"));
    }
    Ok(())
}

/// The sandbox to open: nobody else's, with the runtime's image unless told, and without the files, which have a phase of
/// their own.
fn order(request: &RunRequest) -> OpenRequest {
    OpenRequest {
        session: Session::Isolated,
        scope: Default::default(),
        image: request.open.image.clone().or_else(|| Some(request.runtime.as_str().to_owned())),
        persist: false,
        files: Vec::new(),
        cancel: request.cancel.clone(),
        ..request.open.clone()
    }
}

async fn work(
    sandbox: &Sandbox,
    request: &RunRequest,
    audience: Option<Audience>,
    phases: &mut Phases,
) -> Result<(ExecResult, Vec<Artifact>)> {
    let code = (request.runtime.file().to_owned(), Bytes::from(request.code.clone()));
    let files: Vec<_> = std::iter::once(code).chain(request.open.files.iter().cloned()).collect();
    sandbox.write_many(&files).await?;
    phases.end("prepare_files");
    let exec = execute(sandbox, request, audience).await?;
    phases.end("exec");
    let artifacts = collect(sandbox, request).await?;
    phases.end("collect_artifacts");
    Ok((exec, artifacts))
}

async fn execute(sandbox: &Sandbox, request: &RunRequest, mut audience: Option<Audience>) -> Result<ExecResult> {
    let mut missing = None;
    for program in request.runtime.programs() {
        let words = [*program, request.runtime.file()].map(str::to_owned).into_iter().chain(request.args.clone());
        let spawn = SpawnRequest {
            command: Command::Program(words.collect()),
            timeout: request.timeout,
            max_output: request.max_output,
            ..SpawnRequest::shell("")
        };
        let outcome = match &mut audience {
            Some(_) => perform(sandbox, spawn, &mut audience).await,
            None => sandbox.exec(ExecRequest { spawn, stdin: None, cancel: CancellationToken::new() }).await,
        };
        match outcome {
            Err(error) if error.code() == Some(ErrorCode::CommandNotFound) => missing = Some(error),
            outcome => return outcome,
        }
    }
    let runtime = request.runtime.as_str();
    let message = format!(
        "image \"{}\" cannot run {runtime}: it has none of {}; leave image out, or name one that has it",
        sandbox.image(),
        request.runtime.programs().join(", ")
    );
    let missing = missing.map(|error| error.to_string()).unwrap_or_default();
    Err(Error::new(ErrorCode::CommandNotFound, message).with("runtime", runtime).with("cause", missing))
}

/// Runs it before an audience, which a program that cannot be started leaves to the next.
async fn perform(sandbox: &Sandbox, spawn: SpawnRequest, audience: &mut Option<Audience>) -> Result<ExecResult> {
    let process = Arc::new(sandbox.spawn(spawn.clone()).await?);
    let listening = audience.take().map(|Audience { program, listening }| {
        // Who is gone hears nothing.
        let _ = program.send(Arc::clone(&process));
        listening
    });
    let never = CancellationToken::new();
    let result = tokio::select! {
        result = process.wait(None, &never) => result?,
        error = overdue(&spawn) => return Err(error),
    };
    if let Some(listening) = listening {
        let _ = listening.await;
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str) -> RunRequest {
        let open = OpenRequest { files: vec![(path.to_owned(), Bytes::new())], ..OpenRequest::default() };
        RunRequest { code: "1".to_owned(), open, ..RunRequest::default() }
    }

    #[test]
    fn a_file_cannot_take_the_place_of_the_code() {
        for path in ["main.py", "./main.py", "/workspace/main.py", "/workspace//main.py"] {
            assert_eq!(check(&request(path)).unwrap_err().code(), Some(ErrorCode::InvalidArgument), "{path}");
        }
        for path in ["main.js", "lib/main.py", "/tmp/main.py"] {
            assert!(check(&request(path)).is_ok(), "{path}");
        }
    }
}
