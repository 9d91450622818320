//! Agents as resources: single fields change, versions are listed and returned to, and a file of agents is applied.

use std::{collections::BTreeSet, fs};

use futures::future::join_all;
use kairo_proto::v1;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    command_line::{kairo, lines},
    grpc::python_client,
    world::{Wanted, World, scenario::USUAL},
};

async fn request(world: &World, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let sent = reqwest::Client::new().request(method, world.url(path)).json(body).send().await.unwrap();
    let status = sent.status().as_u16();
    (status, sent.json().await.unwrap())
}

async fn patch(world: &World, path: &str, body: Value) -> (u16, Value) {
    request(world, Method::PATCH, path, &body).await
}

async fn profile(world: &World, agent: &str) -> Value {
    let (status, answer) = world.get(&format!("/v1/agents/{agent}/versions?limit=1")).await;
    assert_eq!(status, 200, "{answer}");
    answer["versions"][0]["profile"].clone()
}

/// The number of definitions in the log.
async fn definitions(world: &World) -> usize {
    world.log.now(&world.bus).await.iter().filter(|event| event.type_name == v1::AgentDefined::TYPE).count()
}

fn changed_fields(answer: &Value) -> BTreeSet<&str> {
    answer["changes"].as_array().unwrap().iter().filter_map(|change| change["field"].as_str()).collect()
}

#[tokio::test]
async fn single_fields_change_and_nothing_else_does() {
    let world = Wanted::new(USUAL).start().await;
    let whole = json!({
        "agent": "cook", "prompt": "You cook.", "description": "cooks", "tools": ["tools.*", "emial.send"],
        "max_steps": 5, "caps": { "tokens_per_day": 100_000, "tokens_in_total": 1_000_000 },
    });
    let (status, defined) = world.post("/v1/agents", &whole).await;
    assert_eq!(status, 201, "{defined}");
    let warnings = defined["warnings"].as_array().unwrap();
    assert!(warnings.len() == 1 && warnings[0].as_str().unwrap().contains("tools[1]: emial.send"), "{defined}");
    let since = profile(&world, "cook").await["caps"]["since"].clone();

    let (status, changed) =
        patch(&world, "/v1/agents/cook", json!({ "description": null, "caps": { "tokens_per_day": 5 } })).await;
    assert_eq!(status, 200, "{changed}");
    assert_eq!(changed_fields(&changed), BTreeSet::from(["caps", "description"]));
    let now = profile(&world, "cook").await;
    assert_eq!((&now["prompt"], &now["max_steps"]), (&json!("You cook."), &json!(5)));
    let caps = json!({ "tokens_per_day": "5", "tokens_in_total": "1000000", "since": since });
    assert_eq!(now["caps"], caps, "they are counted from when they were first set");

    // A dry run writes nothing, and a change that changes nothing is no version.
    let (_, dry) = patch(&world, "/v1/agents/cook?dry_run=true", json!({ "max_steps": 9 })).await;
    assert_eq!((changed_fields(&dry), &dry["sequence"]), (BTreeSet::from(["max_steps"]), &changed["sequence"]));
    let (_, same) = patch(&world, "/v1/agents/cook", json!({ "max_steps": 5 })).await;
    assert_eq!((changed_fields(&same), &same["sequence"]), (BTreeSet::new(), &changed["sequence"]));

    // Two clients that change different fields at the same moment both have their way.
    let fields = ["max_steps", "history_limit", "max_reflections", "summary_after", "history_cutoff"];
    let changes = fields.map(|field| patch(&world, "/v1/agents/cook", json!({ field: 3 })));
    for (status, answer) in join_all(changes).await {
        assert_eq!(status, 200, "{answer}");
    }
    let now = profile(&world, "cook").await;
    assert!(fields.iter().all(|field| now[field] == 3), "{now}");

    for (wrong, expected) in [
        (json!({ "mission": "Know." }), BTreeSet::from(["conduct", "owner"])),
        (json!({ "mood": null, "colour": "red" }), BTreeSet::from(["colour", "mood"])),
    ] {
        let (status, refused) = patch(&world, "/v1/agents/cook", wrong).await;
        let fields = refused["errors"].as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap());
        assert_eq!((status, fields.collect()), (400, expected));
    }
    let (status, unknown) = patch(&world, "/v1/agents/nobody", json!({ "prompt": "x" })).await;
    assert_eq!(status, 404, "{unknown}");
    let team = json!({
        "team": "market", "owner": "ann", "mission": "Know.", "lead": { "prompt": "Lead." },
        "workers": [{ "name": "reader", "prompt": "Read." }],
    });
    world.post("/v1/teams", &team).await;
    for agent in ["market", "market-reader"] {
        let (status, refused) = patch(&world, &format!("/v1/agents/{agent}"), json!({ "prompt": "x" })).await;
        assert_eq!(status, 409, "{refused}");
    }
    world.end().await;
}

