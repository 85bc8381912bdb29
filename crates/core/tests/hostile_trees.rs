//! Trees from a guest that was taken over: whatever it tells, nothing outside the target is read or written, nothing is left
//! half there, and the call ends with an error or a report.
#![cfg(unix)]

mod fake;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::*;
use cofferdam_protocol::{FileType, Fingerprint, Meta, Record, Reply, Request, encode};
use fake::{GuestEnd, code, manager};
use tempfile::TempDir;

const META: Meta = Meta { mode: 0o755, mtime_s: 1, mtime_ns: 2 };

fn named(name: &str) -> Vec<u8> {
    name.as_bytes().to_vec()
}

fn enter(name: &str) -> Record {
    Record::Enter { name: named(name), meta: META }
}

fn file(name: &str) -> [Record; 3] {
    [Record::File { name: named(name), meta: META, size: 4 }, Record::Data(4), Record::Whole]
}

fn link(name: &str, target: &Path) -> Record {
    Record::Link { name: named(name), target: target.as_os_str().as_bytes().to_vec(), meta: META }
}

fn stream(records: impl IntoIterator<Item = Record>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        record.encode(&mut bytes);
        if let Record::Data(length) = record {
            bytes.resize(bytes.len() + length as usize, b'x');
        }
    }
    bytes
}

/// Downloads from a guest that answers every request for a tree with these bytes.
async fn download(tree: Vec<u8>, host_path: &Path) -> Result<TransferReport> {
    download_pieces(move || std::iter::once(tree.clone()), host_path).await
}

/// The same of trees that nobody wants to hold.
async fn download_pieces<I>(tell: impl Fn() -> I + Send + Sync + 'static, host_path: &Path) -> Result<TransferReport>
where
    I: Iterator<Item = Vec<u8>> + Send,
{
    let tell = Arc::new(tell);
    let (manager, _) = manager(move |mut end: GuestEnd, _| {
        let tell = Arc::clone(&tell);
        async move {
            end.hello().await;
            while let Some((channel, request)) = end.request().await {
                if matches!(request, Request::Pack { .. }) {
                    end.stream(channel, tell()).await;
                    end.reply(channel, &Reply::Done).await;
                }
            }
        }
    });
    let sandbox = manager.open(OpenRequest::default()).await.unwrap();
    let request =
        TransferRequest { host_path: host_path.to_owned(), path: "/tree".to_owned(), ..TransferRequest::default() };
    tokio::time::timeout(Duration::from_secs(60), sandbox.download(&request)).await.expect("no call hangs")
}

struct Ground {
    home: TempDir,
}

impl Ground {
    fn new() -> Ground {
        let ground = Ground { home: TempDir::new().unwrap() };
        fs::create_dir(ground.outside()).unwrap();
        fs::write(ground.outside().join("kept"), "kept").unwrap();
        ground
    }

    fn outside(&self) -> PathBuf {
        self.home.path().join("outside")
    }

    fn target(&self) -> PathBuf {
        self.home.path().join("target")
    }

    /// Nothing but the target, where it is there, has changed.
    fn is_untouched(&self) -> bool {
        let names = |path: &Path| -> Vec<_> {
            let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.retain(|name| name != "target");
            names
        };
        names(self.home.path()) == ["outside"]
            && names(&self.outside()) == ["kept"]
            && fs::read_to_string(self.outside().join("kept")).unwrap() == "kept"
    }
}

#[tokio::test]
async fn names_that_lead_out_of_the_target_end_the_call_and_leave_nothing() {
    let ground = Ground::new();
    for name in ["..", ".", "", "../outside/new", "/tmp/new", "a/b", "nul\0", &"x".repeat(256)] {
        for step in [enter(name), file(name)[0].clone(), link(name, Path::new("x"))] {
            let outcome = download(stream([enter(""), step]), &ground.target()).await;
            assert_eq!(code(outcome), "PROTOCOL", "{name:?}");
            assert!(ground.is_untouched() && !ground.target().exists(), "{name:?}");
        }
    }
}

#[tokio::test]
async fn links_are_kept_and_never_gone_through() {
    let ground = Ground::new();
    for is_there in [false, true] {
        if is_there {
            fs::create_dir(ground.target()).unwrap();
            symlink(ground.outside(), ground.target().join("waiting")).unwrap();
        }
        for name in ["way", "waiting"] {
            let mut records = vec![enter(""), link("way", &ground.outside()), enter(name)];
            records.extend(file("kept"));
            records.extend([Record::Leave, Record::Leave]);
            let outcome = download(stream(records), &ground.target()).await;
            assert!(ground.is_untouched());
            // A folder that is new may be called so; one that is a link already is not a folder.
            assert_eq!(code(outcome), if name == "way" || is_there { "NOT_A_DIRECTORY" } else { "no error" });
        }
        let _ = fs::remove_dir_all(ground.target());
    }
}

#[tokio::test]
async fn a_tree_that_breaks_off_or_is_garbage_leaves_nothing() {
    let ground = Ground::new();
    let whole = stream([enter(""), enter("d")].into_iter().chain(file("f")).chain([Record::Leave, Record::Leave]));
    for length in 0..whole.len() {
        let outcome = download(whole[..length].to_vec(), &ground.target()).await;
        assert_eq!(code(outcome), "PROTOCOL", "{length} of {} bytes", whole.len());
        assert!(ground.is_untouched() && !ground.target().exists());
    }
    for garbage in [vec![0xff; 5000], vec![0; 5000], [whole.clone(), whole.clone()].concat()] {
        assert_eq!(code(download(garbage, &ground.target()).await), "PROTOCOL");
        assert!(ground.is_untouched() && !ground.target().exists());
    }
    assert_eq!(code(download(whole, &ground.target()).await), "no error");
    assert_eq!(fs::read_to_string(ground.target().join("d/f")).unwrap(), "xxxx");
}

#[tokio::test]
async fn a_million_entries_end_in_a_report_and_cost_no_memory() {
    // Where there is one, a file system in memory: this is about ours, not the disk's.
    let shared = Path::new("/dev/shm");
    let home = if shared.is_dir() { TempDir::new_in(shared) } else { TempDir::new() }.unwrap();
    fn million(entry: fn(usize) -> Record) -> impl Iterator<Item = Vec<u8>> + Send {
        let entries = (0..1000).map(move |number| stream((number * 1000..(number + 1) * 1000).map(entry)));
        std::iter::once(stream([enter("")])).chain(entries).chain([stream([Record::Leave])])
    }
    let before = resident();
    let links = || million(|number| link(&format!("l{number}"), Path::new("x")));
    let report = download_pieces(links, &home.path().join("target")).await.unwrap();
    assert_eq!((report.links, report.skipped.len()), (1_000_000, 0));
    let more = resident().saturating_sub(before);
    assert!(more < 64 << 20, "{} MiB more", more >> 20);
    let skipped = || million(|number| Record::Skipped { name: named(&number.to_string()), reason: "no".into() });
    let report = download_pieces(skipped, &home.path().join("skipped")).await.unwrap();
    assert!(report.skipped.len() <= 10_001);
    assert!(report.skipped.last().unwrap().reason.contains("990000 more"), "{:?}", report.skipped.last());
}

fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or_default() * 4096
}

