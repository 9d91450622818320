//! The supervisor's side of a guard.

mod input_budget;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kairo_core::bus::Bus;
use kairo_core::ids::Name;
use kairo_core::watch;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::input_budget::InputBudget;
pub use self::input_budget::InputError;
use crate::launcher::{Launch, LaunchedGuard, WorkplaceError};
use crate::line_buffer::{LineBuffer, LineTooLong};
use crate::protocol::{Exit, GuardCommand, MAX_LINE_BYTES, Output, Report, Signal, Spec};

/// The longest time for a guard to bring its process to the gate.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(10);

/// Frames of output that wait for whoever reads them; more wait in the guard, which is bounded
/// too.
const OUTPUT_FRAMES: usize = 64;

/// Commands that wait for the guard to read them.
const COMMANDS: usize = 16;

/// The reason why a process could not be guarded. Nothing of it is left in any case.
#[derive(Debug, thiserror::Error)]
pub enum GuardedError {
    #[error("the guard could not be started from {program}: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("the guard was not ready within {PREPARE_TIMEOUT:?}; is the machine overloaded?")]
    Slow,
    #[error("the guard ended without saying how its process did; its log may tell why")]
    Lost,
    #[error("the guard sent what cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the guard sent what cannot be read: {0}")]
    TooLong(#[from] LineTooLong),
    #[error("talking to the guard failed: {0}")]
    Io(#[from] std::io::Error),
}

/// Has guards started, and tells all of them that the supervisor still lives.
///
/// A guard that hears no beat ([`GuardFleet::send_heartbeat`]) for its lease counts its supervisor as lost and
/// kills. When to beat, and how long the lease must be, is for [`crate::lease`] to say.
#[derive(Debug)]
pub struct GuardFleet {
    launcher: Arc<dyn Launch>,
    /// The bus that runs the tasks which talk to guards.
    bus: Option<Bus>,
    /// The time of the last beat.
    beats: watch::Sender<Duration>,
}

impl GuardFleet {
    /// Guards that `launcher` starts.
    pub fn new(launcher: Arc<dyn Launch>) -> Self {
        Self { launcher, bus: None, beats: watch::Sender::new(Duration::ZERO) }
    }

    /// Binds the guards to a replica: the tasks that talk to them share its fate.
    pub fn with_bus(self, bus: &Bus) -> Self {
        Self { bus: Some(bus.clone()), ..self }
    }

    /// Renews the lease of all guarded processes whose lease has not lapsed.
    pub fn send_heartbeat(&self) {
        self.beats.send_replace(self.launcher.now());
    }

    /// Makes sure that there is a folder of `agent` in `root` for its processes to start in.
    ///
    /// # Errors
    /// When there is none, or one that others may enter.
    pub async fn ensure_workplace(&self, root: &Path, agent: &Name) -> Result<PathBuf, WorkplaceError> {
        self.launcher.ensure_workplace(root, agent).await
    }

    /// Makes a process that waits to run its program.
    ///
    /// # Errors
    /// When no guard can be started. That the program cannot is an [`Exit`] instead, since it
    /// shows only after [`GuardedProcess::open_gate`].
    pub async fn prepare(&self, spec: Spec) -> Result<GuardedProcess, GuardedError> {
        let LaunchedGuard { commands: pipe, reports, clear_up } = self.launcher.start()?;
        let (commands, queue) = mpsc::channel(COMMANDS);
        let input = SharedInput::new(&spec);
        let control = ProcessControl { commands, input: input.clone() };
        // In the queue before anything is written: not even a beat may come first.
        control.send(GuardCommand::Prepare { spec: Box::new(spec) }).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(self.host(write_commands(pipe, queue, self.beats.subscribe())));

        let mut reports = Reports::new(reports);
        let ready = timeout(PREPARE_TIMEOUT, reports.next());
        let Report::Ready { pid } = ready.await.map_err(|_| GuardedError::Slow)?? else {
            return Err(GuardedError::Lost);
        };
        let (frames, output) = mpsc::channel(OUTPUT_FRAMES);
        let (ended, exit) = oneshot::channel();
        tasks.spawn(self.host(async move {
            let exit = read_reports(reports, &frames, &input).await;
            // Before the end of the output tells that it is over.
            input.lock().close();
            drop(frames);
            clear_up(exit.is_err().then_some(pid)).await;
            // Whoever does not wait does not want to know.
            ended.send(exit).ok();
        }));
        Ok(GuardedProcess { pid, control, output, exit, _tasks: tasks })
    }

    fn host(&self, task: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
        match &self.bus {
            Some(bus) => bus.host_task(task),
            None => task.boxed(),
        }
    }
}

/// A process behind its guard. Dropping it kills the process and all its descendants.
#[derive(Debug)]
pub struct GuardedProcess {
    pid: u32,
    control: ProcessControl,
    output: mpsc::Receiver<Output>,
    exit: oneshot::Receiver<Result<Exit, GuardedError>>,
    /// The writer holds the pipe whose closing tells the guard to kill.
    _tasks: JoinSet<()>,
}

impl GuardedProcess {
    /// The process id, and the id of its process group; known before the program runs.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Opens the gate. Call it when the process has been recorded, and not before.
    ///
    /// # Errors
    /// When the guard is gone.
    pub async fn open_gate(&self) -> Result<(), GuardedError> {
        self.control.send(GuardCommand::Go).await
    }

    /// Returns the next output of the process. `None` after the last.
    ///
    /// If the reader falls behind by more than about a MiB, the process waits when it writes.
    pub async fn next_output(&mut self) -> Option<Output> {
        self.output.recv().await
    }

    /// A handle with which the process can be stopped from elsewhere.
    pub fn control(&self) -> ProcessControl {
        self.control.clone()
    }

    /// Waits for the end of the process and returns it. Nothing of the process is left then. Unread output is
    /// discarded.
    ///
    /// # Errors
    /// When the guard ended without a report, for instance because it was killed.
    pub async fn wait(self) -> Result<Exit, GuardedError> {
        let Self { control, output, exit, _tasks, .. } = self;
        // Whoever waits no longer commands; but the writer must go on sending beats.
        drop(output);
        let exit = exit.await.unwrap_or(Err(GuardedError::Lost));
        drop(control);
        exit
    }
}

/// Commands to a guarded process.
#[derive(Debug, Clone)]
pub struct ProcessControl {
    commands: mpsc::Sender<GuardCommand>,
    input: SharedInput,
}

#[derive(Debug, Clone)]
struct SharedInput(Arc<Mutex<InputBudget>>);

impl SharedInput {
    fn new(spec: &Spec) -> Self {
        Self(Arc::new(Mutex::new(InputBudget::new(spec.stdin, spec.bounds.stdin_bytes))))
    }

    fn lock(&self) -> MutexGuard<'_, InputBudget> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProcessControl {
    /// Asks the process group to end, and kills it when `grace` is over.
    ///
    /// # Errors
    /// When the guard is gone, and the process with it.
    pub async fn cancel(&self, grace: Duration) -> Result<(), GuardedError> {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.send(GuardCommand::Cancel { grace_ms }).await
    }

    /// Passes a signal to the process group.
    ///
    /// # Errors
    /// When the guard is gone, and the process with it.
    pub async fn signal(&self, signal: Signal) -> Result<(), GuardedError> {
        self.send(GuardCommand::Signal { signal }).await
    }

    /// Passes `text` to the program's standard input, and closes it after that if `close` is set. Does not wait for the
    /// program to read: what it has not read yet waits, up to the limit of its [`Spec`].
    ///
    /// # Errors
    /// When it cannot be taken; then none of it was.
    pub async fn write(&self, text: String, close: bool) -> Result<(), InputError> {
        let slot = self.commands.reserve().await;
        // Until it is sent: what was counted first is written first.
        let mut input = self.input.lock();
        if slot.is_err() {
            // The guard is gone, and the program with it.
            input.close();
        }
        input.reserve(text.len(), close)?;
        if let Ok(slot) = slot {
            slot.send(GuardCommand::Write { text, close });
        }
        Ok(())
    }

    async fn send(&self, command: GuardCommand) -> Result<(), GuardedError> {
        let sent = self.commands.send(command).await;
        sent.map_err(|_| GuardedError::Lost)
    }
}

/// Writes commands, and beats between them, until there is nobody left to send or to read them.
async fn write_commands(
    mut guard: impl AsyncWrite + Unpin,
    mut commands: mpsc::Receiver<GuardCommand>,
    mut beats: watch::Receiver<Duration>,
) {
    let mut beating = true;
    loop {
        let command = tokio::select! {
            biased;
            command = commands.recv() => match command {
                Some(command) => command,
                None => return,
            },
            beat = beats.wait_for_change(), if beating => match beat {
                // Of when it was made, however late it gets there.
                Ok(()) => heartbeat_command(*beats.borrow_and_update()),
                // Without beats the guard will see to the end; commands still count until then.
                Err(_) => {
                    beating = false;
                    continue;
                }
            },
        };
        let Ok(mut line) = serde_json::to_vec(&command) else {
            return;
        };
        line.push(b'\n');
        if guard.write_all(&line).await.is_err() {
            return;
        }
    }
}

fn heartbeat_command(at: Duration) -> GuardCommand {
    GuardCommand::Beat { at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX) }
}

/// Passes output on until the process has ended.
async fn read_reports(
    mut reports: Reports,
    frames: &mpsc::Sender<Output>,
    input: &SharedInput,
) -> Result<Exit, GuardedError> {
    loop {
        match reports.next().await? {
            Report::Ready { .. } | Report::Started => {}
            // Nobody may be listening, but the end must still be heard.
            Report::Output(output) => frames.send(output).await.unwrap_or_default(),
            Report::InputTaken { bytes } => input.lock().release(bytes),
            Report::InputClosed => input.lock().close(),
            Report::Exited(exit) => return Ok(exit),
        }
    }
}

struct Reports {
    pipe: Box<dyn AsyncRead + Send + Unpin>,
    lines: LineBuffer,
}

impl Reports {
    fn new(pipe: Box<dyn AsyncRead + Send + Unpin>) -> Self {
        Self { pipe, lines: LineBuffer::new(MAX_LINE_BYTES) }
    }

    async fn next(&mut self) -> Result<Report, GuardedError> {
        let mut bytes = [0; 16 << 10];
        loop {
            if let Some(line) = self.lines.next_line()? {
                return Ok(serde_json::from_slice(&line)?);
            }
            let count = self.pipe.read(&mut bytes).await?;
            if count == 0 {
                return Err(GuardedError::Lost);
            }
            self.lines.push(bytes.get(..count).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests;
