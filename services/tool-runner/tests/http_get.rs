//! `http.get` against real servers on loopback, and with hosts that are where a test says.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::IpAddr,
    sync::{Arc, Mutex},
};

use futures::future::BoxFuture;
use jiff::Timestamp;
use kairo_tool_runner::builtin::http_get::{Hosts, HttpGet};
use kairo_tool_runner::config::{HttpConfig, ToolsConfig};
use kairo_tool_runner::tool::{CallContext, ProgressReporter, ToolErrorKind};
use kairo_tool_runner::toolbox::Toolbox;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use steered::Steered;

#[cfg(test)]
mod web {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::{TcpListener, TcpStream};

    /// A server that counts its connections. Ends with the runtime of the test.
    pub struct Site {
        pub port: u16,
        connections: Arc<AtomicUsize>,
    }

    impl Site {
        pub fn connections(&self) -> usize {
            self.connections.load(Ordering::SeqCst)
        }
    }

    /// Serves a few fixed paths on loopback and returns its port.
    pub async fn serve() -> u16 {
        serve_on("127.0.0.1:0").await.port
    }

    /// The same at this address.
    pub async fn serve_on(address: &str) -> Site {
        let listener = TcpListener::bind(address).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(answer(connection, port));
            }
        });
        Site { port, connections }
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
            to if to.starts_with("/to?") => redirect(to.trim_start_matches("/to?")),
            // Longer than is ever read; the client hangs up in between.
            "/endless" => format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1_000_000)),
            // No response at all.
            _ => return std::future::pending().await,
        };
        // The client may have hung up.
        let _ = connection.write_all(response.as_bytes()).await;
        let _ = connection.shutdown().await;
    }

    /// Reads the request's headers and returns the value of `idempotency-key`; empty if it is absent.
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
        let http = config(allow_hosts, &["127.0.0.1"]);
        Toolbox::start(&ToolsConfig { http, ..ToolsConfig::default() }, Vec::new()).await.unwrap()
    }

    pub fn config(allow_hosts: &[String], allow_private: &[&str]) -> HttpConfig {
        HttpConfig {
            allow_hosts: allow_hosts.to_vec(),
            allow_private: allow_private.iter().map(|&address| address.to_owned()).collect(),
            max_body_bytes: 100,
            ..HttpConfig::default()
        }
    }

    /// Hosts are where `hosts` says.
    pub async fn toolbox_finding(http: &HttpConfig, hosts: Arc<dyn Hosts>) -> Toolbox {
        let tool = HttpGet::with_hosts(http, http.allowed().unwrap(), hosts).unwrap();
        Toolbox::start(&ToolsConfig::default(), vec![Arc::new(tool)]).await.unwrap()
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
            exchange: Default::default(),
        }
    }

    pub async fn get(toolbox: &Toolbox, url: String) -> Result<Value, (ToolErrorKind, String)> {
        let call = toolbox.call("http.get", json!({"url": url}), context());
        call.await.map_err(|error| (error.kind, error.message))
    }
}

#[cfg(test)]
mod steered {
    use super::*;

    /// Answers each question about a host with the next of its answers, and at last with the last one.
    #[derive(Debug, Default)]
    pub struct Steered(Mutex<BTreeMap<String, VecDeque<Vec<IpAddr>>>>);

    impl Steered {
        pub fn host(self, host: &str, answers: &[&[&str]]) -> Self {
            let addresses = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
            self.0.lock().unwrap().insert(host.to_owned(), answers.iter().map(addresses).collect());
            self
        }

        /// Returns the number of answers left for a host; the last one stays.
        pub fn left(&self, host: &str) -> usize {
            self.0.lock().unwrap()[host].len()
        }
    }