#[tokio::test]
async fn a_survey_that_leads_elsewhere_ends_the_call() {
    let ground = Ground::new();
    fs::create_dir(ground.target()).unwrap();
    for path in ["../outside/kept", "/etc/passwd", "a//b", ""] {
        let (manager, _) = manager(move |mut end: GuestEnd, _| async move {
            end.hello().await;
            while let Some((channel, request)) = end.request().await {
                if matches!(request, Request::Survey { .. }) {
                    let kind = FileType::File;
                    let entry = Fingerprint { path: named(path), kind, size: 4, meta: META, target: None };
                    let batch = encode(channel, &vec![entry]).unwrap().remove(0).payload.to_vec();
                    end.stream(channel, [batch].into_iter()).await;
                    end.reply(channel, &Reply::Done).await;
                }
            }
        });
        let sandbox = manager.open(OpenRequest::default()).await.unwrap();
        let request = TransferRequest {
            host_path: ground.target(),
            path: "/tree".to_owned(),
            sync: true,
            ..TransferRequest::default()
        };
        assert_eq!(code(sandbox.download(&request).await), "PROTOCOL", "{path:?}");
        assert!(ground.is_untouched());
    }
}

#[tokio::test]
async fn a_guest_that_names_entries_it_was_not_asked_about_ends_the_upload() {
    let ground = Ground::new();
    let (manager, _) = manager(move |mut end: GuestEnd, _| async move {
        end.hello().await;
        while let Some((channel, request)) = end.request().await {
            match request {
                Request::Stat { .. } => {
                    let entry = FileEntry {
                        path: named("/tree"),
                        file_type: FileType::Dir,
                        size: 0,
                        mode: 0o755,
                        mtime_ms: 0,
                        target: None,
                    };
                    end.reply(channel, &Reply::Stat(Some(entry))).await;
                }
                Request::Compare { .. } => end.reply(channel, &Reply::Stale(vec![7])).await,
                _ => {}
            }
        }
    });
    let sandbox = manager.open(OpenRequest::default()).await.unwrap();
    let request = TransferRequest {
        host_path: ground.outside(),
        path: "/tree".to_owned(),
        sync: true,
        ..TransferRequest::default()
    };
    assert_eq!(code(sandbox.upload(&request).await), "PROTOCOL");
}
