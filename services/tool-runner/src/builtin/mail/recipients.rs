//! The recipients of a mail: addresses, and people from the agent's contacts.

use lettre::Address;
use lettre::message::Mailbox;
use serde_json::Value;

use crate::builtin::team::ContactCard;
use crate::tool::ToolError;

/// People listed when a name means several.
const MAX_CANDIDATES: usize = 10;
/// Longest text of one recipient, in bytes.
const MAX_TEXT_BYTES: usize = 500;

/// Reads the recipients that a call names: a text, a person or a result of `team.members`, or a list of such.
pub fn parse_recipients(field: &str, value: &Value) -> Result<Vec<String>, ToolError> {
    let list = value.get("members").unwrap_or(value);
    match list {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => split_recipients(field, text),
        Value::Array(all) => {
            let each = all.iter().map(|one| parse_one(field, one));
            Ok(each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
        one => parse_one(field, one),
    }
}

fn parse_one(field: &str, value: &Value) -> Result<Vec<String>, ToolError> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    match (value, text("email").or_else(|| text("address")), text("name")) {
        (Value::String(text), ..) => split_recipients(field, text),
        (_, Some(address), Some(name)) => {
            Ok(vec![check_header_text(field, &format!("{name} <{address}>"))?.to_owned()])
        }
        (_, Some(text), None) | (_, None, Some(text)) => Ok(vec![check_header_text(field, text)?.to_owned()]),
        _ => Err(field_error(field, "write an address, the name of a contact, or a list of such")),
    }
}

/// A text may name several, with commas or semicolons in between; within quotes and angle brackets these are none.
fn split_recipients(field: &str, text: &str) -> Result<Vec<String>, ToolError> {
    check_header_text(field, text)?;
    let mut quoted = false;
    let mut bracketed = false;
    let parts = text.split(|c: char| {
        match c {
            '"' => quoted = !quoted,
            '<' if !quoted => bracketed = true,
            '>' if !quoted => bracketed = false,
            _ => {}
        }
        matches!(c, ',' | ';') && !quoted && !bracketed
    });
    let parts = parts.map(str::trim).filter(|part| !part.is_empty());
    Ok(parts.map(str::to_owned).collect())
}

/// Nothing that could end the line of a header and begin another.
pub fn check_header_text<'t>(field: &str, text: &'t str) -> Result<&'t str, ToolError> {
    if text.contains(char::is_control) {
        return Err(field_error(field, "line breaks and other control characters are not allowed"));
    }
    Ok(text.trim())
}

/// Returns true if the text is a name, which only the contacts can resolve.
pub fn is_name(text: &str) -> bool {
    !text.contains('@')
}

/// Resolves a text to a mailbox.
pub fn resolve(field: &str, text: &str, contacts: &[ContactCard]) -> Result<Mailbox, ToolError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(field_error(field, &format!("a recipient takes at most {MAX_TEXT_BYTES} bytes")));
    }
    if is_name(text) {
        return resolve_contact(field, text, contacts);
    }
    let (name, address) = match text.strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        Some((name, address)) => (name.trim().trim_matches('"').trim(), address.trim()),
        None => ("", text),
    };
    let address: Address = address
        .parse()
        .map_err(|_| field_error(field, &format!("{text:?} is no address; write one such as sarah@example.org")))?;
    Ok(Mailbox::new((!name.is_empty()).then(|| name.to_owned()), address))
}

