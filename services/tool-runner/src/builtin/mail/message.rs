//! Reads the content of a message, whatever its encoding.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use mail_parser::{Address, ContentType, HeaderName, Message, MessageParser, MimeHeaders as _};

use super::bounds;
use crate::builtin::workspace::matches_words;

/// People of one header that are kept.
const MAX_PEOPLE: usize = 50;
/// Attachments whose names are kept.
const MAX_ATTACHMENTS: usize = 50;
/// Longest name, address or subject, in characters.
const MAX_HEADER_CHARS: usize = 500;
/// Mails within mails, one in the other, that are read.
const MAX_DEPTH: usize = 8;
/// Ids of the mails before in a conversation that are kept: the newest ones.
const MAX_REFERENCES: usize = 20;

/// A message, decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Mail {
    pub from: Vec<Person>,
    pub to: Vec<Person>,
    pub cc: Vec<Person>,
    pub subject: String,
    /// When it was written, should it say so and the calendar have that date.
    pub date: Option<Timestamp>,
    pub text: String,
    /// Their names.
    pub attachments: Vec<String>,
    /// Its `Message-ID`, without angle brackets; empty when it has none.
    pub message_id: String,
    /// The mails before it in a conversation.
    pub references: Vec<String>,
    /// True if it nests so deep that only its beginning was read.
    pub cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub name: String,
    pub address: String,
}

impl Person {
    pub fn texts(&self) -> [&str; 2] {
        [&self.name, &self.address]
    }

    pub fn matches(&self, wanted: &str) -> bool {
        matches_words(wanted, self.texts())
    }
}

impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name.as_str(), self.address.as_str()) {
            ("", address) => f.write_str(address),
            (name, "") => f.write_str(name),
            (name, address) => write!(f, "{name} <{address}>"),
        }
    }
}

impl Mail {
    /// Only what the headers say. None for what is no mail.
    pub fn parse_headers(bytes: &[u8]) -> Option<Self> {
        Self::from_message(&MessageParser::default().parse_headers(bytes)?)
    }

    /// The message with its text and the names of its attachments. None for what is no mail.
    pub fn parse_whole(bytes: &[u8]) -> Option<Self> {
        let bounded = bounds::parseable_prefix(bytes);
        let message = MessageParser::default().parse(bounded)?;
        let mut mail = Self::from_message(&message)?;
        mail.cut = bounded.len() < bytes.len();
        (mail.text, mail.attachments) = (readable_text(&message), attachment_names(&message));
        mail.cut |= mail.add_nested_mails(&message, 1);
        Some(mail)
    }

    /// Adds what attached mails say, and their attachments. Whether there are too many, one in the other.
    fn add_nested_mails(&mut self, message: &Message<'_>, depth: usize) -> bool {
        let mut cut = false;
        for mail in message.attachments().filter_map(mail_parser::MessagePart::message) {
            if depth > MAX_DEPTH {
                return true;
            }
            let about = [
                ("From", parse_people(mail.from()).iter().map(Person::to_string).collect::<Vec<_>>().join(", ")),
                ("Date", mail.date().map(mail_parser::DateTime::to_rfc3339).unwrap_or_default()),
                ("Subject", to_single_line(mail.subject().unwrap_or_default())),
            ];
            self.text.push_str("\n\n--- Attached message ---\n");
            for (name, value) in about.iter().filter(|(_, value)| !value.is_empty()) {
                self.text.push_str(&format!("{name}: {value}\n"));
            }
            self.text.push('\n');
            self.text.push_str(&readable_text(mail));
            let room = MAX_ATTACHMENTS.saturating_sub(self.attachments.len());
            self.attachments.extend(attachment_names(mail).into_iter().take(room));
            cut |= self.add_nested_mails(mail, depth + 1);
        }
        self.text = self.text.trim().to_owned();
        cut
    }

    fn from_message(message: &Message<'_>) -> Option<Self> {
        // A file of anything else has lines that look like headers, but hardly these.
        let says_what_it_is = [HeaderName::From, HeaderName::Date, HeaderName::Subject, HeaderName::To]
            .into_iter()
            .any(|header| message.header(header).is_some());
        let date = message.date().filter(|date| date.is_valid());
        says_what_it_is.then(|| Self {
            from: parse_people(message.from()),
            to: parse_people(message.to()),
            cc: parse_people(message.cc()),
            subject: to_single_line(message.subject().unwrap_or_default()),
            date: date.and_then(|date| Timestamp::from_second(date.to_timestamp()).ok()),
            text: String::new(),
            attachments: Vec::new(),
            message_id: message.message_id().and_then(parse_message_id).unwrap_or_default(),
            references: reference_ids(message),
            cut: false,
        })
    }
}

