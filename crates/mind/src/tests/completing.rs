//! Steps of chains whose parameters are not what their tool takes.

use serde_json::json;

use super::{
    chains::{called, chain, plan, planner},
    *,
};

const SCHEMA: &str = r#"{"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}}"#;

/// An agent that plans, and whose `http.get` takes a URL.
fn strict() -> Agent {
    let mut agent = planner();
    let strict = |tool: &Tool| match &*tool.name {
        "http.get" => Tool { schema: SCHEMA.into(), ..tool.clone() },
        _ => tool.clone(),
    };
    let tools: Vec<Tool> = agent.catalogue.tools.iter().map(strict).collect();
    agent.catalogue = Catalogue { version: "c2".into(), tools };
    agent
}

#[test]
fn parameters_that_are_missing_or_do_not_fit_are_completed_by_the_light_model() {
    for (given, mistake) in [(json!({}), "url"), (json!({ "url": 7 }), "string")] {
        let mut agent = strict();
        agent.hears("m1", "get it");
        let steps = json!([{ "event": "http.get", "params": given }]);
        let completed = says(r#"{"action": "continue", "params": {"url": "http://c"}}"#);
        let decided = agent.decides(&[plan("1. get"), chain(steps), completed]).unwrap();
        assert_eq!(called(&decided)[0].1, json!({ "url": "http://c" }));
        let asked = agent.asked.last().unwrap();
        assert_eq!(asked.tier, "light");
        assert!(format!("{:?}", asked.messages).contains(mistake), "{:?}", asked.messages);
    }
}

#[test]
fn parameters_that_fit_are_used_as_they_are_and_no_light_model_is_asked() {
    let mut agent = strict();
    agent.hears("m1", "get it");
    let steps = json!([{ "event": "http.get", "params": { "url": "http://a" } }]);
    let decided = agent.decides(&[plan("1. get"), chain(steps)]).unwrap();
    assert_eq!(called(&decided)[0].1, json!({ "url": "http://a" }));
    assert!(agent.asked.iter().all(|request| request.tier != "light"));
}
