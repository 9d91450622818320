//! `http.get` against a real server on loopback.

use jiff::Timestamp;
use kairo_tool_runner::config::{HttpConfig, ToolsConfig};
use kairo_tool_runner::tool::{CallContext, ProgressReporter, ToolErrorKind};
use kairo_tool_runner::toolbox::Toolbox;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[cfg(test)]
mod web {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::{TcpListener, TcpStream};

    /// Serves a few fixed paths and returns its port. Ends with the runtime of the test.
    pub async fn serve() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(answer(connection, port));
            }
        });
        port
    }

    async fn answer(connection: TcpStream, port: u16) {
        let mut connection = BufReader::new(connection);
        let mut request = String::new();
        connection.read_line(&mut request).await.unwrap();
        let path = request.split(' ').nth(1).unwrap().to_owned();
        let key = idempotency_key(&mut connection).await;
        let redirect = |to: &str| format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        let response = match path.as_str() {
            "/text" => {
                "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nset-cookie: a=b\r\ncontent-length: 6\r\n\r\nhällo"
                    .to_owned()
            }
            "/key" => format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{key}", key.len()),
            "/to-key" => redirect("/key"),
            "/missing" => "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone".to_owned(),
            "/redirect" => redirect("/text"),
            "/loop" => redirect("/loop"),
            "/elsewhere" => redirect(&format!("http://localhost:{port}/text")),
            "/file" => redirect("file:///etc/passwd"),
            // Longer than is ever read; the client hangs up in between.
            "/endless" => format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1_000_000)),
            // No response at all.
            _ => return std::future::pending().await,
        };
        // The client may have hung up.
        let _ = connection.write_all(response.as_bytes()).await;
        let _ = connection.shutdown().await;
    }

    /// What the header of this name says.
    async fn idempotency_key(request: &mut BufReader<TcpStream>) -> String {
        let mut key = String::new();
        loop {
            let mut line = String::new();
            request.read_line(&mut line).await.unwrap();
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("idempotency-key") => key = value.to_owned(),
                Some(_) => {}
                None => return key,
            }
        }
    }
}

#[cfg(test)]
mod calls {
    use super::*;

    pub async fn toolbox(allow_hosts: &[String]) -> Toolbox {
        let http = HttpConfig { allow_hosts: allow_hosts.to_vec(), max_body_bytes: 100, ..HttpConfig::default() };
        Toolbox::start(&ToolsConfig { http, ..ToolsConfig::default() }, Vec::new()).await.unwrap()
    }

    pub fn context() -> CallContext {
        CallContext {
            user: None,
            action_id: "action".to_owned(),
            now: Timestamp::UNIX_EPOCH,
            begun: Timestamp::now(),
            agent: "tester".to_owned(),
            target: None,
            thread_id: String::new(),
            decision_sequence: 0,
            target_after: 0,
            cancel: CancellationToken::new(),
            progress: ProgressReporter::discard(),
        }
    }

    pub async fn get(toolbox: &Toolbox, url: String) -> Result<Value, (ToolErrorKind, String)> {
        let call = toolbox.call("http.get", json!({"url": url}), context());
        call.await.map_err(|error| (error.kind, error.message))
    }
}

#[tokio::test]
async fn a_server_is_told_the_action_so_that_it_can_do_it_once() {
    let port = web::serve().await;
    let toolbox = calls::toolbox(&[format!("127.0.0.1:{port}")]).await;
    for path in ["key", "to-key"] {
        let answer = calls::get(&toolbox, format!("http://127.0.0.1:{port}/{path}")).await.unwrap();
        assert_eq!(answer["body"], "action", "{path}");
    }
}

#[tokio::test]
async fn reads_an_allowed_host_and_follows_redirects_within_it() {
    let port = web::serve().await;
    let toolbox = calls::toolbox(&[format!("127.0.0.1:{port}")]).await;
    for path in ["text", "redirect"] {
        let answer = calls::get(&toolbox, format!("http://127.0.0.1:{port}/{path}")).await.unwrap();
        assert_eq!(
            answer,
            json!({
                "url": format!("http://127.0.0.1:{port}/text"),
                "status": 200,
                "headers": {"content-type": "text/plain", "content-length": "6"},
                "body": "hällo",
                "encoding": "text",
                "truncated": false,
            })
        );
    }
    let missing = calls::get(&toolbox, format!("http://127.0.0.1:{port}/missing")).await.unwrap();
    assert_eq!((&missing["status"], &missing["body"]), (&json!(404), &json!("gone")));
}

#[tokio::test]
async fn a_body_is_cut_off_at_the_limit() {
    let port = web::serve().await;
    let toolbox = calls::toolbox(&["127.0.0.1".to_owned()]).await;
    let answer = calls::get(&toolbox, format!("http://127.0.0.1:{port}/endless")).await.unwrap();
    assert_eq!(answer["body"], "x".repeat(100));
    assert_eq!(answer["truncated"], true);
}

#[tokio::test]
async fn leaves_the_list_neither_directly_nor_by_redirect() {
    let port = web::serve().await;
    let toolbox = calls::toolbox(&[format!("127.0.0.1:{port}")]).await;
    for (url, reason) in [
        (format!("http://127.0.0.1:{port}/elsewhere"), "localhost is not allowed"),
        (format!("http://127.0.0.1:{port}/file"), "only http and https"),
        (format!("http://127.0.0.1:{port}/loop"), "more than 5 redirects"),
        ("http://127.0.0.1:1/".to_owned(), "127.0.0.1 is not allowed"),
        (format!("http://localhost:{port}/text"), "localhost is not allowed"),
    ] {
        let (kind, message) = calls::get(&toolbox, url.clone()).await.unwrap_err();
        assert_eq!(kind, ToolErrorKind::Failed, "{url}");
        assert!(message.contains(reason), "{url}: {message}");
    }
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_unless_it_is_listed() {
    let port = web::serve().await;
    let url = format!("http://localhost:{port}/text");
    let any = calls::toolbox(&["*".to_owned()]).await;
    let (kind, message) = calls::get(&any, url.clone()).await.unwrap_err();
    assert_eq!(kind, ToolErrorKind::Failed);
    assert!(message.contains("not public"), "{message}");
    let listed = calls::toolbox(&["localhost".to_owned()]).await;
    assert_eq!(calls::get(&listed, url).await.unwrap()["body"], "hällo");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_on_request() {
    let port = web::serve().await;
    let toolbox = calls::toolbox(&["127.0.0.1".to_owned()]).await;
    let ctx = calls::context();
    let cancel = ctx.cancel.clone();
    let args = json!({"url": format!("http://127.0.0.1:{port}/silent")});
    let call = toolbox.call("http.get", args, ctx);
    let (outcome, ()) = tokio::join!(call, async { cancel.cancel() });
    assert_eq!(outcome.unwrap_err().kind, ToolErrorKind::Canceled);
}

#[tokio::test]
async fn is_not_offered_without_hosts() {
    let toolbox = calls::toolbox(&[]).await;
    assert!(toolbox.catalogue().get("http.get").is_none());
    let (kind, _) = calls::get(&toolbox, "http://127.0.0.1/".to_owned()).await.unwrap_err();
    assert_eq!(kind, ToolErrorKind::NotFound);
}
