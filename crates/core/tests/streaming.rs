//! A command whose output is read while it runs: one request on the wire, over as many links as it takes.

mod fake;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cofferdam_core::*;
use cofferdam_protocol::{Exit, Frame, Kept, Kind, Output, Reply, Request};
use fake::{code, manager};

fn exited() -> Reply {
    let exit = Exit {
        code: 3,
        signal: None,
        timed_out: false,
        oom_killed: false,
        duration_us: 1,
        // What the guest did not keep, the host has seen all the same.
        stdout: Kept { head: 0, lost: 12 },
        stderr: Kept::default(),
        over_limit: false,
    };
    Reply::Exited(exit, Vec::new())
}

fn output(channel: u32, kind: Kind, seq: u64, text: &str) -> Frame {
    let mut payload = seq.to_le_bytes().to_vec();
    payload.extend_from_slice(text.as_bytes());
    Frame::new(channel, kind, payload)
}

async fn told(execution: &mut Execution) -> Vec<(u64, String)> {
    let mut told = Vec::new();
    loop {
        let chunks = execution.next_many(32).await.unwrap();
        if chunks.is_empty() {
            return told;
        }
        told.extend(chunks.into_iter().map(|chunk| (chunk.seq, String::from_utf8(chunk.data.to_vec()).unwrap())));
    }
}

#[tokio::test]
async fn one_request_brings_the_output_and_the_end() {
    let requests = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&requests);
    let (manager, _) = manager(move |mut end, _| {
        let requests = Arc::clone(&requests);
        async move {
            end.hello().await;
            while let Some((channel, request)) = end.request().await {
                requests.fetch_add(1, Ordering::SeqCst);
                assert!(matches!(&request, Request::Start(start) if start.output == Output::Follow), "{request:?}");
                end.send(&[output(channel, Kind::Stdout, 1, "out"), output(channel, Kind::Stderr, 2, "err")]).await;
                end.reply(channel, &exited()).await;
            }
        }
    });
    let sandbox = manager.open(OpenRequest::default()).await.unwrap();
    let mut execution = sandbox.exec_streaming(ExecRequest::shell("work"));
    assert_eq!(told(&mut execution).await, [(1, "out".to_owned()), (2, "err".to_owned())]);
    let result = execution.result().await.unwrap();
    assert_eq!((result.exit_code, &result.stdout[..], &result.stderr[..]), (3, &b"out"[..], &b"err"[..]));
    assert!(!result.stdout_truncated && !result.stderr_truncated);
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_broken_link_loses_nothing_and_starts_nothing_twice() {
    let (manager, _) = manager(|mut end, number| async move {
        end.hello().await;
        match end.request().await {
            Some((channel, Request::Start(_))) if number == 0 => {
                end.send(&[output(channel, Kind::Stdout, 1, "before ")]).await;
            }
            Some((channel, Request::Attach { since_seq: 1, output: Output::Follow, .. })) => {
                end.send(&[output(channel, Kind::Stdout, 2, "after")]).await;
                end.reply(channel, &exited()).await;
                end.linger().await;
            }
            other => panic!("unexpected {other:?} on link {number}"),
        }
    });
    let sandbox = manager.open(OpenRequest::default()).await.unwrap();
    let mut execution = sandbox.exec_streaming(ExecRequest::shell("slow"));
    assert_eq!(told(&mut execution).await, [(1, "before ".to_owned()), (2, "after".to_owned())]);
    assert_eq!(execution.result().await.unwrap().stdout, b"before after");
}

#[tokio::test]
async fn output_that_was_lost_with_a_link_is_an_error() {
    let (manager, _) = manager(|mut end, number| async move {
        end.hello().await;
        while let Some((channel, request)) = end.request().await {
            match request {
                Request::Start(_) if number == 0 => {
                    return end.send(&[output(channel, Kind::Stdout, 1, "before ")]).await;
                }
                Request::Attach { .. } => end.send(&[output(channel, Kind::Stdout, 7, "much later")]).await,
                Request::Kill { .. } => end.reply(channel, &Reply::Done).await,
                other => panic!("unexpected {other:?} on link {number}"),
            }
        }
    });
    let sandbox = manager.open(OpenRequest::default()).await.unwrap();
    let execution = sandbox.exec_streaming(ExecRequest::shell("much"));
    assert_eq!(code(execution.result().await), "SANDBOX_LOST");
}

#[tokio::test]
async fn an_error_tells_whether_anything_was_sent() {
    let (manager, fake) = manager(|mut end, _| async move {
        end.hello().await;
        end.request().await;
    });
    let sandbox = manager.open(OpenRequest::default()).await.unwrap();
    let lost = async {
        let mut execution = sandbox.exec_streaming(ExecRequest::shell("sent"));
        execution.next_many(1).await.unwrap_err()
    };
    let vanishing = async {
        while fake.setup.lock().await.take().is_none() {
            tokio::task::yield_now().await;
        }
    };
    let (lost, ()) = tokio::join!(lost, vanishing);
    assert_eq!((lost.code(), lost.detail("sent")), (Some(ErrorCode::SandboxLost), None));
    let list = ListRequest { path: "/".to_owned(), recursive: false, max_entries: 10 };
    let late = [
        sandbox.exec(ExecRequest::shell("late")).await.unwrap_err(),
        sandbox.exec_streaming(ExecRequest::shell("late")).result().await.unwrap_err(),
        sandbox.spawn(SpawnRequest::shell("late")).await.err().unwrap(),
        sandbox.list(&list).await.unwrap_err(),
    ];
    for error in late {
        assert_eq!(error.code(), Some(ErrorCode::SandboxLost));
        assert_eq!(error.detail("sent"), Some(&false.into()), "{error}");
    }
}
