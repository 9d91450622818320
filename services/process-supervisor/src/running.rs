//! A process from the moment its gate opens to its end.

use std::{convert::Infallible, future::Future, time::Duration};

use futures::FutureExt;
use kairo_core::{
    bus::{Bus, BusError, append::Outgoing},
    envelope::Origin,
    subjects::{PROCESS_PROGRESS, Service},
};
use tokio::{sync::watch, time::Instant};

use crate::{
    events::{self, End, progress_id},
    guarded::{Guarded, GuardedError},
    process::Process,
    progress::{Pace, Progress},
    protocol::{Exit, Output},
};

/// Frames put together when they are ready at once.
const FRAMES: usize = 32;
/// Between two events of one process that say how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Opens the gate, passes on what the process writes, and says how it ended. When `stop` is ready the process is asked
/// to end, and killed when the grace that came with it is over.
pub async fn run(bus: &Bus, mut guarded: Guarded, process: &Process, stop: impl Future<Output = Duration>) -> End {
    // Of a guard that is gone, or that was told to cancel before, the end says more.
    guarded.go().await.ok();
    process.opened();
    let (newest, news) = watch::channel(None);
    tokio::select! {
        biased;
        () = listen(&mut guarded, process, &newest, stop) => {}
        never = tell(bus, process, news) => match never {},
    }
    let rest = process.account().finish();
    say(process, rest).await;
    ended(guarded.wait().await, process)
}

/// Passes on what the process writes, until that is all.
async fn listen(
    guarded: &mut Guarded,
    process: &Process,
    newest: &watch::Sender<Option<Progress>>,
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
        let frames = ready(first, guarded);
        let mut found = Vec::new();
        let output: Vec<Output> = {
            let mut account = process.account();
            frames.into_iter().map(|frame| account.take(frame, &mut found)).collect()
        };
        if let Some(last) = found.pop() {
            newest.send_replace(Some(last));
        }
        say(process, output).await;
    }
}

/// Collects the output that is ready without waiting, after `first`.
fn ready(first: Output, guarded: &mut Guarded) -> Vec<Output> {
    let mut frames = vec![first];
    while frames.len() < FRAMES
        && let Some(Some(frame)) = guarded.next_output().now_or_never()
    {
        frames.push(frame);
    }
    frames
}

async fn say(process: &Process, output: Vec<Output>) {
    if let Some(live) = &process.live {
        live.say(output).await;
    }
}

/// Says how far the process is, whenever there is news and it is time for it.
async fn tell(bus: &Bus, process: &Process, mut news: watch::Receiver<Option<Progress>>) -> Infallible {
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
        let Some((number, progress)) = pace.due(began.elapsed()) else { continue };
        if let Err(error) = say_progress(bus, process, number, &progress).await {
            tracing::debug!(action = %process.action, %error, "progress not written, trying again");
            pace.put_back(number, progress);
        }
    }
}

async fn say_progress(bus: &Bus, process: &Process, number: u64, progress: &Progress) -> Result<(), BusError> {
    let body = events::progress(process.action, bus.instance.as_str(), progress, process.account().end());
    let id = progress_id(process.action, number);
    let envelope = process.cause.follow(id, Service::ProcessSupervisor, Origin::System, bus.now());
    let progress = Outgoing::new(&PROCESS_PROGRESS, &process.agent, envelope, body);
    bus.publish(&progress.whose(process.cause.whose.clone())).await?;
    Ok(())
}

fn ended(exit: Result<Exit, GuardedError>, process: &Process) -> End {
    match exit {
        Ok(exit) => {
            let account = process.account();
            let exit = Exit { output: account.without_progress(exit.output), ..exit };
            End::Seen { exit, tails: account.tails().clone(), on_request: process.is_canceled() }
        }
        Err(error) => End::lost_guard(&error.to_string()),
    }
}
