//! A simulated language model behind the chat completions API of OpenAI.
//!
//! A scenario file says what it answers: text, tool calls, errors, and answers that go wrong on
//! the wire. The format is described in this crate's README and, with examples, in
//! [`DEFAULT_SCENARIO`].
//!
//! A request's way: [`wire::request`] reads it, [`conversation`] works out the facts about it,
//! [`matching`] finds the rule, [`rendering`] fills its templates in, [`wire::response`] turns the
//! answer into bytes. All that is pure; [`server`] and `delivery` do the rest.

pub mod answer;
pub mod conversation;
pub mod counters;
pub mod delay;
mod delivery;
mod json;
pub mod matching;
pub mod misbehaviour;
pub mod recorder;
pub mod rendering;
pub mod scenario;
pub mod server;
pub mod tally;
pub mod templates;
pub mod wire;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

pub use delay::Delay;
pub use misbehaviour::{Misbehaviour, demand, form, presets, raw};
pub use scenario::{Scenario, ScenarioMistakes};
pub use server::{Server, bind};

/// The scenario that is played if no other is named: it lets a newcomer chat with an agent.
pub const DEFAULT_SCENARIO: &str = include_str!("../scenarios/default.yaml");

/// Configuration of a server.
pub struct Config {
    /// Port 0 takes any free one.
    pub listen: SocketAddr,
    pub scenario: Scenario,
    /// Number of requests that `GET /v1/requests` can show.
    pub keep_requests: usize,
    /// The largest request body accepted, in bytes. `GET /v1/requests` holds at most four times as
    /// much in all.
    pub max_body_bytes: usize,
    /// Before each answer, beside what the scenario says.
    pub delay: Delay,
    /// The share of answers that come in another form or fail, as those of real endpoints do.
    pub misbehaviour: Misbehaviour,
    /// Chooses among the delays of a range, and which answers misbehave.
    pub seed: u64,
    /// Gets a line for each request that ended; it grows as long as requests come.
    pub journal: Option<PathBuf>,
    /// True if an answer says its request's number: its model is then `<model>#<number>`.
    pub number_answers: bool,
}

impl Config {
    /// The default for `keep_requests`.
    pub const KEEP_REQUESTS: usize = 256;
    /// The default for `max_body_bytes`: 16 MiB, room for a few images.
    pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

    /// A server on any free port of the loopback interface.
    #[must_use]
    pub fn loopback(scenario: Scenario) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            scenario,
            keep_requests: Self::KEEP_REQUESTS,
            max_body_bytes: Self::MAX_BODY_BYTES,
            delay: Delay::default(),
            misbehaviour: Misbehaviour::default(),
            seed: 0,
            journal: None,
            number_answers: false,
        }
    }
}

/// Listens and serves until `shutdown` completes and the answers under way are sent.
///
/// # Errors
/// If the address cannot be listened on.
pub async fn run(config: Config, shutdown: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    bind(config).await?.run(shutdown).await
}
