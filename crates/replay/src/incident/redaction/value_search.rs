//! Finds personal and secret values in a text: addresses, the numbers of people, cards and accounts, secrets, and the
//! words and patterns named for the export. It errs on the side of caution.

use std::{net::Ipv6Addr, ops::Range, sync::LazyLock};

use kairo_mind::secrets;
use regex::Regex;

use super::ValueKind;

/// Expressions, and what they find; the first group is the value, or all of it where there is none.
const SHAPES: [(ValueKind, &str); 8] = [
    (ValueKind::Credentials, r"(?i)\b[a-z][a-z0-9+.-]{1,20}://([^\s/@\x22]{1,256})@"),
    (ValueKind::Email, r"[\p{L}\p{N}._%+'-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+"),
    // As it stands in an address of the web.
    (ValueKind::Email, r"[A-Za-z0-9._+-]+%40[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"),
    (ValueKind::Phone, r"\+[0-9](?:[ ()./-]{0,2}[0-9]){6,14}"),
    (ValueKind::Phone, r"\(?0[0-9]{1,5}\)?[ /-][0-9](?:[ /-]?[0-9]){4,11}"),
    (ValueKind::Phone, r"(?:\([0-9]{3}\) ?|[0-9]{3}[-. ])[0-9]{3}[-. ][0-9]{4}"),
    (ValueKind::Ip, r"(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"),
    (ValueKind::Ip, r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}"),
];
/// A country, two check digits, and the account.
const IBAN: &str = r"(?i)\b[a-z]{2}[0-9]{2}(?: ?[a-z0-9]){11,30}";
/// Lengths of account numbers, with the countries that use each (the registry of ISO 13616).
const COUNTRIES: &[(usize, &str)] = &[
    (15, "NO"),
    (16, "BE"),
    (18, "DK FI FO GL NL"),
    (19, "MK SI"),
    (20, "AT BA EE KZ LT LU XK"),
    (21, "CH HR LI LV"),
    (22, "BG BH CR DE GB GE IE ME RS VA"),
    (23, "AE GI IL IQ TL"),
    (24, "AD CZ ES MD PK RO SA SE SK TN VG"),
    (25, "LY PT ST"),
    (26, "IS TR"),
    (27, "FR GR IT MC MR SM"),
    (28, "AL AZ BY CY DO GT HU LB PL SV"),
    (29, "BR EG PS QA UA"),
    (30, "JO KW MU"),
    (31, "MT SC"),
    (32, "LC"),
];
/// A date that looks like a phone number.
const DAY: &str = r"^(?:[0-9]{1,4}[-/. ][0-9]{1,2}[-/. ][0-9]{1,4})";
/// By ids what happened hangs together: nothing in one is a value.
const UUID: &str = r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

/// Everything of a text that is to be replaced, with what it is.
pub(super) fn find_values<'t>(text: &'t str, patterns: &[Regex]) -> Vec<(ValueKind, &'t str)> {
    static UUIDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(UUID).ok());
    let named =
        patterns.iter().flat_map(|pattern| pattern.find_iter(text)).map(|found| (ValueKind::Pattern, found.range()));
    let secrets =
        secrets::find_ranges(text).into_iter().map(|at| (secret_kind(text.get(at.clone()).unwrap_or_default()), at));
    let found = find_by_shape(text).into_iter().chain(find_ibans(text)).chain(secrets).chain(named);
    let ids: Vec<Range<usize>> = UUIDS.iter().flat_map(|uuids| uuids.find_iter(text)).map(|id| id.range()).collect();
    let is_of_id = |at: &Range<usize>| ids.iter().any(|id| at.start < id.end && id.start < at.end);
    let found = found.filter(|(_, at)| !is_of_id(at)).filter_map(|(kind, at)| Some((kind, text.get(at)?)));
    found.filter(|(_, value)| !value.is_empty()).collect()
}

fn find_by_shape(text: &str) -> Vec<(ValueKind, Range<usize>)> {
    static SHAPED: LazyLock<Vec<(ValueKind, Regex)>> =
        LazyLock::new(|| SHAPES.iter().filter_map(|(kind, shape)| Some((*kind, Regex::new(shape).ok()?))).collect());
    let mut found = Vec::new();
    for (kind, shape) in SHAPED.iter() {
        for captures in shape.captures_iter(text) {
            let Some(value) = captures.get(1).or_else(|| captures.get(0)) else { continue };
            if stands_alone(text, &value.range(), *kind) && is_plausible(*kind, value.as_str()) {
                found.push((*kind, value.range()));
            }
        }
    }
    found
}

/// Numbers within ids, versions and longer numbers are none by which somebody is reached.
fn stands_alone(text: &str, at: &Range<usize>, kind: ValueKind) -> bool {
    if !matches!(kind, ValueKind::Phone | ValueKind::Ip) {
        return true;
    }
    let before = text.get(..at.start).unwrap_or_default().chars().next_back();
    let mut behind = text.get(at.end..).unwrap_or_default().chars();
    let (behind, second) = (behind.next(), behind.next());
    let joins = |next: Option<char>| next.is_some_and(|next| next.is_alphanumeric() || matches!(next, '_' | ':' | '-'));
    let goes_on = behind == Some('.') && second.is_some_and(|second| second.is_ascii_digit());
    !joins(before) && !before.is_some_and(|before| matches!(before, '.' | '+')) && !joins(behind) && !goes_on
}

