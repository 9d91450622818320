//! Submodules in a profile, and the submodules that an agent has.

use std::collections::BTreeMap;

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::{
    v1::{AgentProfile, ListSubmodulesResponse, Submodule, SubmoduleRow},
    words::{HeardKind, ModelTier},
};
use kairo_read_model::SubmoduleChange;
use serde_json::Value;

use crate::{
    auth::Caller,
    fields::{RequestFields, bounded_text, json_bool, json_count, json_text, one_of},
    http::{
        Gateway, query,
        read_consistency::{PositionedResponse, ReadRequest},
        sorted_json::SortedJson,
    },
    problem::Problem,
};

/// Submodules an agent has at most, and where its profile does not say.
const MAX_SUBMODULES: u32 = 32;
const DEFAULT_SUBMODULES: u32 = 8;
/// Longest name and prompt of one, in bytes.
const MAX_NAME: usize = 32;
const MAX_PROMPT: usize = 8_000;
/// Bounds of a deadline, and what it is where nothing is said, in milliseconds.
const DEADLINES: std::ops::RangeInclusive<u32> = 100..=120_000;
const DEFAULT_DEADLINE: u32 = 10_000;
/// Bounds of what is shown of a thread.
const MAX_CUTOFF: u32 = 10_000;
const MAX_WINDOW: u32 = 31_622_400;

/// The fields `submodules`, `max_submodules`, `history_cutoff` and `history_window`.
pub struct SubmoduleSettings {
    submodules: Vec<Submodule>,
    most: u32,
    cutoff: u32,
    window: u32,
}

impl SubmoduleSettings {
    pub fn from_fields(fields: &mut RequestFields<Value>) -> Self {
        let most = format!("0 to {MAX_SUBMODULES} (0: the default, {DEFAULT_SUBMODULES})");
        let submodules = parse_submodules(fields);
        let most = fields.optional("max_submodules", most, json_count(0..=MAX_SUBMODULES)).unwrap_or_default();
        let cutoff = format!("0 to {MAX_CUTOFF} entries (0: all that are kept)");
        let cutoff = fields.optional("history_cutoff", cutoff, json_count(0..=MAX_CUTOFF)).unwrap_or_default();
        let window = format!("0 to {MAX_WINDOW} seconds (0: any age)");
        let window = fields.optional("history_window", window, json_count(0..=MAX_WINDOW)).unwrap_or_default();
        let bound = if most == 0 { DEFAULT_SUBMODULES } else { most };
        if submodules.len() > bound as usize {
            fields.reject("submodules", format!("at most {bound} submodules, as max_submodules says"));
        }
        Self { submodules, most, cutoff, window }
    }

    /// The profile with what they say.
    pub fn apply_to(self, profile: AgentProfile) -> AgentProfile {
        let Self { submodules, most: max_submodules, cutoff: history_cutoff, window: history_window } = self;
        AgentProfile { submodules, max_submodules, history_cutoff, history_window, ..profile }
    }
}

/// The field `submodules`: what is wrong with one is told with its place.
fn parse_submodules(fields: &mut RequestFields<Value>) -> Vec<Submodule> {
    let expected = format!("a list of at most {MAX_SUBMODULES} submodules, each with a name of its own");
    let listed = |value: &Value| {
        let listed = value.as_array().filter(|listed| listed.len() <= MAX_SUBMODULES as usize)?;
        let name = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
        let names: Vec<_> = listed.iter().filter_map(name).collect();
        let is_first = |(at, name): (usize, &String)| names.iter().position(|other| other == name) == Some(at);
        names.iter().enumerate().all(is_first).then(|| listed.clone())
    };
    let listed = fields.optional("submodules", expected, listed).unwrap_or_default();
    let mut read = Vec::with_capacity(listed.len());
    for (at, value) in listed.iter().enumerate() {
        match RequestFields::from_nested(value).and_then(|fields| parse_submodule(fields, true)) {
            Ok(submodule) => read.push(submodule),
            Err(problem) => fields.add_nested_errors(&format!("submodules[{at}]"), problem),
        }
    }
    read
}

