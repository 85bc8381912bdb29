//! The encoding of this generation, byte by byte. When this fails, an older guest would misread the message: append
//! instead of reordering, or raise `GENERATION` and write a new snapshot with `UPDATE_SNAPSHOT=1`.

use std::fmt::Write as _;
use std::path::Path;

use cofferdam_protocol::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn encoded(message: &impl serde::Serialize) -> String {
    encode(7, message).unwrap().iter().map(|frame| hex(&frame.payload)).collect()
}

fn every_message() -> Vec<(&'static str, String)> {
    let text = |text: &str| text.to_owned();
    let exec_id = || text("exec_1");
    let start = |command, stdin, output| {
        Request::Start(Start {
            exec_id: exec_id(),
            command,
            cwd: Some(text("/tmp")),
            env: vec![(text("A"), text("b"))],
            user: None,
            stdin,
            output,
            keep_bytes: 1024,
            timeout_ms: 300_000,
            grace_ms: 2000,
            detached: true,
            terminal: Some(TerminalSize { cols: 80, rows: 24 }),
            log_bytes: 99,
        })
    };
    let exit = Exit {
        code: 137,
        signal: Some(9),
        timed_out: true,
        oom_killed: false,
        duration_us: 1234,
        stdout: Kept { head: 1, lost: 2 },
        stderr: Kept { head: 3, lost: 4 },
        over_limit: false,
    };
    let entry = |file_type| FileEntry {
        path: b"/a".to_vec(),
        file_type,
        size: 5,
        mode: 0o644,
        mtime_ms: 1_700_000_000_000,
        target: Some(b"b".to_vec()),
    };
    let setup = Setup {
        sandbox_id: text("sbx_1"),
        key: text("workflow:w:default"),
        workdir: text("/workspace"),
        user: Some(text("1000")),
        lease: Lease { idle_ms: 1, max_ms: 2, orphan_ms: 3 },
        env: vec![(text("A"), text("b"))],
        labels: vec![(text("team"), text("red"))],
        bounds: Bounds { workspace_bytes: 4, open_files: 5, memory_bytes: 6, pids: 7 },
    };
    let notice = |notice: Notice| hex(&notice.to_frame().payload);
    let status = Status { setup: setup.clone(), expires_in_ms: Some(10), workspace_bytes: 11, oom_kills: 12 };
    let hello = Hello { version: text("0.1.0"), setup: setup.clone(), uptime_ms: 9 }.to_frame();
    let info = ProcessInfo { exec_id: exec_id(), pid: 4, command: text("true"), age_ms: 8, exit: Some(exit) };
    let filter = || Filter { exclude: vec![text("*.log")], gitignore: true };
    let meta = Meta { mode: 0o644, mtime_s: 1_700_000_000, mtime_ns: 5 };
    let fingerprint =
        Fingerprint { path: b"b/c".to_vec(), kind: FileType::Symlink, size: 3, meta, target: Some(b"t".to_vec()) };
    let told = |record: Record| {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        hex(&bytes)
    };
    let changes = [
        FileChange::Create(b"a".to_vec()),
        FileChange::Change(b"b".to_vec()),
        FileChange::Delete(Vec::new()),
        FileChange::Rename { from: b"c".to_vec(), to: b"d".to_vec() },
        FileChange::Overflow,
    ];
    let fault = |code| Reply::Fault(Fault { code, message: text("m") });
    vec![
        ("hello", hex(&hello.payload)),
        ("setup", encoded(&setup)),
        ("setup frame", hex(&setup.to_frame().unwrap().payload)),
        ("join", encoded(&Join { client: 0x0123_4567_89ab_cdef })),
        ("ping", encoded(&Request::Ping)),
        ("start shell", encoded(&start(Command::Shell(text("true")), Stdin::Empty, Output::Collect))),
        (
            "start program",
            encoded(&start(Command::Program(vec![text("a"), text("b")]), Stdin::Channel, Output::Follow)),
        ),
        ("start open", encoded(&start(Command::Program(vec![]), Stdin::Open, Output::Hold))),
        ("attach", encoded(&Request::Attach { exec_id: exec_id(), since_seq: 3, output: Output::Follow })),
        ("read", encoded(&Request::Read { exec_id: exec_id(), since_seq: 3, max_chunks: 4, wait_ms: 5 })),
        ("stdin", encoded(&Request::Stdin { exec_id: exec_id() })),
        ("kill signal", encoded(&Request::Kill { exec_id: exec_id(), how: Kill::Signal(15) })),
        ("kill terminate", encoded(&Request::Kill { exec_id: exec_id(), how: Kill::Terminate })),
        ("processes", encoded(&Request::Processes)),
        (
            "write",
            encoded(&Request::Write(Write {
                path: text("a"),
                mode: Some(0o600),
                overwrite: true,
                user: None,
                append: true,
            })),
        ),
        ("read file", encoded(&Request::ReadFile { path: text("a"), offset: 1, limit: 2 })),
        ("list", encoded(&Request::List { path: text("a"), recursive: true, max_entries: 9 })),
        ("stat", encoded(&Request::Stat { path: text("a") })),
        ("mkdir", encoded(&Request::Mkdir { path: text("a"), mode: None })),
        ("move", encoded(&Request::Move { from: text("a"), to: text("b") })),
        ("copy", encoded(&Request::Copy { from: text("a"), to: text("b") })),
        ("remove", encoded(&Request::Remove { path: text("a"), recursive: false })),
        ("claim", encoded(&Request::Claim(setup))),
        ("status", encoded(&Request::Status)),
        ("extend", encoded(&Request::Extend { idle_ms: Some(1), max_ms: None })),
        (
            "set bounds",
            encoded(&Request::SetBounds(Bounds { workspace_bytes: 1, open_files: 2, memory_bytes: 3, pids: 4 })),
        ),
        ("watch", encoded(&Request::Watch)),
        ("end", encoded(&Request::End)),
        ("start user shell", encoded(&start(Command::UserShell, Stdin::Open, Output::Hold))),
        ("resize", encoded(&Request::Resize { exec_id: exec_id(), size: TerminalSize { cols: 1, rows: 2 } })),
        ("connect", encoded(&Request::Connect { port: 8080 })),
        ("stats", encoded(&Request::Stats)),
        ("pack", encoded(&Request::Pack { path: text("a"), filter: filter(), only: Some(vec![b"b/c".to_vec()]) })),
        ("unpack", encoded(&Request::Unpack { path: text("a") })),
        ("survey", encoded(&Request::Survey { path: text("a"), filter: filter() })),
        ("compare", encoded(&Request::Compare { path: text("a"), entries: vec![fingerprint] })),
        ("resolve", encoded(&Request::Resolve { path: text("a") })),
        ("watch files", encoded(&Request::WatchFiles { path: text("a"), recursive: true })),
        (
            "glob",
            encoded(&Request::Glob(Glob {
                path: text("a"),
                patterns: vec![text("**/*.ts")],
                filter: filter(),
                max_results: 3,
            })),
        ),
        (
            "grep",
            encoded(&Request::Grep(Grep {
                path: text("a"),
                pattern: text("x+"),
                literal: false,
                ignore_case: true,
                include: vec![text("*.ts")],
                filter: filter(),
                before: 1,
                after: 2,
                max_matches: 3,
                max_per_file: 4,
                max_file_bytes: 5,
            })),
        ),
        (
            "replace",
            encoded(&Request::Replace(Replace {
                path: text("a"),
                search: text("b"),
                replacement: text("c"),
                all: true,
                expected: Some(2),
            })),
        ),
        ("read lines", encoded(&Request::ReadLines { path: text("a"), from: 1, to: 2, limit: 3 })),
        ("write many", encoded(&Request::WriteMany(vec![Content { path: text("a"), size: 5 }]))),
        ("reply done", encoded(&Reply::Done)),
        ("reply fault invalid", encoded(&fault(FaultCode::InvalidArgument))),
        ("reply fault internal", encoded(&fault(FaultCode::Internal))),
        ("reply started", encoded(&Reply::Started { pid: 77 })),
        ("reply exited", encoded(&Reply::Exited(exit, vec![Killed { pid: 5, command: text("sleep") }]))),
        ("reply read", encoded(&Reply::Read { done: true, lost_bytes: 6 })),
        ("reply processes", encoded(&Reply::Processes(vec![info]))),
        ("reply written", encoded(&Reply::Written { path: text("/a"), size: 5 })),
        ("reply opened", encoded(&Reply::Opened { size: 5 })),
        ("reply content", encoded(&Reply::Content { size: 5, truncated: true })),
        ("reply stat file", encoded(&Reply::Stat(Some(entry(FileType::File))))),
        ("reply stat other", encoded(&Reply::Stat(Some(entry(FileType::Other))))),
        ("reply removed", encoded(&Reply::Removed(true))),
        ("reply claimed", encoded(&Reply::Claimed(true))),
        ("reply status", encoded(&Reply::Status(status))),
        ("reply connected", encoded(&Reply::Connected(true))),
        ("reply stats", encoded(&Reply::Stats(Stats { cpu_us: 1, oom_kills: 8, ..Stats::default() }))),
        ("reply stale", encoded(&Reply::Stale(vec![1, 300]))),
        ("reply resolved", encoded(&Reply::Resolved { path: b"/a".to_vec() })),
        ("reply searched", encoded(&Reply::Searched { truncated: true, files: 1, skipped: 2 })),
        ("reply replaced", encoded(&Reply::Replaced { path: text("/a"), count: 2 })),
        ("reply occurs", encoded(&Reply::Occurs { count: 2, lines: vec![3, 400] })),
        (
            "hits",
            encoded(&vec![Hit {
                path: b"/a".to_vec(),
                line: 2,
                column: 3,
                text: b"t".to_vec(),
                before: vec![b"b".to_vec()],
                after: vec![vec![]],
            }]),
        ),
        ("tree enter", told(Record::Enter { name: vec![], meta })),
        ("tree file", told(Record::File { name: b"f".to_vec(), meta, size: 5 })),
        ("tree data", told(Record::Data(300))),
        ("tree hole", told(Record::Hole(1 << 40))),
        ("tree whole", told(Record::Whole)),
        ("tree torn", told(Record::Torn { reason: text("r") })),
        ("tree link", told(Record::Link { name: b"l".to_vec(), target: b"../t".to_vec(), meta })),
        ("tree skipped", told(Record::Skipped { name: b"s".to_vec(), reason: text("r") })),
        ("tree leave", told(Record::Leave)),
        ("file changes", hex(&encode_data(&changes).unwrap())),
        ("notice expiring", notice(Notice::Expiring { term: Term::MaxLifetime, in_ms: 60_000 })),
        ("notice expired", notice(Notice::Ending(Ending::Expired(Term::Orphan)))),
        ("notice asked", notice(Notice::Ending(Ending::Asked))),
        ("notice started", notice(Notice::Started { exec_id: exec_id(), command: text("true") })),
        ("notice finished", notice(Notice::Finished { exec_id: exec_id(), exit })),
    ]
}

