//! A child process that cannot outlive us, and that a test can kill, freeze and wait for.
//!
//! `setpriv --pdeathsig KILL` asks the kernel to kill the child when its parent is gone, however it
//! went. The kernel's parent is the *thread* that spawned, so every child is spawned by one thread
//! that lives as long as this program (`SPAWNER`): threads of an async runtime come and go.
//!
//! A child is reaped only when its [`ChildProcess`] is dropped or restarted. Until then its id, and that of
//! its process group, belong to nobody else, so a signal can never reach a stranger.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::error::LocalError;
use crate::log::{self, LogFile};
use crate::placement::UnixAccount;

/// A longer line goes to the log in pieces; no line can fill our memory.
const LINE_LIMIT_BYTES: u64 = 64 * 1024;

/// Longest time for the kernel to end a process after SIGKILL.
const KILL_DEADLINE: Duration = Duration::from_secs(10);

/// A process to start.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// The name of the process in errors.
    pub name: String,
    /// Absolute path of the program.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Added to our own environment, after `env_hidden` was taken from it.
    pub env: Vec<(String, String)>,
    /// Variables whose names begin with one of these are not inherited.
    pub env_hidden: Vec<&'static str>,
    /// Working directory; ours if `None`.
    pub dir: Option<PathBuf>,
    /// Both output streams are appended here; at 16 MiB the file moves to `<log>.1`.
    pub log: PathBuf,
    /// Returns true for the line of output that says that the process is ready.
    pub ready: fn(&str) -> bool,
    /// Another user to run as, which only root can ask for.
    pub(crate) account: Option<UnixAccount>,
    /// True if, started by root, it may do no more than an ordinary user of that id.
    pub unprivileged: bool,
}

impl ProcessSpec {
    /// `program` with no arguments, our environment, and its output in `log`.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            env_hidden: Vec::new(),
            dir: None,
            log: log.into(),
            ready: |_| false,
            account: None,
            unprivileged: false,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    fn command(&self, output: io::PipeWriter) -> io::Result<Command> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(account) = &self.account {
            command.args(account.setpriv_args());
        }
        if self.unprivileged && rustix::process::geteuid().is_root() {
            command.args(["--bounding-set=-all", "--inh-caps=-all"]);
        }
        command.arg("--").arg(&self.program).args(&self.args);
        for (name, _) in std::env::vars_os() {
            let shown = name.to_string_lossy();
            if self.env_hidden.iter().any(|hidden| shown.starts_with(hidden)) {
                command.env_remove(name);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command.process_group(0).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        Ok(command)
    }
}

/// The way a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It ended by itself.
    Code(i32),
    /// A signal of this number ended it.
    Signal(i32),
    /// Somebody else reaped it.
    Unknown,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::Unknown => f.write_str("in an unknown way"),
        }
    }
}

/// A running or ended child. Dropping it kills its process group and reaps it.
#[derive(Debug)]
pub struct ChildProcess {
    name: String,
    log: PathBuf,
    pid: Pid,
    child: Child,
    exit: watch::Receiver<Option<Exit>>,
    /// Taken when the child is reaped.
    waiter: Option<JoinHandle<()>>,
    ready: Option<oneshot::Receiver<String>>,
}

impl ChildProcess {
    /// Starts it; [`ChildProcess::wait_until_ready`] then waits until it is of use.
    pub async fn spawn(spec: ProcessSpec) -> Result<Self, LocalError> {
        if !spec.program.is_file() {
            return Err(LocalError::MissingProgram { program: spec.program });
        }
        let failed = |source: io::Error| LocalError::Spawn { name: spec.name.clone(), source };
        let log_file = LogFile::open(&spec.log).map_err(LocalError::io("cannot open", &spec.log))?;
        let (output, input) = io::pipe().map_err(failed)?;
        let child =
            spawn_from_lasting_thread(spec.command(input).map_err(failed)?).await.map_err(|source| {
                match source.kind() {
                    io::ErrorKind::NotFound => LocalError::MissingSetpriv,
                    _ => failed(source),
                }
            })?;
        let pid = Pid::from_child(&child);
        let (exit_sender, exit) = watch::channel(None);
        let waiter = spawn_named_thread("wait", move || {
            exit_sender.send_replace(Some(wait_without_reaping(pid)));
        })
        .map_err(failed)?;
        let (ready_sender, ready) = oneshot::channel();
        spawn_named_thread("log", move || {
            copy_output(output, log_file, spec.ready, ready_sender);
        })
        .map_err(failed)?;
        Ok(Self { name: spec.name, log: spec.log, pid, child, exit, waiter: Some(waiter), ready: Some(ready) })
    }

    /// The process id; nobody else's until this is dropped, whether it runs or not.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Returns the name of the process in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the file that its output goes to.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines of its log, at most 2 kB.
    pub fn log_tail(&self) -> String {
        log::tail(&self.log)
    }

