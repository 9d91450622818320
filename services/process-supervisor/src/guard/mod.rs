//! The guard: a small process between a supervisor and the program it runs.
//!
//! A supervisor can die at any instant, so what must happen then cannot be left to it. The guard
//! holds the process at a gate until it is told to go, and kills it with all its descendants when
//! it ends, when its time is over, when the supervisor's end of the pipe closes, and when the
//! supervisor stops renewing its lease. When to do what is decided in [`crate::watch`]; this is
//! one loop around `poll`, without threads, that never waits for anything else.
//!
//! All of them may stand still together, and for so long that others would write the process off. If each was stopped
//! by a signal, the kernel wakes the guard when the lease is over ([`crate::clock::Alarm`]), and the guard kills
//! whatever is still stopped; nobody has written it off by then. If the machine sleeps, or a whole container is frozen,
//! nobody can be woken. Whatever the guard is doing when it resumes, it checks the lease first, and the program dies
//! before a command is obeyed or its output passed on. It cannot do more: the program may run for the moment until the
//! guard does.
//!
//! In a PID namespace ([`namespace`]) a program cannot reach its guard, and the kernel ends all of it with the guard.
//! On a machine that allows none, a program that kills its guard (they may share a user) dies with it; a daemon that
//! the program started in a session of its own survives, and is left to the supervisor ([`crate::guarded_process`]). The guard
//! cannot outlast a program that kills both it and the supervisor, unless Landlock protects both.

mod access;
mod channel;
mod gated_process;
pub mod launch;
pub mod namespace;
mod own_binary;
mod privileges;
pub(crate) mod process_table;
pub(crate) mod process_tree;
mod program_input;
pub mod system_calls;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike;
use nix::unistd::setsid;

use self::channel::{CommandPipe, MAX_READS, Reports, is_readable};
use self::gated_process::GatedProcess;
use self::process_tree::ignore_interruption;
use crate::clock::{self, Alarm};
use crate::output_capture::Capture;
use crate::protocol::{self, Exit, GuardCommand, Report, ResourceUsage, Spec, Stream};
use crate::watch::{Cause, Effect, ProcessWatch, WatchInput};

/// Milliseconds. A supervisor that reads nothing for so long when all is over does not learn how
/// it ended.
const FLUSH_TIMEOUT: u16 = 10_000;

