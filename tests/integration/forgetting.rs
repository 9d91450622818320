//! Users who are forgotten: nobody can read what they said, wherever it was, whatever is killed meanwhile; and nobody else
//! notices.

use base64::{Engine, engine::general_purpose::STANDARD};
use kairo_core::{
    ids::Name,
    media,
    subjects::{DATA_KEYS_BUCKET, USER_FORGET},
};
use kairo_local::Service;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tokio::time::timeout;

use crate::world::{DEADLINE, Wanted, World, signatures};

pub const AGENT: &str = "keeper";
/// Stands in whatever ann says, is told or has done, and in nothing else.
pub const MARK: &str = "zanzibar";
pub const OTHER: &str = "marmalade";
/// The SQLSTATE for a table that does not exist.
const UNDEFINED_TABLE: &str = "42P01";

const SCENARIO: &str = r#"
rules:
  - name: see
    when: { user_contains: look, has_image: true }
    reply: "That is {{ parts[0].size }} bytes."
  - name: run
    when: { user_matches: 'run (?<word>\w+)' }
    turn:
      - tool_calls: [{ tool: process.run, arguments: { program: echo, args: ["{{ captures.word }}"] } }]
      - text: "It says {{ last_result.stdout }}"
  - name: remember
    when: { user_matches: 'remember (?<word>\w+)' }
    turn:
      - tool_calls:
          - { tool: memory.append, arguments: { content: "I like {{ captures.word }}.", keywords: ["{{ captures.word }}"] } }
          - tool: task.schedule
            arguments: { type: delay, delay: 1 hour, title: "{{ captures.word }}", action: [{ event: user.notify, params: { message: "{{ captures.word }}" } }] }
      - tool_calls: [{ tool: state.write, arguments: { key: "{{ captures.word }}", content: "{{ captures.word }}" } }]
      - text: "I know about {{ captures.word }}."
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;

pub fn wanted() -> Wanted {
    wanted_with(SCENARIO)
}

/// One in which users can be forgotten, soon.
pub fn wanted_with(scenario: &str) -> Wanted {
    Wanted::new(scenario)
        .env_of_all("KAIRO_PRIVACY__MASTER_KEY", "07".repeat(32))
        .env_of_all("KAIRO_PRIVACY__KEY_AGE_MS", "300")
        // As long as a gateway that was killed is waited for, four times over.
        .env_of_all("KAIRO_BUS__MEMBER_EXPIRY_MS", "1000")
}

/// Every row of every generation, as text.
async fn tables(world: &World) -> String {
    let mut database = PgConnection::connect(&world.database.url).await.unwrap();
    loop {
        if let Some(all) = tables_now(&mut database).await {
            return all;
        }
    }
}

/// None if a generation was dropped meanwhile, as there may be another by then.
async fn tables_now(database: &mut PgConnection) -> Option<String> {
    let tables =
        "SELECT table_schema || '.' || table_name FROM information_schema.tables WHERE table_schema LIKE 'kairo\\_%'";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut *database).await.unwrap();
    let mut all = String::new();
    for table in tables {
        // The bodies of the log are bytes.
        let row = if table.ends_with(".log") { "encode(payload, 'escape')" } else { "row::text" };
        let rows = format!("SELECT {row} FROM {table} AS row");
        let rows: Result<Vec<String>, _> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(rows)).fetch_all(&mut *database).await;
        match rows {
            Ok(rows) => all.extend(rows),
            Err(error) => {
                let code = error.as_database_error().and_then(|error| error.code());
                assert_eq!(code.as_deref(), Some(UNDEFINED_TABLE), "{error}");
                return None;
            }
        }
    }
    Some(all)
}

impl World {
    /// Returns the agent's latest events as the gateway shows them.
    pub async fn shown(&self) -> String {
        self.projected().await;
        let (status, answer) = self.get("/v1/events?agent=keeper&latest=200").await;
        assert_eq!(status, 200, "{answer}");
        answer.to_string()
    }

    /// Waits until forgetting a user has come to another step than these; which.
    async fn step_behind(&self, user: &str, passed: &[String]) -> String {
        let mut step = String::new();
        let looking = async {
            loop {
                // The gateway may just be starting.
                if let Ok(answer) = self.http.get(self.url(&format!("/v1/users/{user}/forget"))).send().await
                    && let Ok(answer) = answer.json::<Value>().await
                    && let Some(now) = answer["step"].as_str()
                {
                    now.clone_into(&mut step);
                    if !passed.iter().any(|passed| passed == now) {
                        return;
                    }
                }
            }
        };
        // Nobody tells: asking is all there is.
        let looked = timeout(DEADLINE, looking).await;
        assert!(looked.is_ok(), "never got any further than {step}");
        step
    }

