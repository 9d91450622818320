//! Mails made at random against Python's `email`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::message::{Mail, Person};
use crate::builtin::reference::Cases;

fn squeeze_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn people(people: &[Person]) -> Value {
    people.iter().map(|person| json!([squeeze_spaces(&person.name), person.address])).collect()
}

/// Returns the texts missing from the text that is shown, in any order: attached mails come last here.
fn find_missing<'c>(text: &str, case: &'c Value) -> Vec<&'c str> {
    let text = squeeze_spaces(text);
    let texts = case["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    texts.filter(|one| !text.contains(one.strip_prefix("MAIL ").unwrap_or(one))).collect()
}

fn judge(case: &Value) -> Option<String> {
    let raw = STANDARD.decode(case["raw"].as_str().unwrap()).unwrap();
    let Some(mail) = Mail::parse_whole(&raw) else { return Some(format!("seed {}: no mail", case["seed"])) };
    let date = mail.date.map(jiff::Timestamp::as_second);
    let headers = json!({"from": people(&mail.from), "to": people(&mail.to), "subject": squeeze_spaces(&mail.subject), "date": date});
    let differs: Vec<&str> =
        ["from", "to", "subject", "date"].into_iter().filter(|key| headers[*key] != case[*key]).collect();
    let lost = find_missing(&mail.text, case);
    let files = case["files"].as_array().unwrap().iter().filter_map(Value::as_str);
    let unnamed: Vec<&str> = files.filter(|file| !mail.attachments.iter().any(|name| name == file)).collect();
    let mails = case["texts"].as_array().unwrap().iter().filter(|text| text.as_str().unwrap().starts_with("MAIL "));
    let attached = mail.text.matches("--- Attached message ---").count();
    let expected = mails.count();
    if differs.is_empty() && lost.is_empty() && unnamed.is_empty() && attached == expected {
        return None;
    }
    Some(format!(
        "{}\nseed {}; {differs:?} {headers} and not {} {} {} {}; lost {lost:?}; unnamed {unnamed:?} in {:?}; {attached} attached mails, not {expected}\ntext: {}",
        String::from_utf8_lossy(&raw),
        case["seed"],
        case["from"],
        case["to"],
        case["subject"],
        case["date"],
        mail.attachments,
        mail.text,
    ))
}

#[test]
fn mails_are_read_as_an_established_library_reads_them() {
    let Some(cases) = Cases::of("mails") else { return };
    cases.compare(judge);
}