fn resolve_contact(field: &str, name: &str, contacts: &[ContactCard]) -> Result<Mailbox, ToolError> {
    let people: Vec<&ContactCard> = contacts.iter().filter(|card| card.is_person() && card.is_called(name)).collect();
    let exactly: Vec<&ContactCard> =
        people.iter().filter(|card| card.name.to_lowercase() == name.to_lowercase()).copied().collect();
    let found = if exactly.is_empty() { people } else { exactly };
    match found.as_slice() {
        [] => Err(field_error(
            field,
            &format!("no contact is called {name:?}; write an address, or look with team.members"),
        )),
        [one] => {
            let address = one.emails.iter().find_map(|email| email.parse::<Address>().ok());
            let address = address.ok_or_else(|| {
                field_error(field, &format!("the contact {:?} has no usable address; write one", one.name))
            })?;
            Ok(Mailbox::new(Some(one.name.clone()), address))
        }
        several => {
            let listed = several.iter().take(MAX_CANDIDATES).map(|card| format_candidate(card));
            let more = several.len().saturating_sub(MAX_CANDIDATES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let listed = listed.collect::<Vec<_>>().join(", ");
            Err(field_error(
                field,
                &format!("{name:?} may be {listed}{more}; write the address of the one who is meant"),
            ))
        }
    }
}

fn format_candidate(card: &ContactCard) -> String {
    match card.emails.first() {
        Some(email) => format!("{} <{email}>", card.name),
        None => format!("{} (no address)", card.name),
    }
}

fn field_error(field: &str, problem: &str) -> ToolError {
    ToolError::invalid_arguments(format!("/{field}: {problem}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn contacts() -> Vec<ContactCard> {
        let nobody = ContactCard::default();
        let card = |name: &str, emails: &[&str]| {
            let mut card = nobody.clone();
            card.name = name.to_owned();
            card.emails = emails.iter().map(|&email| email.to_owned()).collect();
            card
        };
        vec![
            card("Sarah Lee", &["sarah@example.org"]),
            card("John Smith", &["john@example.org"]),
            card("John Smithson", &["js@example.org"]),
            card("Bob", &[]),
        ]
    }

    fn resolved(text: &str) -> Result<String, String> {
        let mailbox = resolve("to", text, &contacts()).map_err(|error| error.message)?;
        Ok(mailbox.to_string())
    }

    #[test]
    fn addresses_and_people_by_name() {
        assert_eq!(resolved("a@example.org").unwrap(), "a@example.org");
        assert_eq!(resolved("Ann <a@example.org>").unwrap(), "Ann <a@example.org>");
        assert_eq!(resolved("\"Lee, Ann\" <a@example.org>").unwrap(), "\"Lee, Ann\" <a@example.org>");
        assert_eq!(resolved("sarah").unwrap(), "Sarah Lee <sarah@example.org>");
        assert_eq!(resolved("john smith").unwrap(), "John Smith <john@example.org>");
        let several = resolved("John").unwrap_err();
        assert!(several.contains("john@example.org") && several.contains("js@example.org"), "{several}");
        assert!(resolved("Bob").unwrap_err().contains("no usable address"));
        assert!(resolved("Zoe").unwrap_err().contains("no contact is called"));
        for wrong in ["a@", "@b", "a b@example.org", "<a@example.org", "a@b@c", "Ann <>", "a@exa mple.org"] {
            assert!(resolved(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_way_to_say_it() {
        let two = ["a@example.org", "Lee, Ann <l@example.org>"];
        for value in [
            json!("a@example.org; \"Lee, Ann\" <l@example.org>,"),
            json!(["a@example.org", "\"Lee, Ann\" <l@example.org>"]),
        ] {
            let all = parse_recipients("to", &value).unwrap();
            let all: Vec<String> = all.iter().map(|text| text.replace('"', "")).collect();
            assert_eq!(all, two, "{value}");
        }
        let team = json!({"members": [{"name": "Sarah Lee", "email": "s@example.org"}, {"name": "Bob"}], "total": 2});
        assert_eq!(parse_recipients("to", &team).unwrap(), ["Sarah Lee <s@example.org>", "Bob"]);
        assert_eq!(parse_recipients("to", &json!({"email": "a@example.org"})).unwrap(), ["a@example.org"]);
        assert!(parse_recipients("to", &json!([3])).is_err() && parse_recipients("to", &json!({"x": 1})).is_err());
    }

    #[test]
    fn no_header_is_smuggled_in() {
        for text in ["a@example.org\r\nBcc: b@example.org", "a\n", "\u{0}x@example.org", "Ann\r <a@example.org>"] {
            assert!(parse_recipients("to", &json!(text)).is_err(), "{text:?}");
            assert!(parse_recipients("to", &json!([text])).is_err(), "{text:?}");
            assert!(parse_recipients("to", &json!({"name": text, "email": "a@example.org"})).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_said_makes_one_line(text in "(\\PC|[<>@,;\"\\\\\r\n ]){0,40}") {
            for one in parse_recipients("to", &json!(text)).unwrap_or_default() {
                if let Ok(mailbox) = resolve("to", &one, &[]) {
                    let is_line = !mailbox.to_string().contains(char::is_control);
                    prop_assert!(is_line, "{}", mailbox);
                }
            }
        }
    }
}