/// The reason why a guard gave up. Nothing of its process is left then, as far as the kernel allows.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    #[error("the first command must be `prepare`; let the supervisor start its guards")]
    Unprepared,
    #[error("input or output failed: {0}")]
    Io(#[from] io::Error),
    #[error("the kernel refused: {0}")]
    Kernel(#[from] nix::Error),
}

/// Guards one process, told what to do on standard input and reporting on standard output.
///
/// # Errors
/// When the first command is not `prepare`, or the kernel refuses what the guard needs.
pub fn run() -> Result<(), GuardError> {
    // Out of the reach of a terminal's Ctrl-C, which is for the supervisor to deal with.
    setsid()?;
    prctl::set_child_subreaper(true)?;
    let signals = take_signals()?;
    let mut control = CommandPipe::open()?;
    let spec = loop {
        match control.next_command()? {
            Some(GuardCommand::Prepare { spec }) => break spec,
            Some(_) => return Err(GuardError::Unprepared),
            None => control.read()?,
        }
    };
    let mut guard = Guard::prepare(&spec, control, signals)?;
    let watched = guard.watch();
    // A guard that cannot see what happens must not let it go on.
    guard.kill_and_report(watched.as_ref().copied().unwrap_or(Cause::SupervisorLost))?;
    watched.map(drop)
}

/// Deaths of children come in as something to poll. Being asked to end is ignored: whoever stops
/// all of a service means the supervisor, and the guard lasts as long as that.
fn take_signals() -> nix::Result<SignalFd> {
    let taken = [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];
    let taken: SigSet = taken.into_iter().collect();
    taken.thread_block()?;
    SignalFd::with_flags(&taken, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}

struct Guard {
    control: CommandPipe,
    reports: Reports,
    signals: SignalFd,
    process: GatedProcess,
    capture: Capture,
    watch: ProcessWatch,
    alarm: Alarm,
    released: Option<Instant>,
}

/// A source that `poll` reports as ready.
#[derive(Clone, Copy)]
enum PollSource {
    Clock,
    Control,
    Signals,
    Reports,
    Gate,
    Input,
    Output(Stream),
}

impl Guard {
    fn prepare(spec: &Spec, control: CommandPipe, signals: SignalFd) -> Result<Self, GuardError> {
        let mut guard = Self {
            control,
            reports: Reports::open()?,
            signals,
            process: GatedProcess::spawn(spec)?,
            capture: Capture::new(spec.bounds.output_bytes),
            watch: ProcessWatch::new(spec, clock::now()),
            alarm: Alarm::new()?,
            released: None,
        };
        let pid = guard.process.id();
        guard.reports.push(&Report::Ready { pid })?;
        Ok(guard)
    }

    /// Until the process is over, and why it is.
    fn watch(&mut self) -> Result<Cause, GuardError> {
        let mut ready = Vec::new();
        loop {
            // Commands may have come along with the first.
            let mut commands = Vec::new();
            let mut inputs = Vec::new();
            if let Some(cause) = self.receive_commands(&mut commands, &mut inputs) {
                return Ok(cause);
            }
            self.obey(commands, &mut inputs);
            self.serve_sources(&ready, &mut inputs)?;
            let now = clock::now();
            for input in inputs {
                let effect = self.watch.on_input(input, now);
                if let Some(cause) = self.perform(effect) {
                    return Ok(cause);
                }
            }
            let effect = self.watch.check_deadlines(now);
            if let Some(cause) = self.perform(effect) {
                return Ok(cause);
            }
            ready = self.poll_sources()?;
        }
    }

    /// Hears all that the supervisor has said, and judges the lease by that and by the clock: beats that have arrived
    /// renew it, however late they are read. `Some` when it has lapsed; nothing else was done then.
    fn receive_commands(&mut self, commands: &mut Vec<GuardCommand>, inputs: &mut Vec<WatchInput>) -> Option<Cause> {
        if self.control.read_available().is_err() {
            inputs.push(WatchInput::SupervisorGone);
        }
        loop {
            match self.control.next_command() {
                Ok(None) => break,
                Ok(Some(GuardCommand::Beat { at_ms })) => {
                    let effect =
                        self.watch.on_input(WatchInput::Beat { at: Duration::from_millis(at_ms) }, clock::now());
                    if let Some(cause) = self.perform(effect) {
                        return Some(cause);
                    }
                }
                Ok(Some(command)) => commands.push(command),
                Err(_) => {
                    inputs.push(WatchInput::SupervisorGone);
                    break;
                }
            }
        }
        let effect = self.watch.check_lease(clock::now());
        self.perform(effect)
    }

    /// `Some` when it is time to finish.
    fn perform(&mut self, effect: Option<Effect>) -> Option<Cause> {
        match effect? {
            Effect::Release => {
                self.released = Some(Instant::now());
                self.process.open_gate();
                None
            }
            Effect::Terminate => {
                self.process.signal(Signal::SIGTERM);
                // A stopped process cannot deal with it.
                self.process.signal(Signal::SIGCONT);
                None
            }
            Effect::Finish(cause) => Some(cause),
        }
    }

    /// Deals with what is ready.
    fn serve_sources(&mut self, ready: &[PollSource], inputs: &mut Vec<WatchInput>) -> Result<(), GuardError> {
        for source in ready {
            match *source {
                // What came there was heard first.
                PollSource::Control | PollSource::Clock => {}
                PollSource::Signals => {
                    process_tree::drain_signals(&self.signals);
                    if self.process.has_ended()? {
                        inputs.push(WatchInput::Ended);
                    } else {
                        self.process.reap_orphans();
                    }
                }
                PollSource::Reports => {
                    if self.reports.write().is_err() {
                        inputs.push(WatchInput::SupervisorGone);
                    }
                }
                PollSource::Gate => self.read_gate()?,
                PollSource::Input => {
                    if let Some(report) = self.process.input.write() {
                        self.reports.push(&report)?;
                    }
                }
                PollSource::Output(stream) => self.read_output(stream)?,
            }
        }
        Ok(())
    }

    /// Waits until something is ready.
    fn poll_sources(&mut self) -> Result<Vec<PollSource>, GuardError> {
        self.alarm.set(self.watch.deadline())?;
        // Without anything to write, the supervisor's closing of the pipe still shows.
        let writing = match self.reports.is_empty() {
            true => PollFlags::empty(),
            false => PollFlags::POLLOUT,
        };
        // A supervisor that does not read slows the process down rather than fill the memory.
        let reading = self.reports.has_room();
        let output = |stream| match self.process.output(stream) {
            Some(pipe) if reading => Some((PollSource::Output(stream), pipe)),
            _ => None,
        };
        let inputs: Vec<(PollSource, BorrowedFd<'_>)> = [
            Some((PollSource::Clock, self.alarm.as_fd())),
            Some((PollSource::Control, self.control.as_fd())),
            self.process.gate().map(|gate| (PollSource::Gate, gate)),
            output(Stream::Stdout),
            output(Stream::Stderr),
            // After the gate and the output, which may explain a death.
            Some((PollSource::Signals, self.signals.as_fd())),
        ]
        .into_iter()
        .flatten()
        .collect();
        let (mut sources, mut fds): (Vec<PollSource>, Vec<PollFd<'_>>) =
            inputs.into_iter().map(|(source, fd)| (source, PollFd::new(fd, PollFlags::POLLIN))).unzip();
        sources.push(PollSource::Reports);
        fds.push(PollFd::new(self.reports.as_fd(), writing));
        if let Some((pipe, writing)) = self.process.input.pipe() {
            sources.push(PollSource::Input);
            fds.push(PollFd::new(pipe, writing));
        }

        poll(&mut fds, PollTimeout::NONE).or_else(ignore_interruption)?;
        let ready = sources.into_iter().zip(fds);
        Ok(ready.filter(|(_, fd)| fd.any().unwrap_or(true)).map(|(source, _)| source).collect())
    }

    fn obey(&mut self, commands: Vec<GuardCommand>, inputs: &mut Vec<WatchInput>) {
        for command in commands {
            match command {
                GuardCommand::Go => inputs.push(WatchInput::Go),
                GuardCommand::Cancel { grace_ms } => {
                    inputs.push(WatchInput::Cancel { grace: Duration::from_millis(grace_ms) })
                }
                GuardCommand::Write { text, close } => self.process.input.push(&text, close),
                GuardCommand::Signal { signal } => self.process.signal(signal.into()),
                // Both ends are the same binary: who says this is not our supervisor. Beats were heard before.
                GuardCommand::Prepare { .. } | GuardCommand::Beat { .. } => {
                    inputs.push(WatchInput::SupervisorGone);
                    return;
                }
            }
        }
    }

    fn read_gate(&mut self) -> io::Result<()> {
        match self.process.read_gate() {
            true => self.reports.push(&Report::Started),
            false => Ok(()),
        }
    }

    fn read_output(&mut self, stream: Stream) -> io::Result<()> {
        let bytes = self.process.read_output(stream);
        let output = match bytes.is_empty() {
            true => self.capture.finish(stream),
            false => self.capture.push_bytes(stream, &bytes),
        };
        match output {
            Some(output) => self.reports.push(&Report::Output(output)),
            None => Ok(()),
        }
    }

    /// Kills all that is left, and reports.
    fn kill_and_report(&mut self, cause: Cause) -> Result<(), GuardError> {
        let wall = self.released.map(|at| at.elapsed()).unwrap_or_default();
        self.process.signal(Signal::SIGKILL);
        let survivors = process_tree::kill_descendants(&self.signals)?;
        self.drain_pipes()?;
        self.reports.push(&Report::Exited(Exit {
            outcome: self.process.outcome(cause),
            usage: usage(wall)?,
            output: self.capture.totals(),
            survivors,
        }))?;
        self.flush()
    }

    /// All writers are dead, so the pipes hold the rest, and then end.
    fn drain_pipes(&mut self) -> Result<(), GuardError> {
        if self.process.gate().is_some_and(is_readable) {
            self.process.read_gate();
        }
        for stream in [Stream::Stdout, Stream::Stderr] {
            for _ in 0..MAX_READS {
                if !self.process.output(stream).is_some_and(is_readable) {
                    break;
                }
                self.read_output(stream)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), GuardError> {
        while !self.reports.is_empty() {
            let mut fds = [PollFd::new(self.reports.as_fd(), PollFlags::POLLOUT)];
            let ready = poll(&mut fds, PollTimeout::from(FLUSH_TIMEOUT))?;
            if ready == 0 || self.reports.write().is_err() {
                // Nobody is there to be told.
                break;
            }
        }
        Ok(())
    }
}

/// Of all that was waited for: the launcher, the program and its descendants.
fn usage(wall: Duration) -> nix::Result<ResourceUsage> {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
    Ok(ResourceUsage {
        wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
        user_ms: unsigned(used.user_time().num_milliseconds()),
        system_ms: unsigned(used.system_time().num_milliseconds()),
        // The kernel counts it in KiB.
        max_rss_bytes: unsigned(used.max_rss()).saturating_mul(1024),
    })
}

impl From<protocol::Signal> for Signal {
    fn from(signal: protocol::Signal) -> Self {
        match signal {
            protocol::Signal::Hup => Signal::SIGHUP,
            protocol::Signal::Int => Signal::SIGINT,
            protocol::Signal::Quit => Signal::SIGQUIT,
            protocol::Signal::Usr1 => Signal::SIGUSR1,
            protocol::Signal::Usr2 => Signal::SIGUSR2,
            protocol::Signal::Term => Signal::SIGTERM,
            protocol::Signal::Kill => Signal::SIGKILL,
            protocol::Signal::Stop => Signal::SIGSTOP,
            protocol::Signal::Cont => Signal::SIGCONT,
        }
    }
}
