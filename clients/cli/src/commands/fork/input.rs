//! Lines typed in a fork, and calls that whoever types is asked to answer.

use std::{
    io::{self, BufRead},
    sync::Arc,
    thread,
};

use futures::future::BoxFuture;
use kairo_fork::tools::{CallAnswerer, CallResult};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::commands::question_prompt;

/// Calls that may wait for an answer at once; of more whoever asks waits.
const CALLS: usize = 16;

/// A call that somebody is asked about.
pub struct UnansweredCall {
    pub tool: String,
    pub arguments: Value,
    /// The channel for the result of the call; `None` if nobody knows it.
    pub result: oneshot::Sender<Option<Value>>,
}

/// The source of typed lines and of calls to answer.
pub struct ForkInput {
    lines: mpsc::Receiver<io::Result<String>>,
    calls: mpsc::Receiver<UnansweredCall>,
    /// True if somebody types the lines at a terminal.
    pub is_terminal: bool,
}

/// The next input: a typed line or a call.
pub enum InputEvent {
    /// None when there are no more.
    Line(io::Result<Option<String>>),
    Call(UnansweredCall),
}

struct TerminalAsker(mpsc::Sender<UnansweredCall>);

impl ForkInput {
    /// The one message, if there is one, else the lines of standard input; and whoever can be asked about calls.
    pub fn start(message: Option<String>, json: bool) -> (Self, Option<Arc<dyn CallAnswerer>>) {
        let (send, lines) = mpsc::channel(1);
        let (ask, calls) = mpsc::channel(CALLS);
        let is_terminal = message.is_none() && !json && question_prompt::can_prompt();
        match message {
            Some(message) => _ = send.try_send(Ok(message)),
            None => _ = thread::spawn(move || forward_stdin_lines(&send)),
        }
        let asked = is_terminal.then(|| Arc::new(TerminalAsker(ask)) as _);
        (Self { lines, calls, is_terminal }, asked)
    }

    /// The next line; none when there are no more. Nothing is lost if it is dropped.
    pub async fn next_line(&mut self) -> io::Result<Option<String>> {
        self.lines.recv().await.transpose()
    }

    /// The next line, or a call that is asked about before. Nothing is lost if it is dropped.
    pub async fn next(&mut self) -> InputEvent {
        tokio::select! {
            biased;
            line = self.lines.recv() => InputEvent::Line(line.transpose()),
            Some(call) = self.calls.recv() => InputEvent::Call(call),
        }
    }

    /// The next call that is asked about. Nothing is lost if it is dropped.
    pub async fn next_call(&mut self) -> UnansweredCall {
        match self.calls.recv().await {
            Some(call) => call,
            // Nobody will ask.
            None => std::future::pending().await,
        }
    }
}

fn forward_stdin_lines(send: &mpsc::Sender<io::Result<String>>) {
    for line in io::stdin().lock().lines() {
        if send.blocking_send(line).is_err() {
            return;
        }
    }
}

impl CallAnswerer for TerminalAsker {
    fn answer_call<'a>(&'a self, tool: &'a str, arguments: &'a Value) -> BoxFuture<'a, Option<CallResult>> {
        Box::pin(async move {
            let (result, told) = oneshot::channel();
            let call = UnansweredCall { tool: tool.to_owned(), arguments: arguments.clone(), result };
            self.0.send(call).await.ok()?;
            told.await.ok().flatten().map(Ok)
        })
    }
}
