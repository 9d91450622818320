//! vCards (RFC 6350, and the versions before it) as contacts are really exported.

use calcard::vcard::{VCard, VCardProperty, VCardValue};
use calcard::{Entry, Parser};

use crate::builtin::workspace::{matches_words, truncate_text};

/// Longest text of a field that is kept, in bytes.
const MAX_TEXT_BYTES: usize = 1000;
/// Longest name that is made of something else, in bytes.
const MAX_NAME_BYTES: usize = 100;
/// Addresses or numbers of one person that are kept.
const MAX_VALUES: usize = 10;

/// A person, or a group of people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContactCard {
    pub name: String,
    pub role: Option<String>,
    pub emails: Vec<String>,
    pub phones: Vec<String>,
    pub organization: Option<String>,
    /// Departments and categories: what a team may be called.
    pub teams: Vec<String>,
    pub note: Option<String>,
    uid: Option<String>,
    /// For a group, its members: the identifiers or addresses of people.
    members: Option<Vec<String>>,
}

/// The cards of a file, and whether all of it made sense.
pub fn read(text: &str) -> (Vec<ContactCard>, bool) {
    let mut cards = Vec::new();
    let mut whole = true;
    let mut parser = Parser::new(text);
    loop {
        match parser.entry() {
            Entry::Eof => break,
            Entry::VCard(card) => match ContactCard::from_vcard(&card) {
                Some(card) => cards.push(card),
                None => whole = false,
            },
            _ => whole = false,
        }
    }
    whole &= !cards.is_empty();
    (cards, whole)
}

/// The people among the cards that belong to a team: by department, category, or a group of that name.
pub fn members_of_team<'c>(cards: &'c [ContactCard], team: &str) -> Vec<&'c ContactCard> {
    let members: Vec<&String> = cards
        .iter()
        .filter(|card| matches_words(team, [card.name.as_str()]))
        .filter_map(|group| group.members.as_ref())
        .flatten()
        .collect();
    let belongs = |card: &&ContactCard| {
        card.teams.iter().any(|name| matches_words(team, [name.as_str()]))
            || members.iter().any(|member| card.matches_member(member))
    };
    cards.iter().filter(|card| card.is_person()).filter(belongs).collect()
}

impl ContactCard {
    fn from_vcard(card: &VCard) -> Option<Self> {
        let texts = |property: VCardProperty| -> Vec<String> {
            let values = card.properties(&property).filter_map(|entry| entry.values.first());
            values.filter_map(value_text).take(MAX_VALUES).collect()
        };
        let one = |property| texts(property).into_iter().next();
        let parts = |property: VCardProperty| -> Vec<String> {
            card.properties(&property).flat_map(|entry| &entry.values).flat_map(component_texts).collect()
        };
        let mut organization = parts(VCardProperty::Org).into_iter();
        let organization_name = organization.next();
        let name = one(VCardProperty::Fn)
            .or_else(|| Some(full_name(card)).filter(|name| !name.is_empty()))
            .or_else(|| organization_name.clone())
            .or_else(|| one(VCardProperty::Nickname));
        let is_group = one(VCardProperty::Kind).is_some_and(|kind| kind.eq_ignore_ascii_case("group"))
            || card.entries.iter().any(|entry| is_extension_property(&entry.name, "X-ADDRESSBOOKSERVER-KIND"));
        let emails = texts(VCardProperty::Email);
        let phones: Vec<String> =
            texts(VCardProperty::Tel).iter().map(|phone| phone.trim_start_matches("tel:").to_owned()).collect();
        let role = one(VCardProperty::Role).or_else(|| one(VCardProperty::Title));
        // Somebody without a name goes by an address or a number.
        let name = name.or_else(|| emails.first().or(phones.first()).or(role.as_ref()).cloned()).or_else(|| {
            let place = Some(parts(VCardProperty::Adr).join(" ")).filter(|place| !place.is_empty());
            let other = place.or_else(|| one(VCardProperty::Note)).or_else(|| one(VCardProperty::Uid));
            other.map(|text| short_line(&text))
        })?;
        Some(Self {
            name,
            role,
            emails,
            phones,
            teams: organization.chain(parts(VCardProperty::Categories)).collect(),
            organization: organization_name,
            note: one(VCardProperty::Note),
            uid: one(VCardProperty::Uid),
            members: is_group.then(|| group_members(card)),
        })
    }

