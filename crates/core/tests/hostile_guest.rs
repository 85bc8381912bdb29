//! A guest that was taken over by an attacker. Whatever it sends, every call under way rejects with a clear error, the
//! host neither panics nor hangs nor grows, and another sandbox is not affected.

mod fake;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use cofferdam_core::*;
use cofferdam_protocol::{
    Exit, Frame, GENERATION, HEADER_LEN, Kept, Kind, LINK_CHANNEL, Output, Reply, Request, WINDOW, encode, encode_data,
    encode_header,
};
use fake::{code, manager};
use proptest::prelude::*;

/// Opens a sandbox, has three calls wait in it, and gives how each of them ended.
async fn pending_calls(manager: &Manager) -> [&'static str; 3] {
    let sandbox = manager.open(OpenRequest::default()).await.expect("the handshake is fine");
    let list = ListRequest { path: "/".to_owned(), recursive: false, max_entries: 10 };
    let calls = async {
        let (exec, read, listed) = tokio::join!(
            sandbox.exec(ExecRequest::shell("true")),
            sandbox.read_file("/x", 0, 1 << 20),
            sandbox.list(&list)
        );
        [code(exec), code(read), code(listed)]
    };
    tokio::time::timeout(Duration::from_secs(20), calls).await.expect("no call hangs")
}

/// After the third request, sends `poison`.
async fn poisoned(poison: impl Fn() -> Vec<u8>) -> [&'static str; 3] {
    let poison = poison();
    let (manager, _) = manager(move |mut end, _| {
        let poison = poison.clone();
        async move {
            end.hello().await;
            for _ in 0..3 {
                end.request().await;
            }
            end.raw(&poison).await;
            end.linger().await;
        }
    });
    pending_calls(&manager).await
}

fn frame_bytes(frame: &Frame) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    frame.encode(&mut bytes);
    bytes.to_vec()
}

const ALL_PROTOCOL: [&str; 3] = ["PROTOCOL"; 3];

#[tokio::test]
async fn garbage_rejects_every_call_under_way() {
    assert_eq!(poisoned(|| vec![0xff; 100_000]).await, ALL_PROTOCOL);
    assert_eq!(poisoned(|| b"HTTP/1.1 200 OK\r\n\r\n".to_vec()).await, ALL_PROTOCOL);
}

#[tokio::test]
async fn a_frame_for_a_channel_that_was_never_opened_rejects_every_call() {
    assert_eq!(poisoned(|| frame_bytes(&Frame::new(4711, Kind::Data, &b"x"[..]))).await, ALL_PROTOCOL);
    assert_eq!(poisoned(|| frame_bytes(&Frame::new(LINK_CHANNEL, Kind::Message, &b"x"[..]))).await, ALL_PROTOCOL);
}

#[tokio::test]
async fn more_data_than_was_granted_rejects_every_call() {
    let flood = || {
        let piece = frame_bytes(&Frame::new(2, Kind::Stdout, vec![0; 64 * 1024]));
        piece.repeat(2 * WINDOW as usize / (64 * 1024))
    };
    // The exec may already have failed by itself on chunks that do not count up; the others must not hang.
    let [_, read, listed] = poisoned(flood).await;
    assert_eq!([read, listed], ["PROTOCOL"; 2]);
}

#[tokio::test]
async fn more_answers_than_a_request_has_reject_every_call() {
    let twice = || {
        let mut bytes = Vec::new();
        for _ in 0..3 {
            bytes.extend(encode(4, &Reply::Done).unwrap().iter().flat_map(frame_bytes));
        }
        bytes
    };
    let [exec, read, _] = poisoned(twice).await;
    assert_eq!([exec, read], ["PROTOCOL"; 2]);
}