    pub async fn forgotten(&self, user: &str) {
        let mut passed = Vec::new();
        loop {
            match self.step_behind(user, &passed).await {
                done if done == "done" => return,
                step => passed.push(step),
            }
        }
    }
}

#[tokio::test]
async fn whoever_is_forgotten_is_nowhere_whatever_is_killed_and_nobody_else_notices() {
    let mut world = wanted().replicas(Service::AgentRuntime, 2).start().await;
    let keeper = json!({ "agent": "keeper", "prompt": "Be brief.", "inner_state": true });
    assert_eq!(world.post("/v1/agents", &keeper).await.0, 201);
    for (user, word) in [("ann", MARK), ("bob", OTHER)] {
        for what in ["run", "remember", "hello"] {
            world.ask_as(user, AGENT, &format!("{what} {word}")).await;
        }
    }
    let picture = [b"\x89PNG\r\n\x1a\n", MARK.as_bytes()].concat();
    let shown = json!([{ "media_type": "image/png", "data": STANDARD.encode(&picture) }]);
    let sent = world.send_as(&json!({ "user": "ann", "agent": AGENT, "text": "look", "parts": shown })).await;
    world.reply(&sent).await;
    let seen = format!("That is {} bytes.", picture.len());
    assert!(world.shown().await.contains(&seen), "the model was shown it");
    let picture = format!("/v1/objects/{}", media::digest(&picture));
    assert_eq!(world.http.get(world.url(&picture)).send().await.unwrap().status(), 200);
    world.settled().await;
    world.projected().await;
    assert!(world.shown().await.contains(MARK), "as long as they are not forgotten it is shown");
    assert!(tables(&world).await.contains(MARK));
    assert!(world.is_in_nats_files("kairo.user.ann.message"), "the log is there");
    for word in [MARK, OTHER] {
        assert!(!world.is_in_nats_files(word), "{word} can be read in the files of nats-server");
    }
    let (status, held) = world.post("/v1/users/ann/forget", &json!({ "dry_run": true })).await;
    assert_eq!((status, &held["order_id"], &held["sealed"]), (202, &json!(""), &json!(true)), "{held}");
    let of_keeper = &held["held"][0];
    let counts = ["threads", "messages", "actions", "tasks", "memories", "inner_state"].map(|it| &of_keeper[it]);
    assert!(of_keeper["agent"] == "keeper" && counts.iter().all(|count| count.as_u64() > Some(0)), "{held}");
    assert_eq!(world.get("/v1/users/ann/forget").await.0, 404, "a dry run is no order");

    let (status, given) = world.post("/v1/users/ann/forget", &json!({})).await;
    assert_eq!(status, 202, "{given}");
    let (_, again) = world.post("/v1/users/ann/forget", &json!({})).await;
    assert_eq!(again["order_id"], given["order_id"], "one order at a time");
    // The gateway that is at it is killed at every step, and agent-runtime while agents forget.
    let mut passed = vec!["asked".to_owned()];
    loop {
        let step = world.step_behind("ann", &passed).await;
        if step == "done" {
            break;
        }
        world.stack.kill9(Service::Gateway, 0).await.unwrap();
        if step == "told" {
            world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
            world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
        }
        world.stack.restart(Service::Gateway, 0).await.unwrap();
        passed.push(step);
    }
    assert!(passed.len() > 3, "{passed:?}");
    world.settled().await;
    world.projected().await;

    let shown = world.shown().await;
    assert!(!shown.contains(MARK) && shown.contains("(forgotten)"), "{shown}");
    let rows = tables(&world).await;
    assert!(!rows.contains(MARK) && rows.contains(OTHER));
    for path in ["/v1/memories?user=ann", "/v1/tasks?user=ann", "/v1/search?q=zanzibar", "/v1/threads?user=ann"] {
        let (status, answer) = world.get(path).await;
        assert!(status == 200 && !answer["memories"].to_string().contains(MARK), "{path}: {answer}");
        assert!(!answer.to_string().replace("\"q\":\"zanzibar\"", "").contains(MARK), "{path}: {answer}");
    }
    let end = world.end_of_log().await;
    let (_, state) = world.get(&format!("/v1/agents/keeper/state?at={end}")).await;
    let state = state.to_string();
    assert!(!state.contains(MARK) && !state.contains("\"ann\"") && state.contains(OTHER), "{state}");
    assert_eq!(world.http.get(world.url(&picture)).send().await.unwrap().status(), 404, "nobody else has sent it");
    let keys = world.bus.read_values(DATA_KEYS_BUCKET, "object.>").await.unwrap();
    assert!(keys.len() == 1 && keys.iter().all(|key| key.value == "\"destroyed\""), "{keys:?}");
    // Whoever builds it anew gets the same.
    world.verified().await;

    // bob goes on where he was, with an agent that is folded from the log, and ann begins anew.
    for replica in 0..2 {
        world.stack.kill9(Service::AgentRuntime, replica).await.unwrap();
        world.stack.restart(Service::AgentRuntime, replica).await.unwrap();
    }
    world.ask_as("bob", AGENT, "what do you know?").await;
    let requests = world.model_requests().await;
    let last = requests.iter().map(Value::to_string).find(|it| it.contains("what do you know?")).unwrap();
    assert!(last.contains(OTHER) && !last.contains(MARK), "{last}");
    world.ask_as("ann", AGENT, "hello again").await;
    assert!(world.shown().await.contains("You said: hello again"));
    assert!(!world.is_in_nats_files("hello again"), "what is new is sealed with a key of its own");
    world.end().await;
}