    pub fn is_person(&self) -> bool {
        self.members.is_none()
    }

    pub fn matches(&self, query: &str) -> bool {
        let optional = [&self.role, &self.organization, &self.note].into_iter().flatten();
        let lists = self.emails.iter().chain(&self.phones).chain(&self.teams);
        matches_words(query, optional.chain(lists).chain([&self.name]).map(String::as_str))
    }

    /// Returns true if all words of a text are in the name.
    pub fn is_called(&self, text: &str) -> bool {
        matches_words(text, [self.name.as_str()])
    }

    /// Returns true if the member of a group is this person, by UID or email address.
    fn matches_member(&self, member: &str) -> bool {
        let member = member.trim_start_matches("mailto:");
        let bare = |uid: &str| uid.trim_start_matches("urn:uuid:").to_lowercase();
        self.uid.as_deref().is_some_and(|uid| bare(uid) == bare(member))
            || self.emails.iter().any(|email| email.eq_ignore_ascii_case(member))
    }
}

fn group_members(card: &VCard) -> Vec<String> {
    let is_member = |name: &VCardProperty| {
        *name == VCardProperty::Member || is_extension_property(name, "X-ADDRESSBOOKSERVER-MEMBER")
    };
    card.entries
        .iter()
        .filter(|entry| is_member(&entry.name))
        .flat_map(|entry| &entry.values)
        .filter_map(value_text)
        .collect()
}

fn is_extension_property(property: &VCardProperty, name: &str) -> bool {
    matches!(property, VCardProperty::Other(other) if other.eq_ignore_ascii_case(name))
}

