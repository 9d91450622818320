//! The connection to a server that is a child process: one message a line.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::super::health::HealthNotes;
use super::super::reader::{MessageReader, OutputReading};

/// Longest line of a server, in bytes. What is longer is read no further than this.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Time limit for a server to end once its standard input is closed, and again after SIGTERM.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// The signal that asks a process to end.
const SIGTERM: i32 = 15;

/// A child process, and what is read of it.
pub struct StdioTransport {
    child: Option<Box<dyn ChildWrapper>>,
    stdin: Arc<tokio::sync::Mutex<Option<ChildStdin>>>,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
    /// True if the line is longer than allowed, so that its end is not kept.
    is_cut: bool,
    reader: Arc<Mutex<MessageReader>>,
    /// Read, and not yet received.
    messages: VecDeque<ServerJsonRpcMessage>,
    notes: HealthNotes,
}

impl StdioTransport {
    /// Starts a program whose three streams are pipes.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn spawn(mut command: CommandWrap, notes: HealthNotes) -> io::Result<(Self, Option<ChildStderr>)> {
        let pipe = std::process::Stdio::piped;
        command.command_mut().stdin(pipe()).stdout(pipe()).stderr(pipe());
        let mut child = command.spawn()?;
        let stdin = child.stdin().take();
        let stdout = child.stdout().take().ok_or_else(|| io::Error::other("the process has no standard output"))?;
        let stderr = child.stderr().take();
        let process = Self {
            child: Some(child),
            stdin: Arc::new(tokio::sync::Mutex::new(stdin)),
            stdout: BufReader::new(stdout),
            line: Vec::new(),
            is_cut: false,
            reader: Arc::default(),
            messages: VecDeque::new(),
            notes,
        };
        Ok((process, stderr))
    }

    /// Reads on to the end of a line; false at the end of the stream. What was read stays when this is dropped.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let available = self.stdout.fill_buf().await?;
            if available.is_empty() {
                return Ok(false);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let length = end.unwrap_or(available.len());
            let room = MAX_LINE_BYTES.saturating_sub(self.line.len());
            self.is_cut |= length > room;
            self.line.extend_from_slice(available.get(..length.min(room)).unwrap_or_default());
            self.stdout.consume(end.map_or(length, |end| end + 1));
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    fn take_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_cut) {
            self.notes.add_note(&format!("a line longer than {MAX_LINE_BYTES} bytes"));
        }
        let OutputReading { messages, notes, left_out } =
            self.reader.lock().unwrap_or_else(PoisonError::into_inner).read(&line, None);
        self.messages.extend(messages);
        self.notes.record_oddities(&notes, &left_out);
    }

    /// Closes its standard input, then sends SIGTERM, then SIGKILL to the whole group.
    async fn end_process(&mut self) -> io::Result<()> {
        self.stdin.lock().await.take();
        // It stays here until it has ended: dropped in between it is killed.
        let Some(child) = self.child.as_mut() else { return Ok(()) };
        for signal in [Some(SIGTERM), None] {
            if let Ok(status) = tokio::time::timeout(END_TIMEOUT, child.wait()).await {
                self.notes.add_note(&format!("its process ended: {}", status?));
                self.child = None;
                return Ok(());
            }
            if let Some(signal) = signal {
                child.signal(signal)?;
            }
        }
        Box::into_pin(child.kill()).await?;
        self.notes.add_note("its process was killed, as it did not end");
        self.child = None;
        Ok(())
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).track_sent(&message);
        let stdin = Arc::clone(&self.stdin);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut stdin = stdin.lock().await;
            let stdin = stdin.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            stdin.write_all(&line).await?;
            stdin.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            let is_line = self.read_line().await.unwrap_or(false);
            // Also a last line without an end.
            if !is_line && self.line.is_empty() {
                return None;
            }
            self.take_line();
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.end_process().await
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Killed and waited for, so that no zombie stays.
            tokio::spawn(async move {
                if let Err(error) = Box::into_pin(child.kill()).await {
                    tracing::warn!(%error, "the process of an MCP server could not be killed");
                }
            });
        }
    }
}
