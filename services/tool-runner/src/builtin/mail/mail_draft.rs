//! Writing a mail (RFC 5322): the same draft always makes the same bytes.

use jiff::Timestamp;
use lettre::address::Envelope;
use lettre::message::header::ContentType;
use lettre::message::{Attachment, Mailbox, Message, MultiPart, SinglePart};

use crate::tool::ToolError;

/// A mail to be sent.
#[derive(Debug, Clone)]
pub struct MailDraft {
    /// A name for the mail, the same however often it is sent.
    pub key: String,
    pub written: Timestamp,
    pub from: Mailbox,
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    pub bcc: Vec<Mailbox>,
    pub subject: String,
    pub body: String,
    pub attachments: Vec<AttachedFile>,
    /// The ids of the mails before it, without angle brackets; the last is the one that it answers.
    pub answers: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct AttachedFile {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// A mail as it goes out.
#[derive(Debug, Clone)]
pub struct OutgoingMail {
    pub envelope: Envelope,
    pub bytes: Vec<u8>,
}

impl MailDraft {
    /// Without angle brackets.
    pub fn message_id(&self) -> String {
        format!("{}@{}", self.key, self.from.email.domain())
    }

    pub fn to_outgoing_mail(&self) -> Result<OutgoingMail, ToolError> {
        let mut message = Message::builder()
            .message_id(Some(format!("<{}>", self.message_id())))
            .date(self.written.into())
            .from(self.from.clone())
            .subject(self.subject.as_str());
        for to in &self.to {
            message = message.to(to.clone());
        }
        for cc in &self.cc {
            message = message.cc(cc.clone());
        }
        for bcc in &self.bcc {
            message = message.bcc(bcc.clone());
        }
        if let Some(answered) = self.answers.last() {
            let all: Vec<String> = self.answers.iter().map(|id| format!("<{id}>")).collect();
            message = message.in_reply_to(format!("<{answered}>")).references(all.join(" "));
        }
        let text = SinglePart::plain(self.body.clone());
        let message = if self.attachments.is_empty() {
            message.singlepart(text)
        } else {
            let parts = MultiPart::mixed().boundary(format!("kairo-{}", self.key)).singlepart(text);
            message.multipart(self.attachments.iter().fold(parts, |parts, one| parts.singlepart(one.to_part())))
        };
        let message = message.map_err(|error| ToolError::invalid_arguments(format!("/to: {error}")))?;
        Ok(OutgoingMail { envelope: message.envelope().clone(), bytes: message.formatted() })
    }
}

impl AttachedFile {
    fn to_part(&self) -> SinglePart {
        let kind = ContentType::parse(media_type(&self.name)).unwrap_or(ContentType::TEXT_PLAIN);
        Attachment::new(self.name.clone()).body(self.bytes.clone(), kind)
    }
}

/// By the ending of its name.
fn media_type(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "md" => "text/markdown; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "ics" => "text/calendar; charset=utf-8",
        "vcf" => "text/vcard; charset=utf-8",
        "json" => "application/json",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::builtin::mail::message::Mail;

    fn draft() -> MailDraft {
        MailDraft {
            key: "k1".to_owned(),
            written: "2026-03-25T09:00:00Z".parse().unwrap(),
            from: "Ann <ann@example.org>".parse().unwrap(),
            to: vec!["J\u{fc}rgen <j@example.de>".parse().unwrap()],
            cc: vec!["c@example.org".parse().unwrap()],
            bcc: vec!["secret@example.org".parse().unwrap()],
            subject: "Gr\u{fc}\u{df}e \u{2014} \u{4f60}\u{597d}".to_owned(),
            body: "Hello\n.\n\u{20ac} 5\n".to_owned(),
            attachments: Vec::new(),
            answers: Vec::new(),
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let attached = AttachedFile { name: "\u{dc}bersicht.pdf".to_owned(), bytes: vec![0, 255, 10, 13] };
        let answers = vec!["first@example.org".to_owned(), "last@example.org".to_owned()];
        let draft = MailDraft { attachments: vec![attached], answers, ..draft() };
        let letter = draft.to_outgoing_mail().unwrap();
        assert_eq!(letter.bytes, draft.to_outgoing_mail().unwrap().bytes);
        assert_eq!(letter.envelope.to().len(), 3);
        let mail = Mail::parse_whole(&letter.bytes).unwrap();
        assert_eq!(mail.to[0].to_string(), "J\u{fc}rgen <j@example.de>");
        assert_eq!((&mail.subject, mail.text.as_str()), (&draft.subject, "Hello\n.\n\u{20ac} 5"));
        assert_eq!((mail.date, &mail.attachments[0]), (Some(draft.written), &"\u{dc}bersicht.pdf".to_owned()));
        assert_eq!((mail.message_id, mail.references), (draft.message_id(), draft.answers.clone()));
        let text = String::from_utf8(letter.bytes).unwrap();
        assert!(text.contains("In-Reply-To: <last@example.org>") && !text.contains("secret@"), "{text}");
    }

    proptest! {
        #[test]
        fn any_text_arrives(subject in "\\PC{0,80}", body in "(\\PC|\n){0,200}") {
            let letter = MailDraft { subject: subject.clone(), body: body.clone(), ..draft() }.to_outgoing_mail().unwrap();
            let mail = Mail::parse_whole(&letter.bytes).unwrap();
            prop_assert_eq!(&mail.from[0].address, "ann@example.org");
            prop_assert_eq!(letter.envelope.to().len(), 3);
            prop_assert_eq!(mail.to.len(), 1);
        }
    }
}
