//! Builds the event of an arrived mail.

use jiff::Timestamp;
use kairo_core::outside;
use kairo_proto::v1::EmailReceived;

use crate::builtin::mail::{Mail, Person};
use crate::builtin::workspace::truncate_text;

/// A mail that came in, as it is announced.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    pub body: EmailReceived,
    /// Marks a mail that made no sense, or whose text is cut short.
    pub tags: Vec<String>,
}

/// Builds the event of a file, with at most `max_text` bytes of the text. If the file is no mail, only its id is given.
pub fn build_arrival(email_id: &str, bytes: &[u8], truncated: bool, max_text: usize) -> Arrival {
    let email_id = email_id.to_owned();
    let Some(mail) = Mail::parse_whole(bytes) else {
        let body = EmailReceived { email_id, ..EmailReceived::default() };
        return Arrival { body, tags: vec!["unreadable".to_owned()] };
    };
    let (text, cut) = truncate_text(&mail.text, max_text);
    let sender = mail.from.first().map(Person::to_string).unwrap_or_default();
    let body = EmailReceived {
        email_id,
        to: mail.to.iter().chain(&mail.cc).map(Person::to_string).collect(),
        subject: mail.subject.clone(),
        body: text.to_owned(),
        date: mail.date.as_ref().map(Timestamp::to_string).unwrap_or_default(),
        outside: vec![outside::source_mark(outside::OutsideSource::Mail, &sender)],
        sender,
    };
    let left_off = cut || truncated || mail.cut;
    Arrival { body, tags: left_off.then(|| "truncated".to_owned()).into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_told_as_far_as_there_is_room() {
        let mail = b"From: Sarah <s@example.org>\r\nTo: a@example.org\r\nCc: b@example.org\r\nSubject: Budget\r\n\
            Date: Mon, 15 Jan 2024 11:30:00 +0100\r\n\r\n\xc3\xa9\xc3\xa9\xc3\xa9\r\n";
        let Arrival { body, tags } = build_arrival("1.a", mail, false, 5);
        assert_eq!((body.sender.as_str(), body.subject.as_str()), ("Sarah <s@example.org>", "Budget"));
        assert_eq!((body.to, body.body.as_str()), (vec!["a@example.org".into(), "b@example.org".into()], "éé"));
        assert_eq!((body.date.as_str(), tags), ("2024-01-15T10:30:00Z", vec!["truncated".to_owned()]));
        assert!(build_arrival("1.a", mail, false, 6).tags.is_empty());
    }

    #[test]
    fn what_is_no_mail_is_told_without_words() {
        let Arrival { body, tags } = build_arrival("2.b", b"\xff\xfe garbage", false, 100);
        assert_eq!(body, EmailReceived { email_id: "2.b".to_owned(), ..EmailReceived::default() });
        assert_eq!(tags, ["unreadable"]);
    }
}
