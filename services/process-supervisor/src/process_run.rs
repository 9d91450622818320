//! A process from the moment its gate opens to its end.

use std::{convert::Infallible, future::Future, time::Duration};

use futures::FutureExt;
use kairo_core::{
    bus::{Bus, BusError, append::OutgoingEvent},
    envelope::Origin,
    subjects::{PROCESS_PROGRESS, Service},
};
use tokio::{sync::watch, time::Instant};

use crate::{
    events::{self, ProcessEnding, progress_id},
    guarded_process::{GuardedError, GuardedProcess},
    progress::{OutputProgress, Pace},
    protocol::{Exit, Output},
    running_process::RunningProcess,
};

/// Frames put together when they are ready at once.
const FRAMES: usize = 32;
/// Between two events of one process that say how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Opens the gate, passes on what the process writes, and says how it ended. When `stop` is ready the process is asked
/// to end, and killed when the grace that came with it is over.
pub async fn run(
    bus: &Bus,
    mut guarded: GuardedProcess,
    process: &RunningProcess,
    stop: impl Future<Output = Duration>,
) -> ProcessEnding {
    // Of a guard that is gone, or that was told to cancel before, the end says more.
    guarded.open_gate().await.ok();
    process.mark_running();
    let (newest, news) = watch::channel(None);
    tokio::select! {
        biased;
        () = forward_output(&mut guarded, process, &newest, stop) => {}
        never = report_progress(bus, process, news) => match never {},
    }
    let rest = process.account().finish();
    publish_output(process, rest).await;
    process_end(guarded.wait().await, process)
}

/// Passes on what the process writes, until that is all.
async fn forward_output(
    guarded: &mut GuardedProcess,
    process: &RunningProcess,
    newest: &watch::Sender<Option<OutputProgress>>,
    stop: impl Future<Output = Duration>,
) {
    let control = guarded.control();
    let stop = stop.fuse();
    tokio::pin!(stop);
    loop {
        let first = tokio::select! {
            biased;
            grace = &mut stop => {
                // A guard that is gone has killed already.
                control.cancel(grace).await.ok();
                continue;
            }
            output = guarded.next_output() => output,
        };
        let Some(first) = first else { return };
        let frames = collect_ready(first, guarded);
        let mut found = Vec::new();
        let output: Vec<Output> = {
            let mut account = process.account();
            frames.into_iter().map(|frame| account.record_output(frame, &mut found)).collect()
        };
        if let Some(last) = found.pop() {
            newest.send_replace(Some(last));
        }
        publish_output(process, output).await;
    }
}

/// Collects the output that is ready without waiting, after `first`.
fn collect_ready(first: Output, guarded: &mut GuardedProcess) -> Vec<Output> {
    let mut frames = vec![first];
    while frames.len() < FRAMES
        && let Some(Some(frame)) = guarded.next_output().now_or_never()
    {
        frames.push(frame);
    }
    frames
}

async fn publish_output(process: &RunningProcess, output: Vec<Output>) {
    if let Some(live) = &process.live {
        live.publish(output).await;
    }
}

/// Says how far the process is, whenever there is news and it is time for it.
async fn report_progress(
    bus: &Bus,
    process: &RunningProcess,
    mut news: watch::Receiver<Option<OutputProgress>>,
) -> Infallible {
    let began = Instant::now();
    let mut pace = Pace::new(PROGRESS_INTERVAL);
    loop {
        let due = async {
            match pace.deadline() {
                Some(at) => tokio::time::sleep_until(began + at).await,
                None => std::future::pending().await,
            }
        };
        let changed = tokio::select! {
            biased;
            changed = news.changed() => changed.is_ok(),
            () = due => false,
        };
        if changed && let Some(progress) = news.borrow_and_update().clone() {
            pace.push(progress);
        }
        let Some((number, progress)) = pace.take_due(began.elapsed()) else { continue };
        if let Err(error) = publish_progress(bus, process, number, &progress).await {
            tracing::debug!(action = %process.action, %error, "progress not written, trying again");
            pace.put_back(number, progress);
        }
    }
}

async fn publish_progress(
    bus: &Bus,
    process: &RunningProcess,
    number: u64,
    progress: &OutputProgress,
) -> Result<(), BusError> {
    let body =
        events::progress_body(process.action, bus.instance.as_str(), progress, process.account().combined_tail());
    let id = progress_id(process.action, number);
    let envelope = process.cause.follow_up(id, Service::ProcessSupervisor, Origin::System, bus.now());
    let progress = OutgoingEvent::new(&PROCESS_PROGRESS, &process.agent, envelope, body);
    bus.publish(&progress.with_data_subject(process.cause.owners.clone())).await?;
    Ok(())
}

fn process_end(exit: Result<Exit, GuardedError>, process: &RunningProcess) -> ProcessEnding {
    match exit {
        Ok(exit) => {
            let account = process.account();
            let exit = Exit { output: account.without_progress(exit.output), ..exit };
            ProcessEnding::Seen { exit, tails: account.tails().clone(), on_request: process.is_canceled() }
        }
        Err(error) => ProcessEnding::lost_guard(&error.to_string()),
    }
}