#[tokio::test]
async fn impossible_lengths_kinds_messages_and_credit_reject_every_call() {
    let header = |length: u32, kind: u8| {
        let mut bytes = Vec::new();
        bytes.put_u32_le(length);
        bytes.put_u32_le(2);
        bytes.put_u8(kind);
        bytes
    };
    assert_eq!(poisoned(|| header(u32::MAX, 0)).await, ALL_PROTOCOL);
    assert_eq!(poisoned(|| header(0, 99)).await, ALL_PROTOCOL);
    assert_eq!(poisoned(|| frame_bytes(&Frame::new(2, Kind::Message, &[0xff; 50][..]))).await, ALL_PROTOCOL);
    assert_eq!(poisoned(|| frame_bytes(&Frame::credit(2, u32::MAX))).await, ALL_PROTOCOL);
    assert_eq!(poisoned(|| frame_bytes(&Frame::new(2, Kind::Credit, &b"x"[..]))).await, ALL_PROTOCOL);
    assert_eq!(poisoned(|| frame_bytes(&Frame::new(2, Kind::Stdout, &b"x"[..]))).await, ALL_PROTOCOL);
    assert_eq!(poisoned(|| frame_bytes(&Frame::end(2))).await, ALL_PROTOCOL);
}

#[tokio::test]
async fn an_endless_message_rejects_every_call() {
    let endless = || frame_bytes(&Frame::new(2, Kind::More, vec![0; 60_000])).repeat(100);
    assert_eq!(poisoned(endless).await, ALL_PROTOCOL);
}

#[tokio::test]
async fn an_answer_to_another_question_rejects_only_its_call() {
    let (manager, _) = manager(|mut end, _| async move {
        end.hello().await;
        while let Some((channel, request)) = end.request().await {
            match request {
                Request::Stat { .. } => end.reply(channel, &Reply::Removed(true)).await,
                _ => end.reply(channel, &Reply::Done).await,
            }
        }
    });
    let sandbox = manager.open(OpenRequest::default()).await.unwrap();
    assert_eq!(code(sandbox.stat("/x").await), "PROTOCOL");
    assert_eq!(code(sandbox.ping().await), "no error");
}

/// How a search ends for which the guest sends `found`.
async fn searched(found: Vec<Hit>) -> &'static str {
    let (manager, _) = manager(move |mut end, _| {
        let found = found.clone();
        async move {
            end.hello().await;
            while let Some((channel, _)) = end.request().await {
                let batch = encode(channel, &found).unwrap().remove(0).payload;
                end.send(&[Frame::new(channel, Kind::Data, batch)]).await;
                end.reply(channel, &Reply::Searched { truncated: false, files: u64::MAX, skipped: u64::MAX }).await;
            }
        }
    });
    let sandbox = manager.open(OpenRequest::default()).await.unwrap();
    let scope = SearchScope { path: "/".to_owned(), ..SearchScope::default() };
    let grep = GrepRequest { scope, max_matches: 2, before: 1, ..GrepRequest::default() };
    code(tokio::time::timeout(Duration::from_secs(20), sandbox.grep(&grep)).await.expect("it does not hang"))
}

#[tokio::test]
async fn a_search_takes_no_more_than_it_asked_for() {
    let hit = |text: usize, before: usize, after: usize| Hit {
        path: b"/x".to_vec(),
        text: vec![b'x'; text],
        before: vec![vec![]; before],
        after: vec![vec![]; after],
        ..Hit::default()
    };
    assert_eq!(searched(vec![hit(500, 1, 0); 2]).await, "no error");
    assert_eq!(searched(vec![hit(1, 0, 0); 3]).await, "PROTOCOL");
    assert_eq!(searched(vec![hit(501, 0, 0)]).await, "PROTOCOL");
    assert_eq!(searched(vec![hit(1, 2, 0)]).await, "PROTOCOL");
    assert_eq!(searched(vec![hit(1, 0, 1)]).await, "PROTOCOL");
    assert_eq!(searched(vec![Hit { path: vec![b'x'; 5000], ..hit(1, 0, 0) }]).await, "PROTOCOL");
}