#[tokio::test]
async fn an_agent_returns_to_an_earlier_version() {
    let world = Wanted::new(USUAL).start().await;
    let (_, first) = world
        .post("/v1/agents", &json!({ "agent": "cook", "prompt": "One.", "version": "first", "max_steps": 7 }))
        .await;
    patch(&world, "/v1/agents/cook?version=second", json!({ "prompt": "Two." })).await;
    let (_, third) = world.post("/v1/agents", &json!({ "agent": "cook", "prompt": "Three." })).await;
    assert_eq!(changed_fields(&third), BTreeSet::from(["max_steps", "prompt"]), "what was removed is named, too");

    let (_, page) = world.get("/v1/agents/cook/versions?limit=2").await;
    let names: Vec<&Value> = page["versions"].as_array().unwrap().iter().map(|row| &row["version"]).collect();
    assert_eq!((names, &page["is_complete"]), (vec![&Value::Null, &json!("second")], &json!(true)));
    let next = format!("/v1/agents/cook/versions?limit=2&before={}", page["next_before"]);
    let (_, rest) = world.get(&next).await;
    assert_eq!((&rest["versions"][0]["sequence"], &rest["next_before"]), (&first["sequence"], &Value::Null));

    let (status, dry) = world.post("/v1/agents/cook/rollback", &json!({ "version": "first", "dry_run": true })).await;
    assert_eq!((status, &dry["sequence"]), (200, &third["sequence"]));
    let (status, back) = world.post("/v1/agents/cook/rollback", &json!({ "sequence": first["sequence"] })).await;
    assert_eq!((status, changed_fields(&back)), (200, BTreeSet::from(["max_steps", "prompt"])));
    let now = profile(&world, "cook").await;
    assert_eq!((&now["prompt"], &now["max_steps"]), (&json!("One."), &json!(7)));
    world.projected().await;
    assert_eq!(world.get("/v1/agents/cook").await.1["agent"]["profile"], now, "the read model follows");

    for missing in [json!({ "version": "fourth" }), json!({ "sequence": 999_999 })] {
        let (status, answer) = world.post("/v1/agents/cook/rollback", &missing).await;
        assert_eq!(status, 404, "{answer}");
    }
    assert_eq!(world.get("/v1/agents/nobody/versions").await.0, 404);

    if let Some(mut python) = python_client(&world) {
        let changes = json!({ "text": json!({ "prompt": "Four.", "max_steps": null }).to_string() });
        let changed = json!({ "agent": "cook", "changes": changes, "version": "fourth" });
        python.call("Commands/ChangeAgent", changed).await.unwrap();
        python.call("Commands/RollBackAgent", json!({ "agent": "cook", "version": "second" })).await.unwrap();
        let page = python.call("Queries/ListAgentVersions", json!({ "agent": "cook", "limit": 2 })).await.unwrap();
        let prompts: Vec<&Value> =
            page["versions"].as_array().unwrap().iter().map(|row| &row["profile"]["prompt"]).collect();
        assert_eq!(prompts, ["Two.", "Four."]);
    }
    world.end().await;
}

const DOCUMENT: &str = r#"
tools: [tools.now]
agents:
- agent: guide
  prompt: You coordinate.
  members: [{ agent: cook, tools: [tools.now] }]
- agent: cook
  prompt_file: cook.md
  tools: [tools.*]
  submodules: [{ name: critic, prompt: You doubt., wants_decisions: false }]
  caps: { tokens_per_day: 100000 }
teams:
- team: market
  owner: ann
  mission: Know.
  lead: { prompt: Lead. }
  workers: [{ name: reader, prompt: Read., tools: [tools.*] }]
"#;

