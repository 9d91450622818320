//! A real browser, and what a user does with a page in it, through the DevTools protocol.

use std::{path::Path, process::Stdio};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    net::TcpStream,
    process::{Child, Command},
    sync::oneshot,
};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

use crate::world::DEADLINE;

/// The browser that is installed; where none is, that is said.
pub fn program() -> Option<String> {
    let program = std::env::var("KAIRO_CHROMIUM").ok();
    if program.is_none() {
        eprintln!("skipped: no Chromium is installed");
    }
    program
}

/// A browser that runs until this is dropped.
pub struct Chromium {
    /// The address for debuggers.
    address: oneshot::Receiver<String>,
    process: Child,
    _profile: TempDir,
}

impl Chromium {
    /// One that shows this.
    pub fn open(program: &str, url: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new(program);
        // It does not sandbox what root runs. A port for debuggers keeps it open.
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"]);
        command.arg(format!("--user-data-dir={}", profile.path().display())).arg(url);
        // What is started is a script that starts the browser.
        command.process_group(0);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let (tell, address) = oneshot::channel();
        tokio::spawn(listen(process.stderr.take().unwrap(), tell));
        Self { address, process, _profile: profile }
    }

    /// The page of a file, once it is loaded.
    pub async fn page(program: &str, path: &Path) -> Page {
        let mut chromium = Self::open(program, "about:blank");
        let opening = async {
            let address = (&mut chromium.address).await.expect("the browser has ended");
            let pages: Vec<Value> =
                reqwest::get(format!("http://{address}/json/list")).await.unwrap().json().await.unwrap();
            let page = pages.iter().find(|it| it["type"] == "page").unwrap();
            connect_async(page["webSocketDebuggerUrl"].as_str().unwrap()).await.unwrap().0
        };
        let socket = tokio::time::timeout(DEADLINE, opening).await.expect("the browser opens no page");
        let mut page = Page { socket, calls: 0, _chromium: chromium };
        page.call("Page.enable", json!({})).await;
        page.call("Page.navigate", json!({ "url": format!("file://{}", path.display()) })).await;
        page.wait(|told| told["method"] == "Page.loadEventFired").await;
        page
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let Some(id) = self.process.id() else { return };
        drop(std::process::Command::new("kill").args(["-KILL", "--", &format!("-{id}")]).status());
    }
}

/// Reads all that a browser writes, and tells the address that stands in it.
async fn listen(written: impl AsyncRead + Unpin, tell: oneshot::Sender<String>) {
    let (mut lines, mut tell) = (BufReader::new(written).lines(), Some(tell));
    while let Ok(Some(line)) = lines.next_line().await {
        let address = line.strip_prefix("DevTools listening on ws://").and_then(|url| url.split('/').next());
        if let Some((address, tell)) = address.and_then(|address| Some((address, tell.take()?))) {
            let _ = tell.send(address.to_owned());
        }
    }
}

/// A page that is shown.
pub struct Page {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    calls: u64,
    _chromium: Chromium,
}

impl Page {
    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let call = json!({ "id": id, "method": method, "params": params });
        self.socket.send(Message::text(call.to_string())).await.unwrap();
        let answer = self.wait(|told| told["id"] == id).await;
        assert_eq!(answer["error"], Value::Null, "{method}: {answer}");
        answer["result"].clone()
    }

    async fn wait(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let waiting = async {
            loop {
                let told = self.socket.next().await.expect("the browser has ended").unwrap();
                let told: Value = serde_json::from_str(told.to_text().unwrap()).unwrap_or_default();
                if is_it(&told) {
                    return told;
                }
            }
        };
        tokio::time::timeout(DEADLINE, waiting).await.expect("the browser says nothing")
    }

    /// Evaluates a JavaScript expression. The debugger runs it, so the page's own restrictions do not apply.
    pub async fn look(&mut self, expression: &str) -> Value {
        let look = json!({ "expression": expression, "returnByValue": true });
        let seen = self.call("Runtime.evaluate", look).await;
        assert_eq!(seen["exceptionDetails"], Value::Null, "{expression}: {seen}");
        seen["result"]["value"].clone()
    }

    /// The document, as the browser has it.
    pub async fn document(&mut self) -> String {
        self.look("document.documentElement.outerHTML").await.as_str().unwrap().to_owned()
    }

    /// Clicks with the mouse on the middle of what this selects.
    pub async fn click(&mut self, selector: &str) {
        let middle = format!(
            "(() => {{ const it = document.querySelector({}); it.scrollIntoView(); const at = it.getBoundingClientRect(); \
             return [at.x + at.width / 2, at.y + at.height / 2]; }})()",
            json!(selector)
        );
        let at = self.look(&middle).await;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event).await;
        }
    }

    /// Presses a key, with the text that it types.
    pub async fn press(&mut self, key: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", event).await;
        }
    }
}
