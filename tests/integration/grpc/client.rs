//! The client in Python, one process for one key.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::world::DEADLINE;

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/grpc/client.py");

pub struct Python {
    address: String,
    key: Option<String>,
    input: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl Python {
    /// Starts the client; `None` if it is not installed.
    pub fn start(address: &str, key: Option<&str>) -> Option<Self> {
        let Some(python) = std::env::var_os("KAIRO_GRPC_PYTHON") else {
            eprintln!("skipped: the gRPC client of Python is not installed; run ./scripts/test");
            return None;
        };
        let started =
            Command::new(python).arg(CLIENT).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
        let mut process = started.unwrap();
        let input = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        let key = key.map(str::to_owned);
        Some(Self { address: address.to_owned(), key, input, answers, _process: process })
    }

    /// Has the client perform an action and returns its answer, or the error with which it was refused.
    pub async fn ask(&mut self, action: &str, arguments: Value) -> Result<Value, Value> {
        let request = json!({ "address": self.address, "key": self.key, "do": action, "arguments": arguments });
        self.input.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        let answer = timeout(DEADLINE, self.answers.next_line()).await.expect("the client never answered").unwrap();
        let mut answer: Value = serde_json::from_str(&answer.expect("the client broke off")).unwrap();
        match answer.get_mut("ok") {
            Some(good) => Ok(good.take()),
            None => Err(answer["error"].take()),
        }
    }

    pub async fn call(&mut self, rpc: &str, message: Value) -> Result<Value, Value> {
        self.ask("call", json!([format!("kairo.v1.{rpc}"), message])).await
    }

    /// Every message up to one in whose JSON these words are.
    pub async fn stream(&mut self, rpc: &str, message: Value, until: &str) -> Result<Value, Value> {
        self.ask("stream", json!([format!("kairo.v1.{rpc}"), message, until])).await
    }
}
