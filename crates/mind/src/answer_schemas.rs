//! The forms of answers that are JSON, as endpoints are told them that take a `response_format`. The prompts say the same in words, for
//! endpoints that take none. Fields that a form requires may be empty: closed objects with all fields required are what the strictest
//! endpoint takes.

use serde_json::{Value, json};

use crate::request::AnswerSchema;

/// Of `thread.match`.
pub fn thread_match() -> AnswerSchema {
    let action = one_of(&["continue", "suggest_switch", "suggest_new", "new"]);
    strict_schema(
        "thread_match",
        closed_object(json!({ "action": action, "thread_id": text_type(), "reason": text_type() })),
    )
}

/// Of `agent.chain`. Endpoints take no list at the top.
pub fn chain() -> AnswerSchema {
    let step = json!({
        "type": "object",
        "properties": { "event": text_type(), "params": { "type": "object", "properties": {} }, "decide": text_type() },
        "required": ["event"],
    });
    let at_once = json!({ "type": "array", "items": step });
    let steps = json!({ "type": "array", "items": { "anyOf": [step, at_once] } });
    open_schema("chain", json!({ "type": "object", "properties": { "chain": steps }, "required": ["chain"] }))
}

/// Of `agent.decide` about a step.
pub fn step_decision() -> AnswerSchema {
    let action = one_of(&["continue", "skip", "break"]);
    let params = json!({ "type": "object", "properties": {} });
    open_schema(
        "decision",
        json!({ "type": "object", "properties": { "action": action, "params": params }, "required": ["action"] }),
    )
}

/// Of `agent.decide` about a hook.
pub fn hook_judgement() -> AnswerSchema {
    strict_schema("judgement", closed_object(json!({ "action": one_of(&["continue", "skip"]) })))
}

/// Of `thread.summarize`.
pub fn summary() -> AnswerSchema {
    strict_schema("summary", closed_object(json!({ "title": text_type(), "summary": text_type() })))
}

/// Of `agent.learn`.
pub fn lessons(memory_rules: u32) -> AnswerSchema {
    strict_schema("lessons", closed_object(json!({ "memories": learned_memories(memory_rules) })))
}

/// Of `agent.learn` and `agent.brief`.
pub fn briefing(memory_rules: u32) -> AnswerSchema {
    let briefing = closed_object(json!({
        "worth": { "type": "boolean" }, "reason": text_type(), "summary": text_type(), "text": text_type(),
    }));
    strict_schema(
        "briefing",
        closed_object(json!({ "memories": learned_memories(memory_rules), "briefing": briefing })),
    )
}

/// Of `memory.digest`, with memories of these kinds.
pub fn digest(kinds: &[&str]) -> AnswerSchema {
    let entries = json!({ "type": "array", "items": { "type": "integer" } });
    let memory = json!({ "kind": one_of(kinds), "subject": text_type(), "content": text_type(), "entries": entries });
    strict_schema("memories", closed_object(json!({ "memories": { "type": "array", "items": closed_object(memory) } })))
}

/// Of the keywords of memories.
pub fn keywords() -> AnswerSchema {
    let words = json!({ "type": "array", "items": text_type() });
    let memory = closed_object(json!({ "number": { "type": "integer" }, "keywords": words, "subject": text_type() }));
    strict_schema("keywords", closed_object(json!({ "memories": { "type": "array", "items": memory } })))
}

/// Of the keywords of one memory, as builds before epoch 10 asked for them.
pub fn single_memory_keywords() -> AnswerSchema {
    strict_schema("keywords", closed_object(json!({ "keywords": { "type": "array", "items": text_type() } })))
}

/// Of what `memory.append` keeps of a conversation.
pub fn journal_entry() -> AnswerSchema {
    let texts = || json!({ "type": "array", "items": text_type() });
    let fields = json!({
        "content": text_type(), "keywords": texts(), "people": texts(), "projects": texts(), "decisions": texts(), "tasks": texts(),
        "facts": texts(),
    });
    strict_schema("entry", closed_object(fields))
}

/// Of `agent.reflect`.
pub fn draft_review() -> AnswerSchema {
    strict_schema(
        "review",
        closed_object(json!({ "verdict": one_of(&["finished", "revise", "act"]), "reason": text_type() })),
    )
}

/// Of `agent.promise`.
pub fn promise() -> AnswerSchema {
    let task = closed_object(json!({ "title": text_type(), "text": text_type() }));
    let tasks = json!({ "type": "array", "items": task });
    let verdict = one_of(&["nothing", "queue", "take_back"]);
    strict_schema("promise", closed_object(json!({ "verdict": verdict, "tasks": tasks, "answer": text_type() })))
}

fn learned_memories(memory_rules: u32) -> Value {
    let kind = one_of(&["insight", "fact"]);
    let memory = match memory_rules {
        0 => closed_object(json!({ "kind": kind, "subject": text_type(), "content": text_type() })),
        _ => {
            let replaces = json!({ "type": "integer" });
            closed_object(json!({ "kind": kind, "subject": text_type(), "content": text_type(), "replaces": replaces }))
        }
    };
    json!({ "type": "array", "items": memory })
}

fn text_type() -> Value {
    json!({ "type": "string" })
}

fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// An object of these fields, all of them and no others.
fn closed_object(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
    json!({ "type": "object", "required": required, "additionalProperties": false, "properties": properties })
}

fn strict_schema(name: &str, schema: Value) -> AnswerSchema {
    AnswerSchema { name: name.into(), schema: schema.to_string().into(), is_strict: true }
}

fn open_schema(name: &str, schema: Value) -> AnswerSchema {
    AnswerSchema { name: name.into(), schema: schema.to_string().into(), is_strict: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if OpenAI accepts the schema as strict.
    fn is_strict(schema: &Value) -> bool {
        let below = match schema["type"].as_str() {
            Some("object") => {
                let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
                if schema["additionalProperties"] != json!(false) || schema["required"] != json!(names) {
                    return false;
                }
                schema["properties"].as_object().unwrap().values().collect::<Vec<_>>()
            }
            Some("array") => vec![&schema["items"]],
            kind => return kind.is_some() && schema.get("anyOf").is_none(),
        };
        below.into_iter().all(is_strict)
    }

    #[test]
    fn forms_are_objects_and_strict_where_they_say_so() {
        let forms = [
            thread_match(),
            chain(),
            step_decision(),
            hook_judgement(),
            summary(),
            lessons(0),
            lessons(1),
            briefing(1),
            digest(&["fact"]),
            keywords(),
            single_memory_keywords(),
            journal_entry(),
            draft_review(),
        ];
        for AnswerSchema { name, schema, is_strict: says } in forms {
            let schema: Value = serde_json::from_str(&schema).unwrap();
            assert_eq!(schema["type"], "object", "{name}");
            assert_eq!(is_strict(&schema), says, "{name}");
            assert!(jsonschema::validator_for(&schema).is_ok(), "{name}");
            assert!(crate::chat_completions::is_wire_name(&name));
        }
    }
}
