//! Waiting until nothing is left to do.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use async_nats::jetstream::consumer::PullConsumer;
use jiff::Timestamp;
use kairo_core::{
    bus::Bus,
    subjects::{Consumer, DLQ_STREAM},
};
use kairo_model_sim::Delay;
use sqlx::{Connection, PgConnection};

use super::{Outcome, log::Log, peers::book::Book};

/// The longest that the end of all work is waited for, with a model that answers at once.
const DEADLINE: Duration = Duration::from_secs(180);
/// Time added for a slower model: this many of its average answers, one after the other.
const ANSWERS: u32 = 100;
/// Work that is open and does not move for so long is lost. Longer than any process of the load runs and than any
/// message waits to be delivered again.
const QUIET: Duration = Duration::from_secs(45);
/// Nobody says when there is nothing left to do: asking again is all there is.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// The longest time until a late answer is in the log.
pub const SETTLED_WITHIN: Duration = Duration::from_secs(3);
/// The longest time until processes that were just killed are gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// The state in which Kairo came to rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// The work still open, if Kairo did not come to rest.
    pub unsettled: Option<String>,
    /// Messages at the end of the log that the read model does not hold.
    pub not_projected: u64,
    pub dead_letters: u64,
    /// Processes that outlived their end.
    pub processes_left: Vec<String>,
}

/// Waits until every consumer is idle, every message answered, every process ended and the read model at the end of
/// the log; or until that no longer seems to come.
pub async fn come_to_rest(
    bus: &Bus,
    database: &str,
    log: &mut Log,
    expected: &[String],
    work: &Path,
    errands: &Book,
    model_delay: Delay,
) -> Outcome<Rest> {
    let begun = Instant::now();
    let deadline = DEADLINE + model_delay.average() * ANSWERS;
    let (mut end, mut moved) = (0, Instant::now());
    let unsettled = loop {
        // A server that has just been started may not answer yet, which is no rest either.
        let left = to_do(bus, database, log, expected).await.unwrap_or_else(|error| Some(error.to_string()));
        let left = left.or_else(|| late_answers(errands));
        if log.end() != end {
            (end, moved) = (log.end(), Instant::now());
        }
        if left.is_none() || moved.elapsed() > QUIET || begun.elapsed() > deadline {
            break left;
        }
        tokio::time::sleep(ASK_AGAIN).await;
    };
    Ok(Rest {
        unsettled,
        not_projected: behind(database, end).await?,
        dead_letters: bus.nats()?.jetstream.get_stream(DLQ_STREAM).await?.cached_info().state.messages,
        processes_left: processes_left(work).await?,
    })
}

/// Returns the work that is left, if any. Consumers are asked one after another: if the log has grown meanwhile, the
/// first may be busy again.
async fn to_do(bus: &Bus, database: &str, log: &mut Log, expected: &[String]) -> Outcome<Option<String>> {
    let end = log.read_on(bus).await?;
    let open = open(log, expected);
    let busy = busy(bus).await?;
    let behind = behind(database, end).await?;
    let grown = log.read_on(bus).await? - end;
    if open.is_empty() && busy.is_empty() && behind == 0 && grown == 0 {
        return Ok(None);
    }
    Ok(Some(format!("open: [{}], consumers: [{busy}], not projected: {behind}, new: {grown}", open.join(", "))))
}

/// Answers of peers that are still to come, or came just now.
fn late_answers(errands: &Book) -> Option<String> {
    let due = errands.read().into_iter().filter_map(|line| line.due);
    let coming = due.filter(|due| *due + SETTLED_WITHIN > Timestamp::now()).count();
    (coming > 0).then(|| format!("{coming} answers of peers are still to come"))
}

fn open(log: &Log, expected: &[String]) -> Vec<String> {
    let messages = expected.iter().filter(|id| !log.open.answered.contains(*id)).map(|id| format!("message {id}"));
    let actions = log.open.actions.iter().map(|id| format!("action {id}"));
    let processes = log.open.processes.iter().map(|id| format!("process {id}"));
    let chains = log.open.chains.iter().map(|id| format!("chain {id}"));
    let tasks = log.open.tasks.iter().map(|id| format!("task {id}"));
    let sessions = log.open.sessions.iter().map(|id| format!("thread of work {id}"));
    messages.chain(actions).chain(processes).chain(chains).chain(tasks).chain(sessions).collect()
}

async fn busy(bus: &Bus) -> Outcome<String> {
    let mut busy = Vec::new();
    for consumer in Consumer::DURABLE {
        let stream = bus.nats()?.jetstream.get_stream_no_info(consumer.stream()).await?;
        let mut asked: PullConsumer = stream.get_consumer(consumer.name()).await?;
        let info = asked.info().await?;
        if info.num_pending > 0 || info.num_ack_pending > 0 {
            let (pending, out) = (info.num_pending, info.num_ack_pending);
            busy.push(format!("{} has {pending} to come and {out} out", consumer.name()));
        }
    }
    Ok(busy.join(", "))
}

async fn behind(database: &str, end: u64) -> Outcome<u64> {
    let mut postgres = PgConnection::connect(database).await?;
    let position = "SELECT coalesce(min(sequence), 0) FROM positions JOIN generations USING (generation) \
                    WHERE projection = 'read-model' AND state = 'live' AND version = \
                    (SELECT max(version) FROM generations WHERE projection = 'read-model')";
    let position: i64 = sqlx::query_scalar(position).fetch_one(&mut postgres).await?;
    postgres.close().await?;
    Ok(end.saturating_sub(u64::try_from(position)?))
}

/// Every process whose working folder is in `work`, after those that were just killed had their moment.
async fn processes_left(work: &Path) -> Outcome<Vec<String>> {
    let begun = Instant::now();
    loop {
        let left = processes_in(work)?;
        if left.is_empty() || begun.elapsed() > GONE_WITHIN {
            return Ok(left);
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

fn processes_in(work: &Path) -> std::io::Result<Vec<String>> {
    let processes = std::fs::read_dir("/proc")?.flatten().map(|process| process.path());
    let left = processes.filter(|process| process.join("cwd").read_link().is_ok_and(|cwd| cwd.starts_with(work)));
    Ok(left
        .map(|process: PathBuf| {
            let command = std::fs::read_to_string(process.join("cmdline")).unwrap_or_default().replace('\0', " ");
            format!("{}: {}", process.display(), command.trim())
        })
        .collect())
}