/// One of them; `is_whole`: it is one to have, not merely one to name.
pub fn parse_submodule(mut fields: RequestFields<Value>, is_whole: bool) -> Result<Submodule, Problem> {
    let named = format!("1 to {MAX_NAME} of a-z, 0-9, _ and -");
    let name = fields.required("name", named, json_text(parse_module_name));
    let prompts = format!("text of 1 to {MAX_PROMPT} bytes");
    let prompt = match is_whole {
        true => fields.required("prompt", prompts, json_text(bounded_text(MAX_PROMPT))),
        false => Some(String::new()),
    };
    if !is_whole {
        return fields.complete(|| Some(Submodule { name: name?, ..Submodule::default() }));
    }
    let tier = fields.optional("tier", ModelTier::WORDS.join(" or "), json_text(one_of(ModelTier::WORDS)));
    let heard = format!("a list of some of {}", HeardKind::WORDS.join(", "));
    let hears = fields.optional("hears", heard, parse_heard_kinds).unwrap_or_default();
    let (least, most) = DEADLINES.into_inner();
    let within = format!("{least} to {most} milliseconds, or 0 for {DEFAULT_DEADLINE}");
    let deadline = |value: &Value| json_count(0..=most)(value).filter(|given| *given == 0 || *given >= least);
    let deadline_ms = fields.optional("deadline_ms", within, deadline).unwrap_or_default();
    let wants_decisions = fields.optional("wants_decisions", "true or false", json_bool).unwrap_or(true);
    fields.complete(|| {
        let tier = tier.unwrap_or_default().to_owned();
        Some(Submodule { name: name?, prompt: prompt?, tier, hears, deadline_ms, wants_decisions })
    })
}

fn parse_module_name(name: &str) -> Option<String> {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    (!name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_part)).then(|| name.to_owned())
}

fn parse_heard_kinds(value: &Value) -> Option<Vec<String>> {
    let listed = value.as_array().filter(|listed| listed.len() <= HeardKind::WORDS.len())?;
    listed.iter().map(|kind| kind.as_str().filter(|it| HeardKind::known(it).is_some()).map(str::to_owned)).collect()
}

/// `GET /v1/agents/{agent}/submodules`: which an agent has.
pub async fn list_submodules(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListSubmodulesResponse>>, Problem> {
    let name = query::path_agent(path)?;
    asked.reject_other_fields()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let known =
        async { Ok((snapshot.find_agent(name.as_str()).await?, snapshot.submodule_changes(name.as_str()).await?)) };
    let (agent, changes) = query::await_answer(&gateway, known).await?;
    let unknown = || {
        let detail = format!("no agent {name} is known; GET /v1/agents lists those there are");
        Problem::not_found(detail).with_position(snapshot.position())
    };
    let agent = agent.ok_or_else(unknown)?;
    let profile = agent.profile.unwrap_or_default();
    let (most, mut submodules) = current_submodules(&profile, agent.sequence, changes);
    if caller.user().is_some() {
        submodules.iter_mut().for_each(|submodule| submodule.prompt = None);
    }
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(ListSubmodulesResponse { submodules, most, ..Default::default() }),
    ))
}

/// Returns the most submodules that an agent may have, and those that it has, as the mind applies the changes.
fn current_submodules(profile: &AgentProfile, defined: u64, changes: Vec<SubmoduleChange>) -> (u32, Vec<SubmoduleRow>) {
    let mut added: BTreeMap<String, Submodule> = BTreeMap::new();
    let mut removed = Vec::new();
    for SubmoduleChange { sequence, change } in changes {
        match change.submodule {
            Some(submodule) => _ = added.insert(change.name, submodule),
            None => {
                added.remove(&change.name);
                // A definition anew names those of the profile again.
                if sequence > defined {
                    removed.push(change.name);
                }
            }
        }
    }
    let most = if profile.max_submodules == 0 { DEFAULT_SUBMODULES } else { profile.max_submodules };
    let of_profile =
        profile.submodules.iter().filter(|own| !removed.contains(&own.name) && !added.contains_key(&own.name));
    let of_profile = of_profile.map(|own| submodule_row(own, false));
    let all = of_profile.chain(added.values().map(|own| submodule_row(own, true))).take(most as usize).collect();
    (most, all)
}

