//! `email.search`, `email.read` and `email.send`: the agent's Maildir.

mod bounds;
mod compose;
mod config;
#[cfg(test)]
mod differential;
mod filter;
mod maildir;
mod message;
mod recipients;
mod send;

use std::num::NonZeroUsize;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kairo_core::outside::{Kind, mark};
use serde::Deserialize;
use serde_json::{Value, json};

pub use self::config::MailConfig;
use self::filter::Filter;
pub use self::maildir::{Entry, arrived, arriving, entries, moved};
pub use self::message::{Mail, Person};
pub use self::send::EmailSend;
use super::now::rfc3339;
use super::parse_args;
use super::workspace::{About, Desk, File, Folder, add, beginning, limit, moment, skip, span};
use crate::tool::{CallResult, ToolError};

/// Messages found when a call does not say how many.
const DEFAULT_RESULTS: usize = 20;
/// Length of the beginning of a text that a search shows, in bytes.
const SNIPPET_BYTES: usize = 240;

/// The folder of the mailbox, a Maildir of its own, that keeps what was sent.
const SENT: &str = "Sent";

pub const TOOLS: [About; 2] = [
    About {
        name: "email.search",
        description: "Searches the mailbox, newest first. All conditions given must hold; texts match anywhere and in any case. Returns messages (id, from, to, subject, date, unread, snippet, attachments), how many matched in all (total), and how many files were unreadable, the first of them named in skipped. email.read with an id gives the whole text.",
        schema: search_schema,
        work: search,
        outside: senders,
    },
    About {
        name: "email.read",
        description: "Reads one message by the id that email.search returned: headers, text (HTML is turned into text, attached mails come last) and the names of attachments. truncated says that a limit cut it off.",
        schema: read_schema,
        work: read,
        outside: senders,
    },
];

fn search_schema() -> Value {
    let text =
        |description: &str| json!({"type": "string", "minLength": 1, "maxLength": 500, "description": description});
    json!({
        "type": "object",
        "properties": {
            "query": text("Words that all occur in subject, text, people or names of attachments"),
            "from": text("Part of the sender's name or address"),
            "to": text("Part of a recipient's name or address, copies included"),
            "subject": text("Part of the subject"),
            "since": text("Not older: a date, a time or a phrase such as \"last monday\""),
            "until": text("Not newer; of a day or a longer stretch, its end"),
            "days": {"type": "integer", "minimum": 1, "maximum": 36500, "description": "Of today and so many days before"},
            "unread": {"type": "boolean", "description": "Only unread (true) or only read messages (false)"},
            "folder": folder_text(),
            "limit": {"type": "integer", "minimum": 1, "description": "Messages returned, default 20"},
        },
        "additionalProperties": false,
    })
}

fn read_schema() -> Value {
    json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "string", "minLength": 1, "maxLength": 500, "description": "As email.search returned it"},
            "folder": folder_text(),
        },
        "additionalProperties": false,
    })
}

fn folder_text() -> Value {
    json!({"enum": ["inbox", "sent"], "description": "Mail that came in (default) or that email.send sent"})
}

/// The folder to read: received or sent mail.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Which {
    #[default]
    Inbox,
    Sent,
}

impl Which {
    fn folder(self, desk: &Desk<'_>) -> Result<Folder, ToolError> {
        let mailbox = desk.folder("mail")?;
        match self {
            Self::Inbox => Ok(mailbox),
            Self::Sent => Ok(mailbox.make(SENT)?),
        }
    }
}

#[derive(Deserialize)]
struct SearchArgs {
    query: Option<String>,
    from: Option<String>,
    to: Option<String>,
    subject: Option<String>,
    since: Option<String>,
    until: Option<String>,
    days: Option<i64>,
    unread: Option<bool>,
    limit: Option<NonZeroUsize>,
    #[serde(default)]
    folder: Which,
}

fn search(desk: &Desk<'_>, args: Value) -> CallResult {
    let args: SearchArgs = parse_args(args)?;
    let most = limit(args.limit, DEFAULT_RESULTS, desk);
    let unread = args.unread;
    let mailbox = args.folder.folder(desk)?;
    let filter = filter(args, desk)?;
    let (mut entries, mut incomplete) = entries(&mailbox, desk.limits.max_files)?;
    entries.retain(|entry| unread.is_none_or(|unread| entry.unread == unread));
    let mut found = Found::default();
    for entry in entries {
        desk.go_on()?;
        let Some(file) = entry.read(&mailbox, desk.limits.max_file_bytes)? else { continue };
        incomplete |= file.truncated && filter.looks_at_text();
        let Some(head) = Mail::head(&file.bytes) else {
            found.unreadable += 1;
            skip(&mut found.skipped, &entry.id);
            continue;
        };
        let date = head.date.unwrap_or_else(|| entry.arrived(&file));
        if !filter.fits_head(&head, date) {
            continue;
        }
        let Some(mail) = Mail::whole(&file.bytes) else { continue };
        incomplete |= mail.cut && filter.looks_at_text();
        if !filter.fits_text(&mail) {
            continue;
        }
        found.add(Hit { entry, mail: summary(&mail), date }, most);
    }
    let messages = desk.list(found.newest.iter().map(|hit| hit.to_json(desk.zone())), most);
    let mut result = json!({
        "messages": messages,
        "total": found.total,
        "unreadable": found.unreadable,
        "incomplete": incomplete,
    });
    if !found.skipped.is_empty() {
        add(&mut result, "skipped", found.skipped);
    }
    Ok(result)
}

