//! The MCP server over stdio: a program of its own, which each replica of tool-runner starts for itself.

use std::{
    io::{BufRead, Write},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};

use super::{
    Peer, Ways,
    behavior::{Behavior, Share},
    book::Book,
    mcp::{self, Request},
};

/// Serves until its input ends. Its arguments: the seed, the share of calls that go wrong, the file of the book, and who calls.
pub fn serve(arguments: &[String]) {
    let [seed, share, file, caller] = arguments else { return eprintln!("expected SEED SHARE FILE CALLER") };
    let (Ok(seed), Ok(share)) = (seed.parse(), share.parse()) else { return eprintln!("expected numbers") };
    let ways = Ways { seed, share: Share::new(share), book: Book::new(file.into()) };
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() else {
        return;
    };
    let listed = Arc::new(AtomicUsize::new(0));
    if Behavior::draw(seed, ways.share, Peer::Desk, "banner") != Behavior::Well {
        say("Server v1.2 starting on stdio...\n[INFO] ready".as_bytes());
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        match mcp::read(&message, caller, listed.load(Ordering::Relaxed)) {
            Request::Notification => {}
            Request::Answered(answer) => say(answer.to_string().as_bytes()),
            Request::Call { id, errand } => {
                let (ways, listed) = (ways.clone(), Arc::clone(&listed));
                runtime.spawn(async move {
                    let behavior = ways.behavior(Peer::Desk, &errand);
                    ways.carry_out(&errand, behavior).await;
                    match behavior {
                        Behavior::Silence => return,
                        Behavior::Loss | Behavior::LossBefore => std::process::exit(3),
                        Behavior::Noise => say(b"Processing request\n\n  {not json"),
                        _ => {}
                    }
                    ways.answer(&errand, behavior);
                    say(&mcp::answer(&id, &errand, behavior));
                    if behavior != Behavior::Well {
                        listed.fetch_add(1, Ordering::Relaxed);
                        let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
                        say(changed.to_string().as_bytes());
                    }
                });
            }
        }
    }
}

/// Writes a line, whole. Nobody is there to be told that it cannot be written.
fn say(line: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(&[line, b"\n"].concat()).and_then(|()| out.flush());
}