    impl Hosts for Steered {
        fn find<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            let mut hosts = self.0.lock().unwrap();
            let answers = hosts.get_mut(host).expect("a host of the test");
            let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
            Box::pin(async move { Ok(answer.expect("an answer")) })
        }
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
async fn a_listed_name_that_leads_inside_is_refused() {
    let inside = web::serve_on("127.0.0.2:0").await;
    let url = format!("http://listed.example:{}/text", inside.port);
    let listed = ["listed.example".to_owned()];
    let nothing_private = calls::config(&listed, &[]);
    for address in [
        "127.0.0.2",
        "::1",
        "::ffff:127.0.0.2",
        "::ffff:7f00:2",
        "64:ff9b::127.0.0.2",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "169.254.1.1",
        "fe80::1",
        "fd00::1",
        "169.254.169.254",
        "fd00:ec2::254",
        "100.100.100.200",
        "168.63.129.16",
    ] {
        let hosts = Arc::new(Steered::default().host("listed.example", &[&[address]]));
        let toolbox = calls::toolbox_finding(&nothing_private, hosts).await;
        let (kind, message) = calls::get(&toolbox, url.clone()).await.unwrap_err();
        assert_eq!(kind, ToolErrorKind::Failed, "{address}");
        assert!(message.contains("not public") && message.contains("allow_private"), "{address}: {message}");
    }
    assert_eq!(inside.connections(), 0);

    // The exception is that address and no other.
    let private = calls::config(&listed, &["127.0.0.2"]);
    let hosts = Arc::new(Steered::default().host("listed.example", &[&["127.0.0.2"]]));
    let toolbox = calls::toolbox_finding(&private, hosts).await;
    assert_eq!(calls::get(&toolbox, url.clone()).await.unwrap()["body"], "hällo");
    let hosts = Arc::new(Steered::default().host("listed.example", &[&["127.0.0.3"]]));
    let toolbox = calls::toolbox_finding(&private, hosts).await;
    assert!(calls::get(&toolbox, url).await.unwrap_err().1.contains("not public"));
    assert_eq!(inside.connections(), 1);
}

#[tokio::test]
async fn no_name_of_strangers_leads_to_what_is_an_exception_for_a_listed_one() {
    let inside = web::serve_on("127.0.0.2:0").await;
    let http = calls::config(&["*".to_owned(), "listed.example".to_owned()], &["127.0.0.2"]);
    let hosts = Steered::default().host("listed.example", &[&["127.0.0.2"]]).host("evil.example", &[&["127.0.0.2"]]);
    let toolbox = calls::toolbox_finding(&http, Arc::new(hosts)).await;
    let url = |host: &str| format!("http://{host}:{}/text", inside.port);
    assert!(calls::get(&toolbox, url("evil.example")).await.unwrap_err().1.contains("not public"));
    assert!(calls::get(&toolbox, url("127.0.0.2")).await.unwrap_err().1.contains("not public"));
    assert_eq!(inside.connections(), 0);
    assert_eq!(calls::get(&toolbox, url("listed.example")).await.unwrap()["body"], "hällo");
}

#[tokio::test]
async fn a_redirect_leads_no_further_inside_than_the_url_itself() {
    let inside = web::serve_on("127.0.0.2:0").await;
    let outside = web::serve_on("127.0.0.1:0").await;
    let http = calls::config(&["site.example".to_owned(), "inside.example".to_owned()], &["127.0.0.1"]);
    let hosts = Steered::default().host("site.example", &[&["127.0.0.1"]]).host("inside.example", &[&["127.0.0.2"]]);
    let toolbox = calls::toolbox_finding(&http, Arc::new(hosts)).await;
    for target in [format!("http://inside.example:{}/text", inside.port), format!("http://127.0.0.2:{}/", inside.port)]
    {
        let url = format!("http://site.example:{}/to?{target}", outside.port);
        calls::get(&toolbox, url).await.unwrap_err();
    }
    assert_eq!((outside.connections() > 0, inside.connections()), (true, 0));
}

#[tokio::test]
async fn a_name_that_changes_its_mind_after_the_check_is_still_where_it_was() {
    let site = web::serve_on("127.0.0.1:0").await;
    let http = calls::config(&["rebound.example".to_owned()], &["127.0.0.1"]);
    let rebound: [&[&str]; 3] = [&["127.0.0.1"], &["127.0.0.2"], &["127.0.0.2"]];
    let hosts = Arc::new(Steered::default().host("rebound.example", &rebound));
    let toolbox = calls::toolbox_finding(&http, hosts.clone()).await;
    let url = format!("http://rebound.example:{}/text", site.port);
    assert_eq!(calls::get(&toolbox, url.clone()).await.unwrap()["body"], "hällo");
    assert_eq!(hosts.left("rebound.example"), 2, "asked once: what was checked is what is connected to");
    assert!(calls::get(&toolbox, url.clone()).await.unwrap_err().1.contains("not public"));

    // Of two addresses the one that may be reached.
    let hosts = Arc::new(Steered::default().host("rebound.example", &[&["127.0.0.2", "127.0.0.1"]]));
    let toolbox = calls::toolbox_finding(&http, hosts).await;
    assert_eq!(calls::get(&toolbox, url).await.unwrap()["body"], "hällo");
}

#[tokio::test]
async fn what_the_machine_knows_of_a_host_is_checked_as_well() {
    let site = web::serve_on("127.0.0.1:0").await;
    let url = format!("http://localhost:{}/text", site.port);
    let start = async |hosts: &str, private: &[&str]| {
        let http = calls::config(&[hosts.to_owned()], private);
        Toolbox::start(&ToolsConfig { http, ..ToolsConfig::default() }, Vec::new()).await.unwrap()
    };
    for toolbox in [start("*", &[]).await, start("localhost", &[]).await, start("*", &["127.0.0.1", "::1"]).await] {
        let (_, message) = calls::get(&toolbox, url.clone()).await.unwrap_err();
        assert!(message.contains("not public"), "{message}");
    }
    assert_eq!(site.connections(), 0);
    let listed = start("localhost", &["127.0.0.1"]).await;
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