fn filter(args: SearchArgs, desk: &Desk<'_>) -> Result<Filter, ToolError> {
    let since = args.since.map(|text| moment("since", &text, &desk.now)).transpose()?;
    let until = args.until.map(|text| span("until", &Value::from(text), &desk.now)).transpose()?;
    let recent = args.days.map(|days| moment("days", &format!("{days} days ago"), &desk.now)).transpose()?;
    Ok(Filter {
        query: args.query,
        from: args.from,
        to: args.to,
        subject: args.subject,
        since: since.into_iter().chain(recent).map(|time| time.timestamp()).max(),
        until: until.map(|span| span.end.timestamp()),
    })
}

/// The newest of what was found; no more of it is held in memory than is returned.
#[derive(Default)]
struct Found {
    newest: Vec<Hit>,
    total: usize,
    unreadable: usize,
    skipped: Vec<String>,
}

struct Hit {
    entry: Entry,
    mail: Value,
    date: Timestamp,
}

impl Found {
    fn add(&mut self, hit: Hit, most: usize) {
        self.total += 1;
        let place = self.newest.partition_point(|other| (other.date, &other.entry.id) > (hit.date, &hit.entry.id));
        self.newest.insert(place, hit);
        self.newest.truncate(most);
    }
}

impl Hit {
    fn to_json(&self, zone: &TimeZone) -> Value {
        let mut json = self.mail.clone();
        add(&mut json, "id", self.entry.id.as_str());
        add(&mut json, "date", rfc3339(&self.date.to_zoned(zone.clone())));
        add(&mut json, "unread", self.entry.unread);
        json
    }
}

fn summary(mail: &Mail) -> Value {
    let text = mail.text.split_whitespace().take(SNIPPET_BYTES).collect::<Vec<_>>().join(" ");
    json!({
        "from": people(&mail.from),
        "to": people(&mail.to),
        "subject": mail.subject,
        "snippet": beginning(&text, SNIPPET_BYTES).0,
        "attachments": mail.attachments,
    })
}

fn people(people: &[Person]) -> Vec<String> {
    people.iter().map(Person::to_string).collect()
}

#[derive(Deserialize)]
struct ReadArgs {
    id: String,
    #[serde(default)]
    folder: Which,
}

fn read(desk: &Desk<'_>, args: Value) -> CallResult {
    let args: ReadArgs = parse_args(args)?;
    let unknown =
        || ToolError::failed(format!("there is no message {:?}; take an id that email.search returned", args.id));
    let (entry, file) = find(&args.folder.folder(desk)?, &args.id, desk)?.ok_or_else(unknown)?;
    let mail = Mail::whole(&file.bytes).ok_or_else(|| {
        ToolError::failed(format!("the file of the message {:?} is no readable mail; look at others", args.id))
    })?;
    let (text, cut) = beginning(&mail.text, desk.limits.max_text_bytes);
    let date = mail.date.unwrap_or_else(|| entry.arrived(&file));
    Ok(json!({
        "id": entry.id,
        "from": people(&mail.from),
        "to": people(&mail.to),
        "cc": people(&mail.cc),
        "subject": mail.subject,
        "date": rfc3339(&date.to_zoned(desk.zone().clone())),
        "unread": entry.unread,
        "text": text,
        "attachments": mail.attachments,
        "bytes": file.size,
        "truncated": cut || mail.cut || file.truncated,
    }))
}

/// Returns the senders of the mails in a result as outside sources; none for mail that the agent sent.
fn senders(args: &Value, result: &Value) -> Vec<String> {
    if args.get("folder").and_then(Value::as_str) == Some("sent") {
        return Vec::new();
    }
    let found = result.get("messages").and_then(Value::as_array).map_or(std::slice::from_ref(result), Vec::as_slice);
    let from = |mail: &Value| mail.get("from")?.get(0)?.as_str().map(str::to_owned);
    found.iter().map(|mail| mark(Kind::Mail, &from(mail).unwrap_or_default())).collect()
}

/// A message by its id, as far as the limits allow, if it is there.
fn find(mailbox: &Folder, id: &str, desk: &Desk<'_>) -> Result<Option<(Entry, File)>, ToolError> {
    let (entries, _) = entries(mailbox, desk.limits.max_files)?;
    let Some(entry) = entries.into_iter().find(|entry| entry.id == id) else { return Ok(None) };
    Ok(entry.read(mailbox, desk.limits.max_file_bytes)?.map(|file| (entry, file)))
}
