//! Guards of processes that are invented: they speak the protocol of the real ones, and keep to the lease. What a program
//! does is to let some milliseconds pass.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use kairo_core::ids::Name;
use kairo_process_supervisor::{
    confinement::KernelConfinement,
    guarded_process::GuardedError,
    launcher::{Launch, LaunchedGuard, WorkplaceError},
    protocol::{Exit, ExitOutcome, GuardCommand, OutputTotals, Report, ResourceUsage, Spec},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex},
    time::{Instant, sleep_until},
};

use crate::{
    flaw::Flaw,
    world::{ProcessState, Shared},
};

/// The capacity of the pipe between a supervisor and a guard, in bytes.
const PIPE: usize = 1 << 20;
/// The working time of a long program, in milliseconds.
const LONG: u64 = 12_000;

pub struct Invented {
    pub world: Shared,
}

impl std::fmt::Debug for Invented {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("guards that are invented")
    }
}

impl Launch for Invented {
    fn ensure_workplace<'a>(
        &'a self,
        root: &'a Path,
        agent: &'a Name,
    ) -> BoxFuture<'a, Result<PathBuf, WorkplaceError>> {
        std::future::ready(Ok(root.join(agent.as_str()))).boxed()
    }

    fn start(&self) -> Result<LaunchedGuard, GuardedError> {
        let (commands, read) = duplex(PIPE);
        let (write, reports) = duplex(PIPE);
        tokio::spawn(guard(self.world.clone(), BufReader::new(read).lines(), write));
        Ok(LaunchedGuard {
            commands: Box::new(commands),
            reports: Box::new(reports),
            clear_up: Box::new(|_| std::future::ready(()).boxed()),
        })
    }

    fn kernel_confinement(&self) -> KernelConfinement {
        KernelConfinement { files: true, ports: true, signals: true, pids: true, network: true, system_calls: true }
    }

    fn now(&self) -> Duration {
        self.world.lock().unwrap().started.elapsed()
    }
}

/// A guard, from its first command to the end of its process.
async fn guard(world: Shared, mut commands: Lines<BufReader<DuplexStream>>, mut reports: DuplexStream) {
    let Some(GuardCommand::Prepare { spec }) = next(&mut commands).await else { return };
    let (process, pid) = world.lock().unwrap().prepare();
    say(&mut reports, &Report::Ready { pid }).await;
    let (state, outcome) = watch(&world, process, &spec, &mut commands, &mut reports).await;
    world.lock().unwrap().over(process, state);
    let exit = Exit { outcome, usage: ResourceUsage::default(), output: OutputTotals::default(), survivors: 0 };
    say(&mut reports, &Report::Exited(exit)).await;
}

async fn watch(
    world: &Shared,
    process: usize,
    spec: &Spec,
    commands: &mut Lines<BufReader<DuplexStream>>,
    reports: &mut DuplexStream,
) -> (ProcessState, ExitOutcome) {
    let (started, flaw) = {
        let world = world.lock().unwrap();
        (world.started, world.flaw)
    };
    let lost = (ProcessState::Killed, ExitOutcome::SupervisorLost);
    let mut heard = Instant::now();
    let mut ends = None;
    if flaw == Some(Flaw::GateFirst) {
        ends = Some(run(world, process, spec));
    }
    loop {
        let lapses =
            if flaw == Some(Flaw::LeaseIgnored) { heard + Duration::from_secs(3_600) } else { heard + spec.lease() };
        let command = tokio::select! {
            biased;
            () = sleep_until(lapses) => return lost,
            command = next(commands) => command,
            () = sleep_until(ends.unwrap_or(lapses)), if ends.is_some() => {
                return (ProcessState::Ended, ExitOutcome::Exited { code: 0 });
            }
        };
        match command {
            // The supervisor is gone, or let go of it.
            None => return lost,
            Some(GuardCommand::Go) if ends.is_none() => {
                ends = Some(run(world, process, spec));
                say(reports, &Report::Started).await;
            }
            // One that was made before the lease lapsed, and no other, renews it.
            Some(GuardCommand::Beat { at_ms }) => heard = heard.max(started + Duration::from_millis(at_ms)),
            Some(GuardCommand::Cancel { .. }) => return (ProcessState::Stopped, ExitOutcome::Canceled),
            Some(_) => {}
        }
    }
}

/// Lets the program run; when it ends by itself.
fn run(world: &Shared, process: usize, spec: &Spec) -> Instant {
    let mut world = world.lock().unwrap();
    world.open(process);
    let asked = spec.args.first().and_then(|arg| arg.parse().ok()).unwrap_or(0);
    let works = if world.faults.long_programs { asked.max(LONG) } else { asked };
    Instant::now() + Duration::from_millis(works)
}

async fn next(commands: &mut Lines<BufReader<DuplexStream>>) -> Option<GuardCommand> {
    let line = commands.next_line().await.ok()??;
    Some(serde_json::from_str(&line).expect("a command"))
}

/// To whoever is still there.
async fn say(reports: &mut DuplexStream, report: &Report) {
    let line = serde_json::to_string(report).expect("JSON") + "\n";
    let _ = reports.write_all(line.as_bytes()).await;
}
