//! `web.search` against a real server on loopback.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use jiff::Timestamp;
use kairo_tool_runner::config::{ToolsConfig, WebSearchConfig};
use kairo_tool_runner::tool::{CallContext, ProgressReporter, ToolError, ToolErrorKind};
use kairo_tool_runner::toolbox::Toolbox;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Serves a search whose words say what it does, and returns its port. Ends with the runtime of the test.
async fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(answer(connection));
        }
    });
    port
}

async fn answer(connection: TcpStream) {
    let mut connection = BufReader::new(connection);
    let mut request = String::new();
    connection.read_line(&mut request).await.unwrap();
    let asked = request.split(' ').nth(1).unwrap().to_owned();
    let mut line = String::new();
    while connection.read_line(&mut line).await.unwrap() > 2 {
        line.clear();
    }
    let word = asked.split("q=").nth(1).and_then(|rest| rest.split(['&', '+']).next()).unwrap_or_default();
    let (status, body) = match word {
        "page" => ("200 OK", "<html>no json</html>".to_owned()),
        "forbidden" => ("403 Forbidden", String::new()),
        "busy" => ("429 Too Many Requests", String::new()),
        "endless" => ("200 OK", " ".repeat(5000)),
        "never" => return std::future::pending().await,
        _ => {
            let result = |n: usize| json!({"title": asked, "url": format!("https://{n}.example/"), "content": "text"});
            ("200 OK", json!({"results": (0..5).map(result).collect::<Vec<_>>(), "answers": ["42"]}).to_string())
        }
    };
    let response = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    // The client may have hung up.
    let _ = connection.write_all(response.as_bytes()).await;
    let _ = connection.shutdown().await;
}

async fn toolbox(url: String) -> Toolbox {
    let web_search = WebSearchConfig { url: Some(url), max_body_bytes: 4000, ..WebSearchConfig::default() };
    Toolbox::start(&ToolsConfig { web_search, ..ToolsConfig::default() }, Vec::new()).await.unwrap()
}

async fn search(toolbox: &Toolbox, args: Value, cancel: CancellationToken) -> Result<Value, ToolError> {
    let context = CallContext {
        user: None,
        action_id: "action".to_owned(),
        now: Timestamp::UNIX_EPOCH,
        begun: Timestamp::now(),
        agent: "ann".to_owned(),
        cancel,
        progress: ProgressReporter::discard(),
        exchange: Default::default(),
        target: None,
        thread_id: String::new(),
        decision_sequence: 0,
        target_after: 0,
    };
    toolbox.call("web.search", args, context).await
}

#[tokio::test]
async fn asks_for_json_and_returns_what_was_found() {
    let toolbox = toolbox(format!("http://127.0.0.1:{}", serve().await)).await;
    let args = json!({"query": "new pricing & more", "limit": 2, "language": "de"});
    let found = search(&toolbox, args, CancellationToken::new()).await.unwrap();
    let title = "/search?q=new+pricing+%26+more&format=json&language=de";
    assert_eq!(
        found,
        json!({
            "query": "new pricing & more",
            "results": [
                {"title": title, "url": "https://0.example/", "snippet": "text"},
                {"title": title, "url": "https://1.example/", "snippet": "text"},
            ],
            "answers": ["42"],
        })
    );
}

#[tokio::test]
async fn what_goes_wrong_says_whom_to_ask() {
    let found = toolbox(format!("http://127.0.0.1:{}", serve().await)).await;
    for (word, expected) in
        [("page", "web_search.url"), ("forbidden", "json"), ("busy", "wait"), ("endless", "4000 bytes")]
    {
        let error = search(&found, json!({"query": word}), CancellationToken::new()).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Failed);
        assert!(error.message.contains(expected), "{word}: {error}");
    }
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let down = toolbox(format!("http://{free}")).await;
    let error = search(&down, json!({"query": "x"}), CancellationToken::new()).await.unwrap_err();
    assert!(error.message.contains("cannot be reached") && !error.message.contains("127.0.0.1"), "{error}");
    let canceled = CancellationToken::new();
    let (outcome, ()) =
        tokio::join!(search(&found, json!({"query": "never"}), canceled.clone()), async { canceled.cancel() });
    assert_eq!(outcome.unwrap_err().kind, ToolErrorKind::Canceled);
    for args in [json!({}), json!({"query": ""}), json!({"query": "x", "language": "de&x=y"})] {
        let error = search(&found, args, CancellationToken::new()).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
    }
}
