//! Compute mode: one program in a sandbox of its own.
//!
//! Invariant: the sandbox always ends, whether the run fails or its caller goes away. The result is returned when the guest
//! has confirmed its end; the engine removes the box in parallel. With a listener, the sandbox also stays until the listener
//! has read all output.

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

/// Time limit for running nothing; exceeded only if the image is not what its name says.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(5);

/// A program to run, and the artifacts to collect.
#[derive(Clone, Default)]
pub struct RunRequest {
    /// The runtime of the program.
    pub runtime: Runtime,
    /// The sandbox. Scope and session are ignored; the files are written before the code runs.
    pub open: OpenRequest,
    /// The program.
    pub code: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Globs of files to collect, relative to the workdir.
    pub artifacts: Vec<String>,
    /// Time limit of the program.
    pub timeout: Option<Duration>,
    /// Bytes retained of each stream.
    pub max_output: usize,
    /// Larger artifacts are listed without content.
    pub max_artifact: u64,
    /// Artifacts beyond this number are listed without content.
    pub max_artifacts: usize,
    /// Ends the run early.
    pub cancel: CancellationToken,
}

/// The result of a run.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// The program's result.
    pub exec: ExecResult,
    /// The resolved image name.
    pub image: String,
    /// The collected files.
    pub artifacts: Vec<Artifact>,
    /// Phases in order, each with its duration.
    pub phases: Vec<(&'static str, Duration)>,
}

/// A run whose output is read while it runs.
pub struct Running {
    /// The program, once started; an error if it never starts.
    pub program: oneshot::Receiver<Arc<Process>>,
    /// Drop it when no more output is wanted.
    pub listening: oneshot::Sender<()>,
    /// Its result.
    pub result: BoxFuture<'static, Result<RunResult>>,
}

/// The other end of a [`Running`].
struct Listener {
    program: oneshot::Sender<Arc<Process>>,
    listening: oneshot::Receiver<()>,
}

/// Measures consecutive phases.
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
    /// Runs a program in its own sandbox, which is then removed. A program that fails is a result, not an error.
    pub async fn run(&self, request: RunRequest) -> Result<RunResult> {
        self.start_run(request, None).await
    }

    /// As [`Manager::run`], but the output can be read while the program runs. Must be called in a Tokio runtime.
    pub fn run_streaming(&self, request: RunRequest) -> Running {
        let (started, program) = oneshot::channel();
        let (listening, done) = oneshot::channel();
        let listener = Listener { program: started, listening: done };
        Running { program, listening, result: self.start_run(request, Some(listener)) }
    }

    fn start_run(&self, request: RunRequest, listener: Option<Listener>) -> BoxFuture<'static, Result<RunResult>> {
        let manager = self.clone();
        // Its own task: a caller that goes away must not leave a sandbox behind.
        let running = self.background().spawn(async move { manager.run_and_end(request, listener).await });
        async move { running.await.map_err(Error::panicked)? }.boxed()
    }

    async fn run_and_end(&self, request: RunRequest, listener: Option<Listener>) -> Result<RunResult> {
        check(&request)?;
        let mut phases = Phases::new();
        let Opened { sandbox, .. } = self.open(open_request(&request)).await?;
        phases.end("connect");
        let outcome = tokio::select! {
            outcome = work(&sandbox, &request, listener, &mut phases) => outcome,
            () = request.cancel.cancelled() => Err(Error::Aborted),
        };
        let ended = sandbox.retire("run-ended").await;
        let (exec, artifacts) = outcome?;
        ended?;
        phases.end("destroy");
        Ok(RunResult { exec, image: sandbox.image().to_owned(), artifacts, phases: phases.done })
    }
}

/// Runs an empty program with the image's likely runtime, if it has it. The first run in a box takes a quarter longer, because
/// the image is not in the kernel's caches yet: better before a caller waits for it.
pub(crate) async fn warm_up(guest: &Arc<Guest>, image: &str) {
    let words = Runtime::of_image(image).nothing().iter().map(|word| (*word).to_owned());
    let spawn = SpawnRequest {
        command: Command::Program(words.collect()),
        // Leaves no files in the box.
        env: vec![("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned())],
        timeout: Some(WARM_UP_TIMEOUT),
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

/// The sandbox to open: isolated, with the runtime's image by default, and without the files, which are written in a later
/// phase.
fn open_request(request: &RunRequest) -> OpenRequest {
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
    listener: Option<Listener>,
    phases: &mut Phases,
) -> Result<(ExecResult, Vec<Artifact>)> {
    let code = (request.runtime.file().to_owned(), Bytes::from(request.code.clone()));
    let files: Vec<_> = std::iter::once(code).chain(request.open.files.iter().cloned()).collect();
    sandbox.write_many(&files).await?;
    phases.end("prepare_files");
    let exec = execute(sandbox, request, listener).await?;
    phases.end("exec");
    let artifacts = collect(sandbox, request).await?;
    phases.end("collect_artifacts");
    Ok((exec, artifacts))
}

async fn execute(sandbox: &Sandbox, request: &RunRequest, mut listener: Option<Listener>) -> Result<ExecResult> {
    let mut missing = None;
    for program in request.runtime.programs() {
        let words = [*program, request.runtime.file()].map(str::to_owned).into_iter().chain(request.args.clone());
        let spawn = SpawnRequest {
            command: Command::Program(words.collect()),
            timeout: request.timeout,
            max_output: request.max_output,
            ..SpawnRequest::shell("")
        };
        let outcome = match &mut listener {
            Some(_) => run_for_listener(sandbox, spawn, &mut listener).await,
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

/// Runs it for a listener. If the program cannot be started, the listener is left for the next candidate.
async fn run_for_listener(
    sandbox: &Sandbox,
    spawn: SpawnRequest,
    listener: &mut Option<Listener>,
) -> Result<ExecResult> {
    let process = Arc::new(sandbox.spawn(spawn.clone()).await?);
    let listening = listener.take().map(|Listener { program, listening }| {
        // The listener may be gone.
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
