//! Tools through whole turns: MCP servers from the registries, the built-in ones, and calls that must not work.

use std::net::SocketAddr;

use futures::future::join_all;
use kairo_core::event_json::EventJson;
use kairo_local::{Service, ThirdPartyServer, Tools};
use kairo_proto::v1;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};

use crate::world::{Sent, Wanted, World};

/// A web server that answers everything with the same words, until the test ends.
async fn web() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let mut connection = BufReader::new(connection);
            let mut line = String::new();
            while connection.read_line(&mut line).await.is_ok_and(|read| read > 2) {
                line.clear();
            }
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 14\r\n\r\nwords of a web";
            // The client may have hung up.
            let _ = connection.write_all(answer.as_bytes()).await;
            let _ = connection.shutdown().await;
        }
    });
    address
}

/// A scenario in which "`word`" makes the agent call a tool and repeat its result.
fn scenario(calls: &[(&str, &str, Value)]) -> String {
    let rules = calls.iter().map(|(word, tool, arguments)| {
        json!({
            "name": word,
            "when": { "user_contains": format!("<{word}>") },
            "turn": [{ "tool_calls": [{ "tool": tool, "arguments": arguments }] }, "{{ last_result_text }}"],
        })
    });
    // JSON is YAML.
    json!({ "rules": rules.collect::<Vec<_>>() }).to_string()
}

/// Says every word as a user of its own, and returns what was replied.
async fn replies(world: &World, calls: &[(&str, &str, Value)]) -> Vec<(Sent, String)> {
    let said = calls.iter().map(|(word, ..)| async move {
        let message = json!({ "user": word, "agent": "default", "text": format!("<{word}>") });
        let sent = world.send_as(&message).await;
        let reply = world.reply(&sent).await;
        (sent, reply)
    });
    join_all(said).await
}

async fn result(world: &World, sent: &Sent) -> EventJson {
    let events = world.events_of(sent).await;
    let mut results = events.into_iter().filter(|event| event.type_name == v1::ToolResult::TYPE);
    let result = results.next().unwrap();
    assert!(results.next().is_none(), "several results of one call");
    result
}

#[tokio::test]
async fn mcp_servers_from_npm_and_pypi_are_called_through_whole_turns() {
    let calls = [
        ("time", "time.get_current_time", json!({ "timezone": "Asia/Tokyo" })),
        ("echo", "all.echo", json!({ "message": "from npm" })),
        ("sum", "web.get-sum", json!({ "a": 2, "b": 40 })),
        ("mars", "time.get_current_time", json!({ "timezone": "Mars/Olympus" })),
        ("nothing", "time.get_current_time", json!({ "zone": "UTC" })),
    ];
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let everything = tools.mcp_everything().expect("Node is needed");
    let web = ThirdPartyServer::mcp_everything(everything).await.unwrap();
    let servers = json!([
        { "name": "time", "command": tools.mcp_time().unwrap() },
        { "name": "all", "command": everything },
        { "name": "web", "url": web.url("/mcp") },
    ]);
    let world = Wanted::new(&scenario(&calls))
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__MCP", servers.to_string())
        .start()
        .await;
    world.define("default").await;
    let replies = replies(&world, &calls).await;
    let [time, echo, sum, mars, nothing] = &replies[..] else { panic!("five replies") };
    assert!(time.1.contains("Asia/Tokyo") && time.1.contains("+09:00"), "{}", time.1);
    assert_eq!(echo.1, "\"Echo: from npm\"");
    assert!(sum.1.contains("42"), "{}", sum.1);
    assert_eq!(result(&world, &mars.0).await.payload["error"], "failed");
    assert!(mars.1.contains("Mars/Olympus"), "{}", mars.1);
    assert_eq!(result(&world, &nothing.0).await.payload["error"], "invalid_arguments");

    // What agents are offered is in the log.
    let events = world.log.now(&world.bus).await;
    let catalogue = events.iter().rfind(|event| event.type_name == v1::ToolCatalogue::TYPE).unwrap();
    for tool in ["time.convert_time", "all.echo", "web.echo", "tools.now", "process.run"] {
        assert!(catalogue.text().split(' ').any(|name| name == tool), "{tool} is not in {}", catalogue.text());
    }
    world.end().await;
}

#[tokio::test]
async fn built_in_tools_answer_and_refuse_what_they_should() {
    let web = web().await;
    let calls = [
        ("fetch", "http.get", json!({ "url": format!("http://{web}/page") })),
        ("elsewhere", "http.get", json!({ "url": "http://127.0.0.1:1/" })),
        ("date", "tools.date_calc", json!({ "from": "2026-03-01", "add": "3 days" })),
        ("schema", "tools.now", json!({ "time_zone": 7 })),
        ("stranger", "process.run", json!({ "program": "rm", "args": ["-rf", "."] })),
        ("shell", "process.run", json!({ "program": "echo", "args": ["$HOME", ";", "id"] })),
        ("code", "process.run", json!({ "program": "sh", "args": ["-c", "echo no >&2; exit 3"] })),
    ];
    let world = Wanted::new(&scenario(&calls))
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__HTTP__ALLOW_HOSTS", web.to_string())
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__HTTP__ALLOW_PRIVATE", "127.0.0.1")
        .start()
        .await;
    world.define("default").await;
    let replies = replies(&world, &calls).await;
    let mut results = Vec::new();
    for (sent, _) in &replies {
        results.push(result(&world, sent).await.payload);
    }
    let [fetch, elsewhere, date, schema, stranger, shell, code] = &results[..] else { panic!("seven results") };
    assert_eq!((&fetch["result"]["status"], &fetch["result"]["body"]), (&json!(200), &json!("words of a web")));
    assert_eq!(elsewhere["ok"], false);
    assert!(elsewhere["message"].as_str().unwrap().contains("127.0.0.1"), "{elsewhere}");
    assert_eq!(date["result"]["date"], "2026-03-04");
    assert_eq!(schema["error"], "invalid_arguments");
    assert!(schema["message"].as_str().unwrap().contains("time_zone"), "{schema}");
    assert_eq!(stranger["error"], "invalid_arguments");
    assert!(stranger["message"].as_str().unwrap().contains("rm"), "{stranger}");
    assert_eq!(shell["result"]["stdout"], "$HOME ; id\n");
    assert_eq!((&code["result"]["code"], &code["result"]["stderr"]), (&json!(3), &json!("no\n")));

    // The model is told what was wrong with its call.
    let requests = world.model_requests().await;
    let told = requests.iter().map(|request| &request["body"]["messages"]).find(|messages| {
        let messages = messages.as_array().unwrap();
        messages.last().unwrap()["role"] == "tool" && messages.iter().any(|message| message["content"] == "<schema>")
    });
    let told: Value =
        serde_json::from_str(told.unwrap().as_array().unwrap().last().unwrap()["content"].as_str().unwrap()).unwrap();
    assert_eq!(told["error"], "invalid_arguments");
    assert_eq!(told["message"], schema["message"]);
    world.end().await;
}