#[tokio::test]
async fn a_file_of_agents_and_teams_is_applied_once() {
    let world = Wanted::new(USUAL).start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agents.yaml");
    fs::write(&file, DOCUMENT).unwrap();
    fs::write(folder.path().join("cook.md"), "You cook.\nYou say \"when\".\n").unwrap();
    let path = file.to_str().unwrap();
    let apply = |more: &'static [&'static str]| {
        let arguments: Vec<&str> = ["agents", "apply", "-f", path].iter().chain(more).copied().collect();
        let world = &world;
        async move { kairo(world, &arguments).await }
    };

    let dry = apply(&["--dry-run"]).await;
    assert_eq!(dry.status.code(), Some(0), "{dry:?}");
    assert_eq!(lines(&dry).last(), Some(&"3 to create, 0 to change, 0 unchanged (dry run, nothing was written)"));
    assert_eq!(world.get("/v1/agents/cook/versions").await.0, 404);
    let first = apply(&[]).await;
    assert_eq!(lines(&first).last(), Some(&"3 created, 0 changed, 0 unchanged"), "{first:?}");
    let end = definitions(&world).await;
    let again = apply(&[]).await;
    assert_eq!(lines(&again).last(), Some(&"0 created, 0 changed, 3 unchanged"), "{again:?}");
    assert_eq!(profile(&world, "cook").await["prompt"], "You cook.\nYou say \"when\".\n");

    // What is exported is what was applied, so it changes nothing either.
    world.projected().await;
    let exported = kairo(&world, &["agents", "export"]).await;
    assert_eq!(exported.status.code(), Some(0), "{exported:?}");
    let copy = folder.path().join("copy.yaml");
    fs::write(&copy, &exported.stdout).unwrap();
    let unchanged = kairo(&world, &["agents", "apply", "-f", copy.to_str().unwrap()]).await;
    assert_eq!(lines(&unchanged).last(), Some(&"0 created, 0 changed, 3 unchanged"), "{unchanged:?}");
    assert_eq!(definitions(&world).await, end, "nothing was written");

    // A file of which one entry is wrong changes nothing.
    let wrong = DOCUMENT.replace("You coordinate.", "You guide.").replace("mission: Know.", "mision: Know.");
    fs::write(&file, wrong.replace("[tools.now]\nagents", "[tools.now, web.fetch]\nagents")).unwrap();
    let refused = apply(&[]).await;
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(64), "{said}");
    assert!(
        said.contains("there is no tool web.fetch") && said.contains("team market") && said.contains("mision"),
        "{said}"
    );
    assert_eq!(definitions(&world).await, end, "nothing was written");

    fs::write(&file, DOCUMENT.replace("Read.,", "Read well.,")).unwrap();
    let changed = apply(&[]).await;
    assert_eq!(lines(&changed).last(), Some(&"0 created, 1 changed, 2 unchanged"), "{changed:?}");
    assert!(lines(&changed).contains(&"  ~ prompt: Read. → Read well."), "{changed:?}");
    world.end().await;
}

#[tokio::test]
async fn the_command_line_changes_shows_and_returns() {
    let world = Wanted::new(USUAL).start().await;
    let defined =
        kairo(&world, &["agents", "define", "--agent", "cook", "--prompt", "One.", "--description", "cooks"]).await;
    assert!(lines(&defined).contains(&"  + prompt: One."), "{defined:?}");
    let set = ["agents", "set", "cook", "--max-steps", "3", "--reset", "description", "--version-name", "brief"];
    let set = kairo(&world, &set).await;
    assert!(lines(&set).contains(&"  - description: cooks") && lines(&set).contains(&"  + max_steps: 3"), "{set:?}");
    let redefined = kairo(&world, &["agents", "define", "--agent", "cook", "--prompt", "Two."]).await;
    assert!(lines(&redefined).contains(&"  - max_steps: 3"), "{redefined:?}");
    let history = kairo(&world, &["agents", "history", "cook"]).await;
    assert_eq!(lines(&history).len(), 4, "{history:?}");
    let back = kairo(&world, &["agents", "rollback", "cook", "--to", "brief"]).await;
    assert_eq!(lines(&back)[0], "cook is back at version brief; changes:", "{back:?}");
    world.projected().await;
    let shown = kairo(&world, &["agents", "show", "cook"]).await;
    let shown = lines(&shown).join("\n");
    assert!(shown.contains("max_steps  3") && shown.contains("prompt     One."), "{shown}");
    for (wrong, expected) in [
        (vec!["agents", "set", "cook"], "nothing is set"),
        (vec!["agents", "define", "--agent", "cook"], "a new profile needs a prompt"),
        (vec!["agents", "set", "cook", "--max-steps", "1", "--reset", "max_steps"], "both set and reset"),
        (vec!["agents", "set", "cook", "--reset", "mood"], "mood"),
        (vec!["agents", "rollback", "cook", "--to", "never"], "no version named never"),
        (vec!["agents", "export", "nobody"], "no agent or team nobody"),
    ] {
        let refused = kairo(&world, &wrong).await;
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains(expected), "{wrong:?}: {said}");
    }
    world.end().await;
}