#[tokio::test]
async fn what_must_not_be_done_twice_is_not_tried_again_when_the_link_breaks() {
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    let (manager, _) = manager(move |mut end, _| {
        let seen = Arc::clone(&seen);
        async move {
            end.hello().await;
            if let Some((_, Request::Replace(_) | Request::Write(_))) = end.request().await {
                seen.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let sandbox = manager.open(OpenRequest::default()).await.unwrap();
    let replace = ReplaceRequest { path: "/x".to_owned(), search: "a".to_owned(), ..ReplaceRequest::default() };
    assert_eq!(code(sandbox.replace(&replace).await), "SANDBOX_LOST");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let append = WriteRequest { path: "/x".to_owned(), append: true, ..WriteRequest::default() };
    assert_eq!(code(sandbox.write_file(&append, "more".into()).await), "SANDBOX_LOST");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn who_does_not_say_hello_is_no_guest_and_its_box_is_removed() {
    let strangers: [&'static [u8]; 3] = [b"SSH-2.0-OpenSSH\r\n", &[0xff; 64], b""];
    for words in strangers {
        let (manager, fake) = manager(move |mut end, _| async move { end.raw(words).await });
        let outcome = manager.open(OpenRequest::default()).await;
        assert!(matches!(code(outcome), "PROTOCOL" | "SANDBOX_LOST"));
        assert_eq!(fake.gone.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn a_guest_of_another_generation_is_named() {
    let (manager, _) = manager(|mut end, _| async move {
        let mut payload = b"CFDM".to_vec();
        payload.put_u16_le(GENERATION + 1);
        end.raw(&encode_header(LINK_CHANNEL, Kind::Message, payload.len())).await;
        end.raw(&payload).await;
        end.linger().await;
    });
    let error = manager.open(OpenRequest::default()).await.err().expect("it is refused");
    assert_eq!(error.code(), Some(ErrorCode::Unsupported));
    assert!(error.to_string().contains(&format!("generation {}", GENERATION + 1)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_says_nothing_is_given_up() {
    let (manager, _) = manager(|end, _| end.linger());
    assert_eq!(code(manager.open(OpenRequest::default()).await), "SANDBOX_LOST");
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_never_says_how_a_command_ended_is_given_up() {
    let (manager, _) = manager(|mut end, _| async move {
        end.hello().await;
        end.linger().await;
    });
    let sandbox = manager.open(OpenRequest::default()).await.unwrap();
    let mut exec = ExecRequest::shell("true");
    exec.spawn.timeout = Some(Duration::from_secs(1));
    assert_eq!(code(sandbox.exec(exec).await), "PROTOCOL");
}

fn exited() -> Reply {
    Reply::Exited(
        Exit {
            code: 0,
            signal: None,
            timed_out: false,
            oom_killed: false,
            duration_us: 1,
            stdout: Kept::default(),
            stderr: Kept::default(),
            over_limit: false,
        },
        Vec::new(),
    )
}

fn output(channel: u32, seq: u64, text: &str) -> Frame {
    let mut payload = seq.to_le_bytes().to_vec();
    payload.extend_from_slice(text.as_bytes());
    Frame::new(channel, Kind::Stdout, payload)
}

#[tokio::test]
async fn a_command_survives_a_broken_link_and_is_started_once() {
    let starts = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&starts);
    let (manager, _) = manager(move |mut end, number| {
        let starts = Arc::clone(&starts);
        async move {
            end.hello().await;
            match end.request().await {
                Some((channel, Request::Start(_))) if number == 0 => {
                    starts.fetch_add(1, Ordering::SeqCst);
                    end.send(&[output(channel, 1, "before ")]).await;
                    // The link breaks here.
                }
                Some((channel, Request::Attach { since_seq: 1, output: Output::Collect, .. })) => {
                    end.send(&[output(channel, 2, "after")]).await;
                    end.reply(channel, &exited()).await;
                    end.linger().await;
                }
                other => panic!("unexpected {other:?} on link {number}"),
            }
        }
    });
    let sandbox = manager.open(OpenRequest::default()).await.unwrap();
    let result = sandbox.exec(ExecRequest::shell("slow")).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&result.stdout), "before after");
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_start_that_was_lost_with_its_link_is_sent_again() {
    let (manager, fake) = manager(|mut end, number| async move {
        end.hello().await;
        if number == 0 {
            return end.request().await.map(drop).unwrap_or_default();
        }
        while let Some((channel, request)) = end.request().await {
            match request {
                Request::Attach { .. } => {
                    let fault = cofferdam_protocol::Fault {
                        code: cofferdam_protocol::FaultCode::ProcessNotFound,
                        message: "no such process".to_owned(),
                    };
                    end.reply(channel, &Reply::Fault(fault)).await;
                }
                Request::Start(_) => end.reply(channel, &exited()).await,
                other => panic!("unexpected {other:?}"),
            }
        }
    });
    let sandbox = manager.open(OpenRequest::default()).await.unwrap();
    assert_eq!(code(sandbox.exec(ExecRequest::shell("once")).await), "no error");
    assert_eq!(fake.links.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_sandbox_that_is_gone_says_so_to_every_call() {
    let (manager, fake) = manager(|mut end, _| async move {
        end.hello().await;
        for _ in 0..3 {
            end.request().await;
        }
    });
    let opening = pending_calls(&manager);
    let vanishing = async {
        while fake.setup.lock().await.take().is_none() {
            tokio::task::yield_now().await;
        }
    };
    let (calls, ()) = tokio::join!(opening, vanishing);
    assert_eq!(calls, ["SANDBOX_LOST"; 3]);
}

#[tokio::test]
async fn changes_that_cannot_be_read_end_their_watch_and_no_other_call() {
    // Not changes; none; more than there are bytes for; one and then something else.
    let poisons: [&'static [u8]; 4] = [&[0xff; 40], &[0], &[0xff, 0xff, 0x03, 4], &[1, 4, 9]];
    for poison in poisons {
        let (manager, _) = manager(move |mut end, _| async move {
            end.hello().await;
            while let Some((channel, request)) = end.request().await {
                end.reply(channel, &Reply::Done).await;
                if matches!(request, Request::WatchFiles { .. }) {
                    end.send(&[Frame::new(channel, Kind::Data, poison)]).await;
                }
            }
        });
        let sandbox = manager.open(OpenRequest::default()).await.unwrap();
        let mut watch = sandbox.watch_files("/x", true).await.unwrap();
        assert_eq!(code(watch.next_many().await), "PROTOCOL", "{poison:?}");
        assert_eq!(watch.next_many().await.unwrap(), vec![], "an error is the end");
        assert_eq!(code(sandbox.ping().await), "no error");
    }
}

#[tokio::test]
async fn a_watch_is_made_again_on_a_new_link_and_says_that_something_may_be_missing() {
    let (manager, _) = manager(|mut end, number| async move {
        end.hello().await;
        let Some((channel, Request::WatchFiles { .. })) = end.request().await else { return };
        end.reply(channel, &Reply::Done).await;
        let change = FileChange::Create(vec![b'0' + number as u8]);
        end.send(&[Frame::new(channel, Kind::Data, encode_data(&[change]).unwrap())]).await;
        // The first link breaks here.
        if number > 0 {
            end.linger().await;
        }
    });
    let sandbox = manager.open(OpenRequest::default()).await.unwrap();
    let mut watch = sandbox.watch_files("/x", true).await.unwrap();
    for expected in [FileChange::Create(b"0".to_vec()), FileChange::Overflow, FileChange::Create(b"1".to_vec())] {
        assert_eq!(watch.next_many().await.unwrap(), vec![expected]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_guest_sends_no_call_hangs_and_nothing_panics(
        noise in proptest::collection::vec(any::<u8>(), 0..2000),
        kind in 0u8..9,
        channel in 0u32..6,
        announced in 0u32..3000,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut poison = Vec::with_capacity(HEADER_LEN + noise.len());
            poison.put_u32_le(announced);
            poison.put_u32_le(channel);
            poison.put_u8(kind);
            poison.extend_from_slice(&noise);
            // The stream ends after the noise, so that a call that is still unanswered learns of it.
            let (manager, _) = manager(move |mut end, number| {
                let poison = poison.clone();
                async move {
                    end.hello().await;
                    if number > 4 {
                        return end.linger().await;
                    }
                    for _ in 0..3 {
                        // Nobody waits for one that is asked to end.
                        if let Some((_, Request::End)) = end.request().await {
                            return;
                        }
                    }
                    end.raw(&poison).await;
                }
            });
            let sandbox = manager.open(OpenRequest::default()).await.unwrap();
            let list = ListRequest { path: "/".to_owned(), recursive: false, max_entries: 10 };
            let calls = async {
                tokio::join!(
                    sandbox.exec(ExecRequest::shell("true")),
                    sandbox.read_file("/x", 0, 1 << 20),
                    sandbox.list(&list)
                )
            };
            // A guest may also just never answer: that is what the caller's own time limit is for.
            let _ = tokio::time::timeout(Duration::from_millis(200), calls).await;
            manager.close().await.unwrap();
        });
    }
}