    /// Waits for the line that says it is ready, and returns it. To be called once.
    pub async fn wait_until_ready(&mut self, deadline: Duration) -> Result<String, LocalError> {
        let name = self.name.clone();
        let log = self.log.clone();
        let Some(ready) = self.ready.take() else {
            return Ok(String::new());
        };
        let announced = async {
            match ready.await {
                Ok(line) => Ok(line),
                // Its output ended without the line, which is as good as its end.
                Err(_) => Err(self.wait_for_exit().await),
            }
        };
        match timeout(deadline, announced).await {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(exit)) => Err(LocalError::Exited { tail: log::tail(&log), name, exit, log }),
            Err(_) => Err(LocalError::NotReady { tail: log::tail(&log), name, deadline, log }),
        }
    }

    /// Returns how it ended, or `None` while it runs.
    pub fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// Waits until it has ended.
    pub async fn wait_for_exit(&self) -> Exit {
        let mut exit = self.exit.clone();
        // The sender lives until it has sent, so an error cannot be seen here.
        exit.wait_for(Option::is_some).await.map_or(Exit::Unknown, |exit| exit.unwrap_or(Exit::Unknown))
    }

    /// SIGKILL to this process alone, as when a machine takes it away: what becomes of its own
    /// children is for it to have arranged. Returns when it is gone.
    pub async fn kill9(&self) -> Result<Exit, LocalError> {
        self.signal(Signal::KILL);
        timeout(KILL_DEADLINE, self.wait_for_exit())
            .await
            .map_err(|_| LocalError::Unkillable { name: self.name.clone(), deadline: KILL_DEADLINE })
    }

    /// Asks it to end with SIGTERM; after `grace`, kills its process group.
    pub async fn terminate(&self, grace: Duration) -> Result<Exit, LocalError> {
        self.signal(Signal::TERM);
        self.thaw();
        if let Ok(exit) = timeout(grace, self.wait_for_exit()).await {
            return Ok(exit);
        }
        if self.waiter.is_some() {
            kill_group(self.pid);
        }
        self.kill9().await
    }

    /// Stops it in its tracks (SIGSTOP), as a paused virtual machine would be. Returns when all of its threads stand still:
    /// on a busy machine they go on for a while after the signal.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        let stopped =
            || waitid(WaitId::Pid(self.pid), WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        while self.waiter.is_some() && matches!(stopped(), Ok(None) | Err(rustix::io::Errno::INTR)) {}
    }

    /// Lets a frozen process go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills what is left of its group and gives its id back to the kernel. Afterwards it can only be
    /// asked how it ended.
    pub(crate) fn reap(&mut self) {
        let Some(waiter) = self.waiter.take() else {
            return;
        };
        kill_group(self.pid);
        let _ = waiter.join();
        let _ = self.child.wait();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if self.waiter.is_none() {
            return;
        }
        // It is ours and not reaped, so the only possible failure would be another user's process
        // that we may not signal; whoever waits for the effect reports that it did not come.
        let _ = kill_process(self.pid, signal);
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.reap();
    }
}

fn kill_group(leader: Pid) {
    // No such group: all its members are gone, which is what we want.
    let _ = kill_process_group(leader, Signal::KILL);
}

/// Blocks until the child has ended, and leaves it as a zombie that keeps its id taken.
fn wait_without_reaping(pid: Pid) -> Exit {
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Exit::Code(code),
                    (None, Some(signal)) => Exit::Signal(signal),
                    (None, None) => Exit::Unknown,
                };
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Exit::Unknown,
        }
    }
}

/// Copies output to the log until its last writer is gone, and sends the first line that says the
/// process is ready.
fn copy_output(output: PipeReader, mut log: LogFile, is_ready: fn(&str) -> bool, ready: oneshot::Sender<String>) {
    let mut ready = Some(ready);
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while matches!((&mut output).take(LINE_LIMIT_BYTES).read_until(b'\n', &mut line), Ok(1..)) {
        // A full disk must not stop the process: the log loses lines, the pipe is still emptied.
        let _ = log.write(&line);
        if ready.is_some() {
            let text = String::from_utf8_lossy(&line);
            if is_ready(&text)
                && let Some(ready) = ready.take()
            {
                let _ = ready.send(text.trim_end().to_owned());
            }
        }
        line.clear();
    }
}

fn spawn_named_thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(format!("local-{name}")).stack_size(128 * 1024).spawn(body)
}

type SpawnJob = (Command, oneshot::Sender<io::Result<Child>>);

/// The thread that is the parent of every child; see the head of this file.
static SPAWNER: LazyLock<Option<mpsc::Sender<SpawnJob>>> = LazyLock::new(|| {
    let (sender, jobs) = mpsc::channel::<SpawnJob>();
    spawn_named_thread("spawn", move || {
        for (mut command, reply) in jobs {
            let _ = reply.send(command.spawn());
        }
    })
    .ok()
    .map(|_| sender)
});

async fn spawn_from_lasting_thread(command: Command) -> io::Result<Child> {
    let no_thread = || io::Error::other("the thread that starts processes could not be started");
    let (reply, child) = oneshot::channel();
    SPAWNER.as_ref().and_then(|spawner| spawner.send((command, reply)).ok()).ok_or_else(no_thread)?;
    child.await.map_err(|_| no_thread())?
}
