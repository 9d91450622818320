//! The cost of showing the console, beside an empty page in the same run: loading it over a slow network, the river
//! under very many events, and jumping about in a long thread. `tests/console/measuring.cjs` drives Chromium; this
//! module writes the events meanwhile into the log.

use std::{fmt, ops::Range, process::Stdio, time::Duration};

use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, append::OutgoingEvent},
    envelope::{Envelope, Origin},
    ids::{self, Name},
    subjects::{Service as Core, TOOL_PROGRESS},
};
use kairo_local::Service;
use kairo_proto::v1::ToolProgress;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
    time::interval,
};

use crate::{
    Outcome,
    agents::{Sender, define_one},
    arguments::{Console, Flushing},
    machine::{Fleet, Machine},
    projection::connect,
    rounds::progress,
};

/// The owner of the long thread's events; no agent, as nobody is to answer.
const OWNER: &str = "longwinded";
const THREAD: &str = "long";
/// The number of times a second that events are written while a pace is kept.
const TICKS_PER_S: u64 = 100;
/// Time for which the empty page is observed, in seconds.
const SHORTLY: u64 = 10;
/// Acknowledgements that are waited for at once.
const AT_ONCE: usize = 512;

/// Median of the loads, in milliseconds.
#[derive(Debug, Serialize, Deserialize)]
struct Load {
    first_paint: f64,
    usable: f64,
    script_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Loading {
    empty_page: Load,
    console: Load,
}

/// Milliseconds between frames, and tasks of more than 50 ms.
#[derive(Debug, Serialize, Deserialize)]
struct Frames {
    frames: u64,
    gap_p95: f64,
    long_tasks: u64,
    longest_task: f64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Flooded {
    floor: Frames,
    published: u64,
    received: u64,
    kept: u64,
    folded: u64,
    #[serde(flatten)]
    river: Frames,
    /// Long tasks by the processor time they took, which others may use in the middle of one.
    processed_long: u64,
    processed_longest: f64,
    /// Bytes that the page still needs.
    heap_before: u64,
    heap_after: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Jumping {
    jumps: u64,
    jump_p50: f64,
    jump_p95: f64,
    /// Of the thread, by what was shown of it.
    sentences: u64,
}

#[derive(Debug, Serialize)]
pub struct Report {
    per_s: u64,
    seconds: u64,
    loading: Loading,
    flooded: Flooded,
    jumping: Jumping,
}

pub async fn measure(wanted: &Console) -> Outcome<Report> {
    let [program, chromium] = ["KAIRO_CONSOLE_JOURNEYS", "KAIRO_CHROMIUM"]
        .map(|name| std::env::var(name).map_err(|_| format!("there is no {name}: run scripts/setup --tests")));
    let (program, chromium) = (program?, chromium?);
    let mut machine = Machine::servers(Flushing::Default).await?;
    machine.start_services(&Fleet::telling_the_time()).await?;
    let url = machine.stack.url(Service::Gateway).unwrap_or_default().to_owned();
    define_one(&Sender { agent: "default".to_owned(), http: machine.http.clone(), url: url.clone() }, 20).await?;
    let bus = connect(&machine.nats.operator()).await?;

    let mut command = Command::new(program);
    command.args([&chromium, url.trim_end_matches('/'), "loading,flooded,jumping"]);
    let mut driving = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let (Some(said), Some(mut answers)) = (driving.stdout.take(), driving.stdin.take()) else {
        return Err("what drives the console cannot be spoken with".into());
    };
    let (mut said, mut found) = (BufReader::new(said).lines(), Vec::new());
    while let Some(line) = said.next_line().await? {
        if let Some(figures) = line.strip_prefix("found ") {
            found.push(figures.to_owned());
        } else if let Some(want) = line.strip_prefix("want ") {
            progress(want);
            let done = fulfil(&bus, wanted, want).await?;
            answers.write_all(format!("{done}\n").as_bytes()).await?;
        }
    }
    let ended = driving.wait().await?;
    machine.stop().await?;
    let [loading, flooded, jumping] = found.as_slice() else {
        return Err(format!("the console was not measured to the end: {ended}").into());
    };
    Ok(Report {
        per_s: wanted.per_s,
        seconds: wanted.seconds,
        loading: serde_json::from_str(loading)?,
        flooded: serde_json::from_str(flooded)?,
        jumping: serde_json::from_str(jumping)?,
    })
}

/// Does what is wanted, and says what comes of it.
async fn fulfil(bus: &Bus, wanted: &Console, want: &str) -> Outcome<String> {
    match want {
        "publish shortly" => Ok(publish(bus, wanted.per_s, SHORTLY).await?.to_string()),
        "publish" => Ok(publish(bus, wanted.per_s, wanted.seconds).await?.to_string()),
        "fill a thread" => {
            write(bus, 0..wanted.events).await?;
            Ok(OWNER.to_owned())
        }
        _ => Err(format!("the console wants {want}, which nobody does").into()),
    }
}

/// Writes progress of an action at this pace. Returns how many events that were.
async fn publish(bus: &Bus, per_s: u64, seconds: u64) -> Outcome<u64> {
    let mut ticks = interval(Duration::from_millis(1_000 / TICKS_PER_S));
    let each = per_s / TICKS_PER_S;
    for tick in 0..seconds * TICKS_PER_S {
        ticks.tick().await;
        write(bus, tick * each..(tick + 1) * each).await?;
    }
    Ok(each * seconds * TICKS_PER_S)
}

/// Writes events of one thread, many at once.
async fn write(bus: &Bus, numbers: Range<u64>) -> Outcome<()> {
    let owner = Name::parse(OWNER)?;
    let owner = &owner;
    let writing = stream::iter(numbers).map(|number| async move {
        let said = ToolProgress {
            tool: "tools.tell".to_owned(),
            message: format!("Sentence {number} of a long story"),
            ..ToolProgress::default()
        };
        let envelope = Envelope::from_outside(ids::generate(), Core::ToolRunner, Origin::Tool, Timestamp::now());
        bus.publish(&OutgoingEvent::new(&TOOL_PROGRESS, owner, envelope.with_thread(THREAD), said)).await?;
        Outcome::Ok(())
    });
    writing.buffer_unordered(AT_ONCE).try_collect().await
}

impl fmt::Display for Load {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first_paint, usable, script_bytes } = self;
        write!(out, "first paint {first_paint} ms, usable {usable} ms, {script_bytes} bytes of scripts")
    }
}

impl fmt::Display for Frames {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frames, gap_p95, long_tasks, longest_task } = self;
        write!(
            out,
            "{frames} frames, p95 {gap_p95} ms apart; {long_tasks} tasks over 50 ms, the longest {longest_task} ms"
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { per_s, seconds, loading, flooded, jumping } = self;
        writeln!(out, "loading at 1.6 Mbit/s and 150 ms, median")?;
        writeln!(out, "  an empty page: {}", loading.empty_page)?;
        writeln!(out, "  the console:   {}", loading.console)?;
        writeln!(out, "{per_s} events/s for {seconds} s")?;
        writeln!(out, "  an empty page: {}", flooded.floor)?;
        writeln!(out, "  the river:     {}", flooded.river)?;
        let Flooded { published, received, kept, folded, heap_before, heap_after, .. } = flooded;
        let Flooded { processed_long, processed_longest, .. } = flooded;
        writeln!(out, "  of a processor: {processed_long} tasks over 50 ms, the longest {processed_longest} ms")?;
        writeln!(out, "  {published} published, {received} received = {kept} kept + {folded} folded")?;
        writeln!(out, "  heap {heap_before} bytes before, {heap_after} after")?;
        let Jumping { jumps, jump_p50, jump_p95, sentences } = jumping;
        writeln!(out, "a thread of {sentences} events")?;
        writeln!(out, "  {jumps} jumps: median {jump_p50} ms, p95 {jump_p95} ms")
    }
}