#[tokio::test]
async fn where_nothing_is_sealed_nobody_is_forgotten_and_it_is_said_why() {
    let world = Wanted::new(SCENARIO).start().await;
    world.define("keeper").await;
    world.ask_as("ann", AGENT, "hello").await;
    world.projected().await;
    let (status, problem) = world.post("/v1/users/ann/forget", &json!({})).await;
    assert_eq!(status, 409, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("privacy.master_key"), "{problem}");
    let (status, held) = world.post("/v1/users/ann/forget", &json!({ "dry_run": true })).await;
    assert_eq!((status, &held["sealed"], &held["held"][0]["messages"]), (202, &json!(false), &json!(2)), "{held}");
    assert_eq!(world.post("/v1/users/Ann!/forget", &json!({})).await.0, 400);
    world.end().await;
}

#[tokio::test]
async fn users_are_forgotten_one_after_the_other_and_together_whichever_server_dies() {
    let mut world = wanted().replicas(Service::Gateway, 2).start().await;
    world.define("keeper").await;
    for user in ["ann", "bob", "eve"] {
        world.ask_as(user, AGENT, &format!("run {user}word")).await;
    }
    world.projected().await;
    for user in ["ann", "bob"] {
        assert_eq!(world.post(&format!("/v1/users/{user}/forget"), &json!({})).await.0, 202);
    }
    // The servers at a step each, and one of the gateways for good, which may be the one that is at it.
    let mut passed = vec!["asked".to_owned()];
    passed.push(world.step_behind("ann", &passed).await);
    world.nats.kill9().await.unwrap();
    world.nats.restart().await.unwrap();
    passed.push(world.step_behind("ann", &passed).await);
    world.stack.kill9(Service::Gateway, 1).await.unwrap();
    world.postgres.kill9().await.unwrap();
    world.postgres.restart().await.unwrap();
    for user in ["ann", "bob"] {
        world.forgotten(user).await;
    }
    world.settled().await;
    world.projected().await;
    let rows = tables(&world).await;
    assert!(!rows.contains("annword") && !rows.contains("bobword") && rows.contains("eveword"));
    world.ask_as("ann", AGENT, "run anew").await;
    assert_eq!(world.post("/v1/users/ann/forget", &json!({})).await.0, 202, "once more");
    world.forgotten("ann").await;
    assert!(!tables(&world).await.contains("anew"));

    // As a gateway leaves it behind that dies before the order stands in the log.
    let order_id = world.bus.new_id();
    let order = json!({
        "order_id": order_id, "user": "eve", "step": "asked", "by_whom": { "kind": "api_key", "id": "k1" }, "generation": 0,
        "through": 0, "agents": [], "read_model": 0, "search": 0, "reason": "", "by": "gateway-that-died",
        "until": "2026-01-01T00:00:00Z",
    });
    let signed = signatures().encode_entry(DATA_KEYS_BUCKET, "order.eve", &order).unwrap();
    world.bus.update_value(DATA_KEYS_BUCKET, "order.eve", signed.into(), 0).await.unwrap();
    world.forgotten("eve").await;
    assert!(!tables(&world).await.contains("eveword"));
    let asked = world.bus.last_message(&USER_FORGET.of_owner(&Name::parse("eve").unwrap())).await.unwrap().unwrap();
    assert_eq!((asked.ids().unwrap().0, asked.header("ce-authid")), (order_id, Some("k1")));
    world.verified().await;

    // What is damaged is passed over, and not taken for the order.
    let key = "order.bob";
    let revision = world.bus.read_value(DATA_KEYS_BUCKET, key).await.unwrap().unwrap().revision;
    world.bus.update_value(DATA_KEYS_BUCKET, key, "{}".into(), revision).await.unwrap();
    let (status, told) = world.get("/v1/users/bob/forget").await;
    assert_eq!((status, told["step"].as_str()), (200, Some("done")), "{told}");
    let left = world.bus.read_revisions(DATA_KEYS_BUCKET, key).await.unwrap();
    assert!(!left.iter().any(|raw| &raw.payload[..] == b"{}"), "it is removed");
    world.end().await;
}
