//! Answers that come too late: what they were asked for is over.

use kairo_proto::v1::AgentProfile;
use serde_json::json;

use super::{chains::kinds, *};

#[test]
fn an_answer_for_a_step_of_a_chain_that_was_replaced_is_passed_over() {
    let mut agent = Agent::with(AgentProfile { planning: "chain".into(), ..Default::default() });
    agent.hears("m1", "go");
    let plan = || says(&json!({ "event": "agent.chain", "params": { "plan": "1. go" } }).to_string());
    let group = json!([[
        { "event": "agent.think", "params": { "prompt": "look" } },
        { "event": "http.get", "params": { "decide": "if so" } },
    ]]);
    let instead = json!(["tools.now", "http.get"]);
    let answers = [plan(), says(&group.to_string()), plan(), says("nonsense"), says(&instead.to_string())];
    let decided = kinds(&agent.decides(&answers).unwrap());
    let expected = ["chain started", "step 0 done", "chain replaced", "chain started", "call tools.now"];
    assert_eq!(decided.get(1..), Some(&expected.map(String::from)[..]), "{decided:?}");
    assert_eq!(agent.asked.len(), answers.len(), "nobody is asked again");
}

#[test]
fn an_answer_that_was_asked_for_again_for_a_chain_that_ended_meanwhile_is_passed_over() {
    let mut agent = Agent::with(AgentProfile { planning: "chain".into(), ..Default::default() });
    agent.hears("m1", "go");
    let plan = says(&json!({ "event": "agent.chain", "params": { "plan": "1. go" } }).to_string());
    let group = json!([[{ "event": "http.get", "decide": "if so" }, { "event": "http.get", "decide": "if so" }]]);
    let stop = says(&json!({ "action": "break" }).to_string());
    let answers = [plan, says(&group.to_string()), says("nonsense"), stop, says("nonsense"), says("done")];
    let decided = kinds(&agent.decides(&answers).unwrap());
    let expected = ["chain started", "failed malformed_answer", "step 1 skipped", "chain broken", "say done"];
    assert_eq!(decided.get(1..), Some(&expected.map(String::from)[..]), "{decided:?}");
    assert_eq!(agent.asked.len(), answers.len(), "nobody is asked again");
}
