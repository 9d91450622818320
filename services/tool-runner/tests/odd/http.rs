//! An MCP server over HTTP that answers from a table, byte for byte.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Status, content type (none where empty) and body, in which `{id}` stands for the id of the request.
pub type Answer = (u16, String, String);

/// A server, until it is dropped.
pub struct OddHttp {
    pub url: String,
    calls: Arc<Mutex<Vec<String>>>,
    task: AbortHandle,
}

impl OddHttp {
    /// Counts the calls of a tool.
    pub fn effects(&self, tool: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|call| *call == tool).count()
    }
}

impl Drop for OddHttp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Table {
    list: String,
    calls: BTreeMap<String, Answer>,
    /// To notifications, and to being asked for a stream.
    others: Answer,
    called: Arc<Mutex<Vec<String>>>,
}

pub async fn serve(list: String, calls: BTreeMap<String, Answer>, others: Answer) -> OddHttp {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let called: Arc<Mutex<Vec<String>>> = Arc::default();
    let table = Arc::new(Table { list, calls, others, called: Arc::clone(&called) });
    let task = tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(answer(connection, Arc::clone(&table)));
        }
    });
    OddHttp { url, calls: called, task: task.abort_handle() }
}

async fn answer(mut connection: TcpStream, table: Arc<Table>) {
    let Some((method, body)) = read(&mut connection).await else { return };
    let (status, kind, body) = match method.as_str() {
        "POST" => table.answer(&serde_json::from_slice(&body).unwrap()),
        _ => table.others.clone(),
    };
    let kind = if kind.is_empty() { String::new() } else { format!("content-type: {kind}\r\n") };
    let session = "mcp-session-id: s1\r\n";
    let head =
        format!("HTTP/1.1 {status} Odd\r\n{kind}{session}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let _ = connection.write_all(format!("{head}{body}").as_bytes()).await;
    let _ = connection.shutdown().await;
}

/// The method and the body of a request.
async fn read(connection: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut request = Vec::new();
    let head = loop {
        if connection.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            break String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
        }
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    let begin = head.len() + 4;
    while request.len() < begin + length.unwrap_or(0) {
        connection.read_buf(&mut request).await.ok()?;
    }
    let method = head.split(' ').next()?.to_ascii_uppercase();
    Some((method, request.split_off(begin)))
}

impl Table {
    fn answer(&self, message: &Value) -> Answer {
        let Some(id) = message.get("id") else { return self.others.clone() };
        let result = |result: Value| {
            (200, "application/json".to_owned(), json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
        };
        let (status, kind, body) = match message["method"].as_str().unwrap_or_default() {
            "initialize" => result(json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "1"},
            })),
            "tools/list" => (200, "application/json".to_owned(), self.list.clone()),
            "tools/call" => {
                let name = message["params"]["name"].as_str().unwrap_or_default().to_owned();
                let answer = self.calls[&name].clone();
                self.called.lock().unwrap().push(name);
                answer
            }
            // How old servers refuse what they do not know.
            _ => (500, "text/html".to_owned(), "<html>unknown</html>".to_owned()),
        };
        (status, kind, body.replace("{id}", &id.to_string()))
    }
}
