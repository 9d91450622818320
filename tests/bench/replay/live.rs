//! The latency of publishing while an agent's part of the log is read from the gateway, and so from the log itself, and
//! replayed.

use std::{process::Stdio, time::Duration};

use kairo_local::{Service, StackOptions};
use serde::Serialize;
use tokio::{process::Command, time::sleep};

use crate::{
    Outcome, agents,
    arguments::{Flushing, Replay},
    machine::Machine,
    rounds::progress,
    ticks::{Figures, Ticks},
};

/// Entries of the conversation that the model is shown.
const HISTORY: u32 = 20;
/// The longest that a reply is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time for which publishing is measured while nothing else happens.
const QUIET: Duration = Duration::from_secs(5);
const AGENT: &str = "bench";

/// Acknowledged publishes.
#[derive(Serialize)]
pub struct Live {
    pub turns: u64,
    /// The number of replays of the log meanwhile.
    pub replays: u64,
    pub publish_quiet: Figures,
    pub publish_replaying: Figures,
}

/// An agent has so many turns; then its log is replayed again and again.
pub async fn measure(wanted: &Replay) -> Outcome<Live> {
    let (turns, replays) = (wanted.live_turns, wanted.live_replays);
    let machine = Machine::start(Flushing::Default, false).await?;
    let gateway = machine.stack.url(Service::Gateway).unwrap_or_default().to_owned();
    progress(&format!("{turns} turns of an agent"));
    let (mut agents, replies) = agents::define(&gateway, [AGENT.to_owned()], HISTORY).await?;
    let listening = replies.listen().await?;
    for agent in &mut agents {
        for _ in 0..turns {
            agent.turn("what is the time?", PATIENCE).await?;
        }
    }
    drop(listening);
    progress("publishing, while nothing happens");
    let ticks = Ticks::start(&machine).await?;
    sleep(QUIET).await;
    let publish_quiet = Figures::of(&ticks.stop().await?);
    progress(&format!("publishing, while the log is replayed {replays} times"));
    let ticks = Ticks::start(&machine).await?;
    for _ in 0..replays {
        let mut replay = Command::new(StackOptions::bin_dir_of_this_build()?.join("kairo"));
        replay.args(["--url", &gateway, "replay", "--agent", AGENT]).stdout(Stdio::null());
        let status = replay.kill_on_drop(true).status().await?;
        if !status.success() {
            return Err(format!("`kairo replay` of the live log: {status}").into());
        }
    }
    let publish_replaying = Figures::of(&ticks.stop().await?);
    machine.stop().await?;
    Ok(Live { turns, replays, publish_quiet, publish_replaying })
}