fn is_plausible(kind: ValueKind, value: &str) -> bool {
    static DAYS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(DAY).ok());
    match kind {
        ValueKind::Phone => !DAYS.iter().any(|day| day.is_match(value)),
        // Times of the day have colons, too.
        ValueKind::Ip if value.contains(':') => {
            value.parse::<Ipv6Addr>().is_ok() && value.bytes().any(|byte| byte.is_ascii_digit()) && value.len() > 3
        }
        _ => true,
    }
}

/// Secrets that are only digits, and as many as a card has, are cards.
fn secret_kind(secret: &str) -> ValueKind {
    let digits = secret.chars().filter(char::is_ascii_digit).count();
    let is_card = digits >= 13 && secret.chars().all(|sign| sign.is_ascii_digit() || matches!(sign, ' ' | '-'));
    if is_card { ValueKind::Card } else { ValueKind::Secret }
}

/// Account numbers whose check digits are right (ISO 13616); what follows one, such as a word, is no part of it.
fn find_ibans(text: &str) -> impl Iterator<Item = (ValueKind, Range<usize>)> {
    static IBANS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(IBAN).ok());
    let candidates = IBANS.iter().flat_map(|iban| iban.find_iter(text));
    candidates.filter_map(|candidate| {
        let before = text.get(..candidate.start()).unwrap_or_default();
        let ends = candidate.as_str().char_indices().map(|(at, sign)| candidate.start() + at + sign.len_utf8()).rev();
        let goes_on = |sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_');
        let ends_word = |end: &usize| !text.get(*end..).unwrap_or_default().starts_with(goes_on);
        let values = ends.filter(ends_word).map(|end| candidate.start()..end);
        // The end of an id is no account.
        let mut values = values.filter(|_| !before.ends_with(['-', '_']));
        values.find(|at| text.get(at.clone()).is_some_and(is_iban)).map(|at| (ValueKind::Iban, at))
    })
}

fn is_iban(value: &str) -> bool {
    let signs: Vec<char> =
        value.chars().filter(char::is_ascii_alphanumeric).map(|sign| sign.to_ascii_uppercase()).collect();
    let Some((head, rest)) = signs.split_at_checked(4) else { return false };
    let country: String = head.iter().take(2).collect();
    let is_so_long =
        |(length, countries): &(usize, &str)| *length == signs.len() && countries.split(' ').any(|it| it == country);
    let remainder = rest.iter().chain(head).filter_map(|sign| sign.to_digit(36)).fold(0, |sum, digit| {
        let shift = if digit > 9 { 100 } else { 10 };
        (sum * shift + digit) % 97
    });
    remainder == 1 && COUNTRIES.iter().any(is_so_long) && value.ends_with(|last: char| last.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_in_text(text: &str) -> Vec<(ValueKind, &str)> {
        let mut found = find_values(text, &[Regex::new("CASE-[0-9]+").unwrap()]);
        found.sort_by_key(|(_, value)| value.as_ptr());
        found.dedup();
        found
    }

    #[test]
    fn each_kind_is_found_where_it_stands_alone() {
        for (text, kind, value) in [
            ("write to ann.lee+x@mail.example.org.", ValueKind::Email, "ann.lee+x@mail.example.org"),
            ("schreib jörg@müller.de", ValueKind::Email, "jörg@müller.de"),
            ("https://x.org/?to=ann%40x.org&a=1", ValueKind::Email, "ann%40x.org"),
            ("call +49 (0)30 1234-567, please", ValueKind::Phone, "+49 (0)30 1234-567"),
            ("ruf 030/1234567 an", ValueKind::Phone, "030/1234567"),
            ("(555) 123-4567", ValueKind::Phone, "(555) 123-4567"),
            ("DE89 3704 0044 0532 0130 00 is mine", ValueKind::Iban, "DE89 3704 0044 0532 0130 00"),
            ("card 4111 1111 1111 1111", ValueKind::Card, "4111 1111 1111 1111"),
            ("from 203.0.113.7", ValueKind::Ip, "203.0.113.7"),
            ("from 2001:db8::7 on", ValueKind::Ip, "2001:db8::7"),
            ("git clone https://ann:pw-1234@git.example/x", ValueKind::Credentials, "ann:pw-1234"),
            ("the password is Tr0ub4dor&3", ValueKind::Secret, "Tr0ub4dor&3"),
            ("see CASE-17", ValueKind::Pattern, "CASE-17"),
        ] {
            assert!(find_in_text(text).contains(&(kind, value)), "{text}: {:?}", find_in_text(text));
        }
    }

    #[test]
    fn what_only_looks_like_one_stays() {
        for text in [
            "card 4111 1111 1111 1112",
            "DE88 3704 0044 0532 0130 00",
            "2026-01-01T00:00:00Z",
            "at 10:00:00 on 01-02-2026",
            "version 1.2.3.4.5 of 11.2026",
            "5f0c6c1e-0300-4123-8456-012345678901",
            "\"key\": \"5f0c6c1e-0300-4123-8456-012345678901\"",
            // Its end has the check digits of an account.
            "ad83c3fb-db19-a0bb-be38-a10cce9244cb",
            "room 030 is free",
            "std::mem::swap",
        ] {
            assert_eq!(find_in_text(text), [], "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_in_an_id_is_a_value(one: u128, other: u64, behind in "(: |=|/|\" ?: ?\"|, )") {
            let uuid = uuid::Uuid::from_u128(one);
            let text = format!("key{behind}{uuid} {uuid} in trip-{other:016x}, {{\"token\":\"{uuid}\"}}");
            proptest::prop_assert_eq!(find_values(&text, &[]), []);
        }
    }
}