fn submodule_row(submodule: &Submodule, added: bool) -> SubmoduleRow {
    let Submodule { name, prompt, tier, hears, deadline_ms, wants_decisions } = submodule.clone();
    let tier = if tier.is_empty() { ModelTier::Fast.text() } else { tier };
    let deadline_ms = if deadline_ms == 0 { DEFAULT_DEADLINE } else { deadline_ms };
    SubmoduleRow { name, prompt: Some(prompt), tier, hears, deadline_ms, wants_decisions, added }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::SubmoduleChanged;
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<AgentProfile, Vec<String>> {
        let mut fields = RequestFields::from_nested(&value).unwrap();
        let voices = SubmoduleSettings::from_fields(&mut fields);
        fields
            .complete(|| Some(voices.apply_to(AgentProfile::default())))
            .map_err(|problem| problem.errors.into_iter().map(|error| error.field).collect())
    }

    #[test]
    fn everything_wrong_with_submodules_is_named_with_its_place() {
        let wrong = read(json!({ "submodules": [{ "name": "A", "prompt": "", "tier": "huge", "hears": ["all"],
            "deadline_ms": 99, "wants_decisions": 1, "mood": 2 }, { "prompt": "x" }],
            "max_submodules": 33, "history_cutoff": -1, "history_window": "x" }));
        let of_first = ["name", "prompt", "tier", "hears", "deadline_ms", "wants_decisions", "mood"];
        let mut expected: Vec<String> = of_first.map(|field| format!("submodules[0].{field}")).into();
        expected.push("submodules[1].name".into());
        expected.extend(["max_submodules", "history_cutoff", "history_window"].map(str::to_owned));
        assert_eq!(read_sorted(wrong), {
            expected.sort();
            expected
        });
        assert_eq!(
            read(json!({ "submodules": [{ "name": "a", "prompt": "x" }, { "name": "a", "prompt": "y" }] }))
                .unwrap_err(),
            ["submodules"]
        );
        let many: Vec<Value> = (0..9).map(|at| json!({ "name": format!("m{at}"), "prompt": "x" })).collect();
        assert_eq!(read(json!({ "submodules": many })).unwrap_err(), ["submodules"]);
        assert_eq!(read(json!({ "submodules": many, "max_submodules": 9 })).unwrap().submodules.len(), 9);
    }

    fn read_sorted(wrong: Result<AgentProfile, Vec<String>>) -> Vec<String> {
        let mut fields = wrong.unwrap_err();
        fields.sort();
        fields
    }

    #[test]
    fn an_agent_has_those_of_its_profile_and_those_that_were_added() {
        let module = |name: &str| Submodule { name: name.into(), prompt: "x".into(), ..Default::default() };
        let profile = AgentProfile { submodules: vec![module("one"), module("two")], ..Default::default() };
        let change = |sequence, name: &str, submodule| SubmoduleChange {
            sequence,
            change: SubmoduleChanged { name: name.into(), submodule },
        };
        let changes = vec![change(3, "one", None), change(4, "three", Some(module("three"))), change(9, "two", None)];
        let (most, rows) = current_submodules(&profile, 5, changes);
        let names: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.added)).collect();
        assert_eq!((most, names), (8, vec![("one", false), ("three", true)]));
        assert_eq!((rows[0].tier.as_str(), rows[0].deadline_ms), ("fast", 10_000));
    }
}