/// "Family;Given;Middle;Prefix;Suffix" in the order it is said in.
fn full_name(card: &VCard) -> String {
    let values = card.property(&VCardProperty::N).map(|entry| entry.values.as_slice()).unwrap_or_default();
    let part = |index: usize| values.get(index).and_then(value_text);
    let said = [part(3), part(1), part(2), part(0), part(4)];
    said.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn component_texts(value: &VCardValue) -> Vec<String> {
    match value {
        VCardValue::Component(parts) => parts.iter().map(|part| clean_text(part)).collect(),
        other => value_text(other).into_iter().collect(),
    }
}

fn value_text(value: &VCardValue) -> Option<String> {
    let text = match value {
        VCardValue::Component(parts) => clean_text(&parts.join(" ")),
        other => clean_text(other.as_text()?),
    };
    (!text.is_empty()).then_some(text)
}

/// The beginning of a text on one line.
fn short_line(text: &str) -> String {
    truncate_text(&text.split_whitespace().collect::<Vec<_>>().join(" "), MAX_NAME_BYTES).0.to_owned()
}

fn clean_text(text: &str) -> String {
    let text: String = text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    truncate_text(text.trim(), MAX_TEXT_BYTES).0.to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OUTLOOK_3: &str = "BEGIN:VCARD\r\nVERSION:3.0\r\nN;CHARSET=UTF-8:Müller;Jürgen;;Dr.;\r\n\
        FN:Dr. Jürgen Müller\r\nORG:Acme GmbH;Marketing\r\nTITLE:Head of Marketing\r\n\
        TEL;TYPE=WORK,VOICE:+49 30 1234\r\nEMAIL;TYPE=INTERNET,PREF:j.mueller@acme.example\r\n\
        EMAIL;TYPE=INTERNET:jm@home.example\r\nNOTE:Likes short\\, clear\r\n  mail.\\nOn leave in May.\r\n\
        PHOTO;ENCODING=b;TYPE=JPEG:/9j/4AAQ\r\nEND:VCARD\r\n";
    const GOOGLE_4: &str = "BEGIN:VCARD\nVERSION:4.0\nUID:urn:uuid:4FBE8971-0BC3-424C-9C26-36C3E1EFF6B1\n\
        FN:小明\nEMAIL;PREF=1:ming@acme.example\nTEL;VALUE=uri;TYPE=cell:tel:+86-10-5555\n\
        CATEGORIES:Engineering,Berlin\nROLE:Developer\nEND:VCARD\n\
        BEGIN:VCARD\nVERSION:4.0\nKIND:group\nFN:Launch team\n\
        MEMBER:urn:uuid:4fbe8971-0bc3-424c-9c26-36c3e1eff6b1\nMEMBER:mailto:j.mueller@acme.example\nEND:VCARD\n";

    fn cards() -> Vec<ContactCard> {
        let (cards, whole) = read(&format!("{OUTLOOK_3}{GOOGLE_4}"));
        assert!(whole);
        cards
    }

    #[test]
    fn versions_3_and_4() {
        let [jürgen, ming, group] = cards().try_into().unwrap();
        assert_eq!(
            jürgen,
            ContactCard {
                name: "Dr. Jürgen Müller".into(),
                role: Some("Head of Marketing".into()),
                emails: vec!["j.mueller@acme.example".into(), "jm@home.example".into()],
                phones: vec!["+49 30 1234".into()],
                organization: Some("Acme GmbH".into()),
                teams: vec!["Marketing".into()],
                note: Some("Likes short, clear mail.\nOn leave in May.".into()),
                ..ContactCard::default()
            }
        );
        assert_eq!((ming.name.as_str(), ming.role.as_deref()), ("小明", Some("Developer")));
        assert_eq!(
            (ming.phones, ming.teams),
            (vec!["+86-10-5555".to_owned()], vec!["Engineering".into(), "Berlin".into()])
        );
        assert!(!group.is_person());
    }

    #[test]
    fn whoever_has_no_name_goes_by_something_else() {
        for (lines, name) in [
            ("N:;;;;\nEMAIL:a@example.org\nTEL:1", "a@example.org"),
            ("TEL:+49 30 1234", "+49 30 1234"),
            ("ORG:Acme;Sales\nEMAIL:a@example.org", "Acme"),
            ("NICKNAME:Jo\nEMAIL:a@example.org", "Jo"),
            ("ADR:;;Quay 7;Hamburg;;;", "Quay 7 Hamburg"),
            ("N:Lee;Sarah;;Dr.;", "Dr. Sarah Lee"),
        ] {
            let (cards, whole) = read(&format!("BEGIN:VCARD\nVERSION:3.0\n{lines}\nEND:VCARD\n"));
            let names: Vec<&str> = cards.iter().map(|card| card.name.as_str()).collect();
            assert_eq!((names, whole), (vec![name], true), "{lines}");
        }
    }

    #[test]
    fn teams_by_department_category_and_group() {
        let cards = cards();
        let names = |team: &str| members_of_team(&cards, team).iter().map(|card| card.name.clone()).collect::<Vec<_>>();
        assert_eq!(names("marketing"), ["Dr. Jürgen Müller"]);
        assert_eq!(names("Engineering"), ["小明"]);
        assert_eq!(names("launch team"), ["Dr. Jürgen Müller", "小明"]);
        assert!(names("sales").is_empty());
    }

    #[test]
    fn what_is_no_card_is_said() {
        assert_eq!(read(""), (vec![], false));
        assert_eq!(read("hello\n"), (vec![], false));
        let (cards, whole) = read(&format!("{GOOGLE_4}garbage\nBEGIN:VCARD\nVERSION:4.0\nEND:VCARD\n"));
        assert_eq!((cards.len(), whole), (2, false));
    }

    proptest! {
        #[test]
        fn no_text_brings_it_down(text in "(BEGIN:VCARD\n|END:VCARD\n|FN:|TEL;|N:|ORG:|[;:,=\"\\\\]|\n|\\PC){0,40}") {
            read(&text);
        }
    }
}
