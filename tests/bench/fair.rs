//! Measures whether a flooded agent makes others wait: their reply times alone, and while the flood lasts. Also
//! measures whether a user who takes all they can shuts others out ([`shares`]).

mod report;
mod shares;
mod shares_report;
mod stages;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::Timestamp;
use kairo_local::Service;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    Outcome,
    agents::{self, Agent, REFUSED_PAUSE, Said},
    arguments::{Fair, Flushing},
    load::{Lane, all_at_once, for_a_while},
    machine::{Fleet, Machine},
    projection::connect,
    rounds::progress,
};
pub use report::Report;

const FLOODED: &str = "flooded";
const SCENARIO: &str = r#"
rules:
  - name: answer
    reply: "It is late."
"#;
/// Messages of the flood that are on their way to the gateway.
const IN_FLIGHT: u64 = 16;
/// Between a reply to another agent and its next message: people read before they write.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest that a reply is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Turns of each agent before anything is measured.
const WARM_UP: u64 = 50;
/// Entries that the model is shown.
const HISTORY: u32 = 20;

/// The outcome of the flood.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Flood {
    wanted: u64,
    accepted: u64,
    /// With 429, and sent again.
    refused: u64,
    answered: u64,
    seconds: f64,
}

struct Other(Agent);

impl Lane for Other {
    async fn turn(&mut self) -> Outcome<Duration> {
        let begun = Instant::now();
        let turn = self.0.sender.say("What time is it?").await?;
        Ok(self.0.reply_to(turn, PATIENCE).await? - begun)
    }
}

pub async fn measure(wanted: &Fair) -> Outcome<Report> {
    let mut machine = Machine::servers(Flushing::Default).await?;
    let replicas = usize::from(wanted.replicas);
    machine.start_services(&Fleet { replicas, ..Fleet::single(SCENARIO) }).await?;
    let gateway = machine.stack.url(Service::Gateway).unwrap_or_default();
    let names = (0..wanted.agents).map(|number| format!("other-{number}"));
    let names = [FLOODED.to_owned()].into_iter().chain(names);
    let (mut agents, replies) = agents::define(gateway, names, HISTORY).await?;
    let listening = replies.listen().await?;
    let flooded = agents.remove(0);
    let mut others: Vec<Other> = agents.into_iter().map(Other).collect();
    progress("warming up");
    all_at_once(&mut others, WARM_UP * wanted.agents).await?;

    let window = Duration::from_secs(wanted.seconds);
    progress("the others alone");
    let (others, alone, ()) = for_a_while(others, PAUSE, tokio::time::sleep(window)).await?;
    progress("the others while one is flooded");
    let over = CancellationToken::new();
    let (begun, since) = (Instant::now(), Timestamp::now());
    let flood = tokio::spawn(pour(flooded, wanted.flood, over.clone()));
    let ended = async {
        tokio::select! {
            () = over.cancelled() => {}
            () = tokio::time::sleep(window) => over.cancel(),
        }
    };
    let (_, during, ()) = for_a_while(others, PAUSE, ended).await?;
    let flood = Flood { seconds: begun.elapsed().as_secs_f64(), ..flood.await?? };
    drop(listening);
    let stages = stages::read(&connect(&machine.nats.operator()).await?, FLOODED, since).await?;
    machine.stop().await?;
    let shares = match wanted.share_seconds {
        0 => Vec::new(),
        seconds => shares::measure(Duration::from_secs(seconds)).await?,
    };
    Ok(Report::new(wanted, &alone, &during, flood, stages, shares))
}

/// Sends an agent so many messages, and reads its replies, until all are answered or it is over. Says when it is over.
async fn pour(mut agent: Agent, messages: u64, over: CancellationToken) -> Outcome<Flood> {
    let (begun, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let accepted = Arc::new(AtomicU64::new(0));
    let mut senders = JoinSet::new();
    let sender = agent.sender.clone();
    for _ in 0..IN_FLIGHT {
        let (sender, over) = (sender.clone(), over.clone());
        let (begun, refused, accepted) = (begun.clone(), refused.clone(), accepted.clone());
        senders.spawn(async move {
            while !over.is_cancelled() && begun.fetch_add(1, Ordering::Relaxed) < messages {
                loop {
                    match sender.try_say("What time is it now?").await? {
                        Said::Accepted(_) => break,
                        Said::Refused if over.is_cancelled() => return Ok(()),
                        Said::Refused => refused.fetch_add(1, Ordering::Relaxed),
                        Said::Unavailable(why) => return Err(why.into()),
                    };
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
                accepted.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Ok(())
        });
    }
    let mut answered = 0;
    while answered < messages {
        tokio::select! {
            reply = agent.reply(PATIENCE) => match reply {
                Ok(_) => answered += 1,
                // None for so long: the others are waited for no longer, either.
                Err(_) => break,
            },
            () = over.cancelled() => break,
        }
    }
    over.cancel();
    while let Some(sent) = senders.join_next().await {
        sent??;
    }
    let counted = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (accepted, refused) = (counted(&accepted), counted(&refused));
    Ok(Flood { wanted: messages, accepted, refused, answered, seconds: 0.0 })
}