/// An id that can stand in a header; none for anything else.
pub fn parse_message_id(text: &str) -> Option<String> {
    let id = text.trim().trim_start_matches('<').trim_end_matches('>');
    let fits = (1..=MAX_HEADER_CHARS).contains(&id.len()) && id.contains('@');
    (fits && id.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>".contains(&byte))).then(|| id.to_owned())
}

fn reference_ids(message: &Message<'_>) -> Vec<String> {
    let all = message.references().as_text_list().unwrap_or_default();
    let newest = all.get(all.len().saturating_sub(MAX_REFERENCES)..).unwrap_or_default();
    newest.iter().filter_map(|text| parse_message_id(text)).collect()
}

fn parse_people(address: Option<&Address<'_>>) -> Vec<Person> {
    let all = address.into_iter().flat_map(Address::iter);
    all.take(MAX_PEOPLE)
        .map(|person| Person {
            name: to_single_line(person.name().unwrap_or_default()),
            address: to_single_line(person.address().unwrap_or_default()),
        })
        .collect()
}

/// The parts that are meant to be read, HTML turned into text.
fn readable_text(message: &Message<'_>) -> String {
    let bodies = (0..message.text_body_count()).filter_map(|part| message.body_text(part));
    // A text with a name may be meant to be read as well (RFC 2183, section 2.1).
    let named = message.attachments().filter(|part| part.content_disposition().is_some_and(ContentType::is_inline));
    let named = named.filter_map(|part| part.is_text().then(|| part.text_contents()).flatten().map(Cow::Borrowed));
    let parts = bodies.chain(named);
    let mut text = String::new();
    for part in parts {
        for line in part.lines() {
            let line: String = line.chars().filter(|c| *c == '\t' || !c.is_control()).collect();
            let line = line.trim_end();
            // HTML leaves many empty lines behind.
            if !(line.is_empty() && text.ends_with("\n\n")) {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text.trim().to_owned()
}

fn attachment_names(message: &Message<'_>) -> Vec<String> {
    let name = |(number, part): (usize, &mail_parser::MessagePart<'_>)| {
        // Without a name of its own an attached mail has its subject's.
        let subject = || Some(format!("{}.eml", to_single_line(part.message()?.subject()?)));
        let named = part.attachment_name().map(to_single_line).filter(|name| !name.is_empty());
        named.or_else(subject).unwrap_or_else(|| format!("attachment {}", number + 1))
    };
    message.attachments().enumerate().take(MAX_ATTACHMENTS).map(name).collect()
}

/// One line without control characters.
fn to_single_line(text: &str) -> String {
    let text: String = text.chars().take(MAX_HEADER_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fuzz_mail() {
        kairo_fuzz::Corpus::named("mail").fuzz(|bytes| {
            if let Some(mail) = Mail::parse_whole(bytes) {
                assert!(mail.subject.chars().count() <= MAX_HEADER_CHARS && mail.from.len() <= MAX_PEOPLE);
                assert!(mail.attachments.len() <= MAX_ATTACHMENTS && mail.references.len() <= MAX_REFERENCES);
            }
            Mail::parse_headers(bytes);
        });
    }

    #[test]
    fn headers_and_texts_of_several_charsets() {
        let multipart = "From: =?ISO-8859-1?Q?J=FCrgen_M=FCller?= <j@example.de>\r\n\
            To: =?UTF-8?B?5bCP5piO?= <ming@example.cn>, \"Lee, Sarah\" <s@example.org>\r\n\
            Subject: =?ISO-2022-JP?B?GyRCJDMkcyRLJEEkTxsoQg==?= =?UTF-8?Q?_=E2=82=AC?=\r\n\
            Date: Mon, 15 Jan 2024 11:30:00 +0100\r\n\
            MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
            --b\r\nContent-Type: text/plain; charset=windows-1252\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
            Preis: 5 =80 f=FCr =\r\nalle\r\n\
            --b\r\nContent-Type: application/pdf; name=x\r\nContent-Disposition: attachment;\r\n\
            \x20filename*=utf-8''%C3%9Cbersicht.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\nJVBERg==\r\n--b--\r\n";
        let mail = Mail::parse_whole(multipart.as_bytes()).unwrap();
        assert_eq!(mail.from[0].to_string(), "Jürgen Müller <j@example.de>");
        assert_eq!(mail.to[0].to_string(), "小明 <ming@example.cn>");
        assert_eq!(mail.to[1].name, "Lee, Sarah");
        assert_eq!(mail.subject, "こんにちは €");
        assert_eq!(mail.date.unwrap().to_string(), "2024-01-15T10:30:00Z");
        assert_eq!(mail.text, "Preis: 5 € für alle");
        assert_eq!(mail.attachments, ["Übersicht.pdf"]);
        let head = Mail::parse_headers(multipart.as_bytes()).unwrap();
        assert_eq!((&head.from, &head.subject, head.date), (&mail.from, &mail.subject, mail.date));
    }

    #[test]
    fn attached_mails_and_texts_to_be_read_are_read() {
        let attached = |subject: &str, text: &str| {
            format!(
                "Content-Type: message/rfc822\r\n\r\nFrom: Ann <a@example.org>\r\nSubject: {subject}\r\n\r\n{text}\r\n--b\r\n"
            )
        };
        let mail = format!(
            "From: b@example.org\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee below.\r\n--b\r\n{}{}\
             Content-Type: text/plain; name=n.txt\r\nContent-Disposition: inline\r\n\r\nInline.\r\n--b--\r\n",
            attached("One", "First."),
            attached("Two", "Second."),
        );
        let mail = Mail::parse_whole(mail.as_bytes()).unwrap();
        assert_eq!(mail.attachments, ["One.eml", "Two.eml", "n.txt"]);
        let places = ["See below.", "Inline.", "From: Ann", "Subject: One", "First.", "Subject: Two", "Second."];
        let places: Vec<usize> = places.iter().map(|text| mail.text.find(text).expect(text)).collect();
        assert!(places.is_sorted(), "{}", mail.text);
        let nested = (0..20).fold("Subject: x\r\n\r\nInnermost.\r\n".to_owned(), |inner, _| {
            format!("Subject: x\r\nContent-Type: message/rfc822\r\n\r\n{inner}")
        });
        let deep = Mail::parse_whole(nested.as_bytes()).unwrap();
        assert!(deep.cut && !deep.text.contains("Innermost."), "{}", deep.text);
    }

    #[test]
    fn html_is_turned_into_text() {
        let mail = Mail::parse_whole(
            b"From: a@example.org\r\nSubject: s\r\nContent-Type: text/html; charset=gb2312\r\n\r\n\
              <html><style>p{}</style><p>\xc4\xe3\xba\xc3 &amp; <b>welcome</b></p><script>x()</script></html>\r\n",
        )
        .unwrap();
        assert!(mail.text.contains("你好 & welcome"), "{}", mail.text);
        assert!(!mail.text.contains('<') && !mail.text.contains("x()"), "{}", mail.text);
    }

    #[test]
    fn a_date_that_does_not_exist_is_no_date() {
        let mail = Mail::parse_whole(b"From: a@example.org\r\nDate: Fri, 30 Feb 2024 25:61:00 +0000\r\n\r\nx").unwrap();
        assert_eq!(mail.date, None);
    }

    #[test]
    fn what_is_no_mail_is_none() {
        for bytes in [b"".as_slice(), b"\xff\xfe\x00\x01", b"just text", b"{\"a\": 1}\n", b"\x89PNG\r\n\x1a\n"] {
            assert_eq!(Mail::parse_whole(bytes), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_bring_it_down(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let head = b"From: a\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n";
            Mail::parse_whole(&bytes);
            let mail = Mail::parse_whole(&[head.as_slice(), &bytes].concat());
            prop_assert!(mail.is_some());
        }

        #[test]
        fn cutting_a_message_off_leaves_a_message(end in 12_usize..300) {
            let message = format!("From: a@b.org\r\nSubject: x\r\n\r\n{}", "text ".repeat(100));
            prop_assert!(Mail::parse_whole(&message.as_bytes()[..end]).is_some());
        }
    }
}
