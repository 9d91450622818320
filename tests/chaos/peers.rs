//! The peers that tools of the load reach: an MCP server over HTTP and one over stdio, a web API and a tool worker.
//! Each has an effect outside of Kairo, which it writes into a [`book`], and answers, or [misbehaves](behavior) as real
//! ones do.

pub mod behavior;
pub mod book;
mod mcp;
mod mcp_http;
pub mod mcp_stdio;
mod web;
mod worker;

use std::{net::SocketAddr, path::Path};

use axum::{Router, routing::post};
use jiff::Timestamp;
use kairo_local::{Login, StackOptions};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{net::TcpListener, time::sleep};

use self::{
    behavior::{Behavior, LIMIT_MS, Share},
    book::{Book, What},
};
use super::{Outcome, plan::Settings};

/// The tool of each peer whose effect can be there twice, and the one that knows calls by their key.
pub const PAY: &str = "pay";
pub const BOOK: &str = "book";
/// The header by which a runner says which replica it is.
const CALLER: &str = "x-caller";
/// The program of the peer over stdio.
const PROGRAM: &str = "kairo-chaos-peer";
/// Times between words of a worker, in milliseconds: of its beats, until it is taken for lost, and between its announcements.
const WORKER_TIMES: (u64, u64, u64) = (500, 4_000, 1_000);

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An MCP server over HTTP.
    Shop,
    /// An MCP server over stdio, one for each replica.
    Desk,
    /// A web API.
    Bank,
    /// A tool worker.
    Clerk,
}

/// A call for an effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errand {
    pub effect: String,
    /// The action id or idempotency key; empty where there is none.
    pub key: String,
    /// The replica that calls; empty where that is not known.
    pub caller: String,
    /// True if the effect happens once for each key.
    pub is_keyed: bool,
}

/// The settings by which peers carry out errands.
#[derive(Clone, Debug)]
pub struct Ways {
    pub seed: u64,
    pub share: Share,
    pub book: Book,
}

/// All peers of a run.
pub struct Peers {
    ways: Ways,
    address: SocketAddr,
    program: String,
}

impl Peer {
    pub const ALL: [Self; 4] = [Self::Shop, Self::Desk, Self::Bank, Self::Clerk];

    /// The name of its source of tools.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shop => "shop",
            Self::Desk => "desk",
            Self::Bank => "bank",
            Self::Clerk => "clerk",
        }
    }

    /// Returns true if an agent may call `tool` again: with the same arguments it has no further effect, as MCP's
    /// `idempotentHint` says.
    pub fn is_repeatable(self, tool: &str) -> bool {
        matches!(self, Self::Shop | Self::Desk) && tool == self.tool(BOOK)
    }

    /// The name of one of its tools, as agents call it.
    pub fn tool(self, tool: &str) -> String {
        format!("{}.{tool}", self.name())
    }
}

/// The peer of this tool of agents, and whether it knows calls by their key.
pub fn of_tool(tool: &str) -> Option<(Peer, bool)> {
    Peer::ALL.into_iter().find_map(|peer| {
        let tools = [(peer.tool(PAY), false), (peer.tool(BOOK), true)];
        tools.into_iter().find(|(name, _)| name == tool).map(|(_, is_keyed)| (peer, is_keyed))
    })
}

/// The tools of all peers.
pub fn tools() -> Vec<String> {
    Peer::ALL.into_iter().flat_map(|peer| [peer.tool(PAY), peer.tool(BOOK)]).collect()
}

impl Ways {
    /// Returns the behavior of `peer` in an errand. A second call with the same key is told the outcome of the first.
    pub fn behavior(&self, peer: Peer, errand: &Errand) -> Behavior {
        match errand.is_keyed && self.book.calls(&errand.effect) > 0 {
            true => Behavior::Well,
            false => Behavior::draw(self.seed, self.share, peer, &errand.effect),
        }
    }

    /// Has the effect at its time; returns when it is time for an answer.
    pub async fn carry_out(&self, errand: &Errand, behavior: Behavior) {
        let (until_effect, until_answer) = behavior.times(self.seed, &errand.effect);
        let due = Timestamp::now() + (until_effect + until_answer);
        self.book.write(What::Call, errand, behavior.is_answered().then_some(due));
        sleep(until_effect).await;
        if behavior.has_effect() {
            self.book.write(What::Effect, errand, None);
        }
        sleep(until_answer).await;
    }

    /// Notes that an answer leaves.
    pub fn answer(&self, errand: &Errand, behavior: Behavior) {
        if behavior.is_answered() {
            self.book.write(What::Answer, errand, None);
        }
    }
}

impl Peers {
    /// Starts those that serve HTTP, on loopback, until the program ends.
    pub async fn start(settings: &Settings, folder: &Path) -> Outcome<Self> {
        let share = Share::new(settings.misbehaviour.to_string().parse()?);
        let ways = Ways { seed: settings.seed, share, book: Book::new(folder.join("errands.jsonl")) };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = Router::new()
            .route("/mcp", mcp_http::routes())
            .route(&format!("/web/{PAY}"), post(web::pay))
            .route(&format!("/web/{BOOK}"), post(web::book))
            .with_state(ways.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let program = StackOptions::bin_dir_of_this_build()?.join(PROGRAM).display().to_string();
        Ok(Self { ways, address, program })
    }

    /// Starts the tool worker, which logs in so.
    pub async fn start_worker(&self, login: &Login) -> Outcome<()> {
        worker::start(self.ways.clone(), login).await
    }

    pub fn book(&self) -> &Book {
        &self.ways.book
    }

    /// Returns the settings through which a tool-runner reaches the peers.
    pub fn settings(&self, replica: &str) -> Vec<(&'static str, String)> {
        let url = |path: &str| format!("http://{}/{path}", self.address);
        let Ways { seed, share, book } = &self.ways;
        let args = json!([seed.to_string(), share.text(), book.file(), replica]);
        let mcp = json!([
            { "name": Peer::Shop.name(), "url": url("mcp"), "headers": { CALLER: replica }, "call_timeout_ms": LIMIT_MS },
            { "name": Peer::Desk.name(), "command": self.program, "args": args, "call_timeout_ms": LIMIT_MS },
        ]);
        let schema = mcp::schema();
        let request = |tool: &str, is_keyed: bool| {
            json!({
                "name": Peer::Bank.tool(tool), "description": "Has an effect.", "schema": schema, "method": "POST",
                "url": url(&format!("web/{tool}")), "headers": { CALLER: replica }, "timeout_ms": LIMIT_MS,
                "idempotent": is_keyed,
            })
        };
        let (beat_ms, silence_ms, announce_ms) = WORKER_TIMES;
        let times = json!({ "beat_ms": beat_ms, "silence_ms": silence_ms, "announce_ms": announce_ms });
        vec![
            ("KAIRO_TOOL_RUNNER__MCP", mcp.to_string()),
            ("KAIRO_TOOL_RUNNER__TOOLS__HTTP", json!([request(PAY, false), request(BOOK, true)]).to_string()),
            (
                "KAIRO_TOOL_RUNNER__TOOLS__WORKERS",
                json!([{ "name": Peer::Clerk.name(), "call_timeout_ms": LIMIT_MS }]).to_string(),
            ),
            ("KAIRO_TOOL_RUNNER__WORKER_LIFECYCLE", times.to_string()),
        ]
    }
}