#[test]
fn the_encoding_of_this_generation_does_not_change() {
    let mut now = String::new();
    for (name, bytes) in every_message() {
        writeln!(now, "{name}: {bytes}").unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/generation-{GENERATION}.txt"));
    if std::env::var_os("UPDATE_SNAPSHOT").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    assert_eq!(now, std::fs::read_to_string(&path).unwrap(), "see the top of this file");
}

#[test]
fn a_setup_survives_its_frame_and_nothing_else_is_taken_for_one() {
    let setup = Setup {
        sandbox_id: "sbx_ü".to_owned(),
        key: "k".to_owned(),
        workdir: "/w".to_owned(),
        user: None,
        lease: Lease { idle_ms: u64::MAX, max_ms: 0, orphan_ms: 1 },
        env: vec![],
        labels: vec![],
        bounds: Bounds::default(),
    };
    let frame = setup.to_frame().unwrap();
    assert_eq!(Setup::from_frame(&frame), Ok(setup.clone()));
    let with = |payload: &[u8]| Frame::new(LINK_CHANNEL, Kind::Message, payload.to_vec());
    for other in [
        Frame::new(1, Kind::Message, frame.payload.clone()),
        Frame::new(LINK_CHANNEL, Kind::More, frame.payload.clone()),
        Hello { version: "0".to_owned(), setup: setup.clone(), uptime_ms: 0 }.to_frame(),
        with(b""),
        with(b"CFDS\x04"),
    ] {
        assert_eq!(Setup::from_frame(&other), Err(MessageError::NotASetup), "{other:?}");
    }
    assert_eq!(Setup::from_frame(&with(b"CFDS\x63\x00rest")), Err(MessageError::Generation(99)));
    let [cut, longer] = [&frame.payload[..frame.payload.len() - 1], &[&frame.payload[..], b"x"].concat()];
    for malformed in [cut, longer] {
        assert!(matches!(Setup::from_frame(&with(malformed)), Err(MessageError::Malformed(_))), "{malformed:?}");
    }
    let env = |bytes: usize| vec![("A".to_owned(), "x".repeat(bytes))];
    let long = Setup { env: env(MAX_SETUP), ..setup.clone() };
    assert!(matches!(long.to_frame(), Err(MessageError::SetupTooLong(bytes)) if bytes > MAX_SETUP));
    let bounds = Bounds { workspace_bytes: u64::MAX, open_files: u64::MAX, memory_bytes: u64::MAX, pids: u64::MAX };
    let largest = (0..64).map(|less| Setup { env: env(MAX_SETUP - less), ..setup.clone() });
    let largest = largest.into_iter().find(|setup| setup.to_frame().is_ok()).unwrap();
    let lease = Lease { idle_ms: u64::MAX, max_ms: u64::MAX, orphan_ms: u64::MAX };
    let version = "1".repeat(40);
    let hello = Hello { version, setup: Setup { lease, bounds, ..largest }, uptime_ms: u64::MAX };
    assert!(hello.to_frame().payload.len() <= MAX_PAYLOAD, "every setup fits a hello, whatever becomes of its numbers");
}

#[test]
fn another_generation_and_other_programs_are_told_apart() {
    let frame = |payload: &[u8]| Frame::new(LINK_CHANNEL, Kind::Message, payload.to_vec());
    assert_eq!(Hello::from_frame(&frame(b"CFDM\x63\x00rest")), Err(MessageError::Generation(99)));
    assert_eq!(Hello::from_frame(&frame(b"SSH-2.0")), Err(MessageError::NotAGuest));
    assert_eq!(Hello::from_frame(&frame(b"")), Err(MessageError::NotAGuest));
}

#[test]
fn a_long_message_travels_in_fragments_and_an_endless_one_not_at_all() {
    let long = Request::Stat { path: "x".repeat(200_000) };
    let frames = encode(7, &long).unwrap();
    assert!(frames.len() > 1 && frames.iter().all(|frame| frame.payload.len() <= MAX_PAYLOAD));
    let mut assembler = Assembler::default();
    let (last, parts) = frames.split_last().unwrap();
    parts.iter().for_each(|part| assembler.more(&part.payload).unwrap());
    assert_eq!(assembler.finish::<Request>(&last.payload), Ok(long));
    assert_eq!(encode(7, &Request::Stat { path: "x".repeat(MAX_MESSAGE) }), Err(MessageError::TooLong));
    let mut flooded = Assembler::default();
    let fragment = vec![0; 64 * 1024];
    assert!((0..100).any(|_| flooded.more(&fragment).is_err()));
}
