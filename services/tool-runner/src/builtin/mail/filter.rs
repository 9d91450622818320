//! The filter of a message search.

use jiff::Timestamp;

use super::message::{Mail, Person};
use crate::builtin::workspace::matches_words;

/// The conditions of a search; all that are given must hold.
#[derive(Debug, Default)]
pub struct MailFilter {
    pub query: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub subject: Option<String>,
    pub since: Option<Timestamp>,
    /// Just before this.
    pub until: Option<Timestamp>,
}

impl MailFilter {
    /// Checks the conditions on the headers alone; reading the rest costs more.
    pub fn matches_headers(&self, mail: &Mail, date: Timestamp) -> bool {
        self.from.as_ref().is_none_or(|wanted| mail.from.iter().any(|person| person.matches(wanted)))
            && self.to.as_ref().is_none_or(|wanted| mail.to.iter().chain(&mail.cc).any(|person| person.matches(wanted)))
            && self.subject.as_ref().is_none_or(|wanted| matches_words(wanted, [mail.subject.as_str()]))
            && self.since.is_none_or(|since| date >= since)
            && self.until.is_none_or(|until| date < until)
    }

    pub fn needs_text(&self) -> bool {
        self.query.is_some()
    }

    pub fn matches_text(&self, mail: &Mail) -> bool {
        self.query.as_ref().is_none_or(|query| {
            let people = mail.from.iter().chain(&mail.to).chain(&mail.cc).flat_map(Person::texts);
            let texts = [mail.subject.as_str(), mail.text.as_str()];
            matches_words(query, texts.into_iter().chain(people).chain(mail.attachments.iter().map(String::as_str)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(filter: &MailFilter) -> bool {
        let mail = Mail::parse_whole(
            b"From: Sarah Lee <sarah@example.org>\r\nTo: me@example.org\r\nCc: Bob <bob@example.org>\r\n\
              Subject: Q1 Budget\r\nDate: Mon, 15 Jan 2024 10:30:00 +0000\r\n\r\nThe figures, please.\r\n",
        )
        .unwrap();
        filter.matches_headers(&mail, mail.date.unwrap()) && filter.matches_text(&mail)
    }

    #[test]
    fn all_conditions_must_hold() {
        let text = |text: &str| Some(text.to_owned());
        let time = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        for (wanted, filter) in [
            (true, MailFilter::default()),
            (true, MailFilter { from: text("sarah"), subject: text("BUDGET"), ..MailFilter::default() }),
            (true, MailFilter { to: text("bob"), query: text("figures budget lee"), ..MailFilter::default() }),
            (false, MailFilter { to: text("sarah"), ..MailFilter::default() }),
            (false, MailFilter { query: text("figures missing"), ..MailFilter::default() }),
            (true, MailFilter { since: time("2024-01-15T10:30:00Z"), ..MailFilter::default() }),
            (false, MailFilter { since: time("2024-01-15T10:30:01Z"), ..MailFilter::default() }),
            (false, MailFilter { until: time("2024-01-15T10:30:00Z"), ..MailFilter::default() }),
            (true, MailFilter { until: time("2024-01-15T10:30:01Z"), ..MailFilter::default() }),
        ] {
            assert_eq!(fits(&filter), wanted, "{filter:?}");
        }
    }
}
