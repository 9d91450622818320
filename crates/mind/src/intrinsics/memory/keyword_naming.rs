//! The model request for the keywords of several memories, and the reading of its answer.

use kairo_proto::v1::MemoryAppended;
use serde_json::{Map, Value};

use super::{SUBJECT_BYTES, normalize_keywords, text_list, text_param};
use crate::{answer_schemas, model_answer::extract_json, prompts, request::ModelRequest, secrets, thread::cut_to};

/// Of one memory, so much is shown, in bytes.
const CONTENT_BYTES: usize = 4 * 1024;

/// Keywords and subject that a model gave a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedKeywords {
    keywords: Vec<String>,
    subject: String,
}

impl NamedKeywords {
    /// The memory with its keywords, and with a subject if it had none.
    pub fn apply_to(self, memory: MemoryAppended) -> MemoryAppended {
        let subject = if memory.subject.is_empty() { self.subject } else { memory.subject };
        MemoryAppended { keywords: self.keywords, subject, lacks_keywords: false, ..memory }
    }
}

/// Builds the model request about memories with these contents.
pub fn request(contents: &[&str]) -> ModelRequest {
    let shown = |content: &str| cut_to(&secrets::redact(content).text, CONTENT_BYTES);
    let shown = match contents {
        [content] => shown(content),
        contents => {
            let texts = (1..).zip(contents).map(|(number, content)| format!("{number}. {}", shown(content)));
            texts.collect::<Vec<_>>().join("\n\n")
        }
    };
    ModelRequest::from_prompt("light", prompts::FIND_KEYWORDS, shown).with_answer_schema(answer_schemas::keywords())
}

/// Reads the keywords of each of so many memories from an answer; `None` for those without anything usable.
pub fn read(answer: &str, memories: usize) -> Result<Vec<Option<NamedKeywords>>, String> {
    let mut named = vec![None; memories];
    let (object, items) = match extract_json(answer)? {
        Value::Array(items) => (Map::new(), items),
        Value::Object(object) => {
            let items = object.get("memories").and_then(Value::as_array).cloned().unwrap_or_default();
            (object, items)
        }
        _ => return Err("expected a JSON object".to_owned()),
    };
    for (at, item) in items.iter().enumerate() {
        let Some(item) = item.as_object() else { continue };
        let number = item.get("number").and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
        let place = number.map_or(Some(at), |number| number.checked_sub(1));
        if let Some(place) = place.and_then(|place| named.get_mut(place)) {
            *place = read_keywords(item);
        }
    }
    // Of a single memory, models may leave out the list.
    if let ([only @ None], Some(of_one)) = (named.as_mut_slice(), read_keywords(&object)) {
        *only = Some(of_one);
    }
    match named.iter().any(Option::is_some) {
        true => Ok(named),
        false => Err("expected the keywords of each memory".to_owned()),
    }
}

fn read_keywords(item: &Map<String, Value>) -> Option<NamedKeywords> {
    let keywords = normalize_keywords(text_list(item, "keywords").ok()?);
    let subject = cut_to(&secrets::redact(text_param(item, "subject").unwrap_or_default()).text, SUBJECT_BYTES);
    (!keywords.is_empty()).then_some(NamedKeywords { keywords, subject })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_the_keywords_of_each_memory_as_far_as_it_can_be_read() {
        let words = |answer: &str, memories: usize| {
            let named = read(answer, memories)?;
            let of_one = |named: Option<NamedKeywords>| named.map(|named| named.keywords.join(" ")).unwrap_or_default();
            Ok::<_, String>(named.into_iter().map(of_one).collect::<Vec<_>>().join("|"))
        };
        let table = [
            (r#"{"keywords": ["Tea", "tea", "kettle"]}"#, 1, "tea kettle"),
            (r#"{"memories": [{"number": 2, "keywords": ["b"]}, {"number": 1, "keywords": ["a"]}]}"#, 2, "a|b"),
            (r#"[{"keywords": ["a"]}, {"keywords": ["b"]}]"#, 2, "a|b"),
            (r#"{"memories": [{"number": 1, "keywords": 7}, {"number": 2, "keywords": "b"}, 7]}"#, 3, "|b|"),
            (
                r#"{"memories": [{"number": 0, "keywords": ["a"]}, {"number": 9, "keywords": ["b"]}, {"keywords": ["c"]}]}"#,
                3,
                "||c",
            ),
        ];
        for (answer, memories, expected) in table {
            assert_eq!(words(answer, memories).as_deref(), Ok(expected), "{answer}");
        }
        for answer in ["", "tea", "7", "{}", r#"{"keywords": []}"#, r#"{"keywords": ["[secret pin]"]}"#] {
            assert!(words(answer, 1).is_err(), "{answer}");
        }
        assert!(words(r#"{"keywords": ["a"]}"#, 2).is_err(), "of which of the two?");
    }

    #[test]
    fn a_subject_is_given_to_a_memory_that_has_none() {
        let named = NamedKeywords { keywords: vec!["tea".into()], subject: "breakfast".into() };
        let memory = MemoryAppended { lacks_keywords: true, content: "x".into(), ..Default::default() };
        let of = |subject: &str| named.clone().apply_to(MemoryAppended { subject: subject.into(), ..memory.clone() });
        assert_eq!((of("").subject.as_str(), of("ann").subject.as_str()), ("breakfast", "ann"));
        assert!(!of("").lacks_keywords);
    }
}
