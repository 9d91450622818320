//! `email.search`, `email.read` and `email.send`: the agent's Maildir.

mod bounds;
mod config;
#[cfg(test)]
mod differential;
mod email_send;
mod filter;
mod mail_draft;
mod maildir;
mod message;
mod recipients;

use std::num::NonZeroUsize;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kairo_core::outside::{OutsideSource, source_mark};
use serde::Deserialize;
use serde_json::{Value, json};

pub use self::config::MailConfig;
pub use self::email_send::EmailSend;
use self::filter::MailFilter;
pub use self::maildir::{MaildirEntry, find_seen, list_entries, list_unseen, unseen_entry};
pub use self::message::{Mail, Person};
use super::now::rfc3339;
use super::parse_args;
use super::workspace::{
    Desk, FileToolDefinition, Folder, WorkspaceFile, parse_moment, parse_span, remember_skipped, result_limit,
    set_field, truncate_text,
};
use crate::tool::{CallResult, ToolError};

/// Messages found when a call does not say how many.
const DEFAULT_RESULTS: usize = 20;
/// Length of the beginning of a text that a search shows, in bytes.
const SNIPPET_BYTES: usize = 240;

/// The folder of the mailbox, a Maildir of its own, that keeps what was sent.
const SENT: &str = "Sent";

pub const TOOLS: [FileToolDefinition; 2] = [
    FileToolDefinition {
        name: "email.search",
        description: "Searches the mailbox, newest first. All conditions given must hold; texts match anywhere and in any case. Returns messages (id, from, to, subject, date, unread, snippet, attachments), how many matched in all (total), and how many files were unreadable, the first of them named in skipped. email.read with an id gives the whole text.",
        schema: search_schema,
        work: search_mail,
        outside: outside_senders,
    },
    FileToolDefinition {
        name: "email.read",
        description: "Reads one message by the id that email.search returned: headers, text (HTML is turned into text, attached mails come last) and the names of attachments. truncated says that a limit cut it off.",
        schema: read_schema,
        work: read_mail,
        outside: outside_senders,
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
            "folder": folder_schema(),
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
            "folder": folder_schema(),
        },
        "additionalProperties": false,
    })
}

fn folder_schema() -> Value {
    json!({"enum": ["inbox", "sent"], "description": "Mail that came in (default) or that email.send sent"})
}

/// The folder to read: received or sent mail.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MailFolder {
    #[default]
    Inbox,
    Sent,
}

impl MailFolder {
    fn open(self, desk: &Desk<'_>) -> Result<Folder, ToolError> {
        let mailbox = desk.folder("mail")?;
        match self {
            Self::Inbox => Ok(mailbox),
            Self::Sent => Ok(mailbox.open_or_create(SENT)?),
        }
    }
}

#[derive(Deserialize)]
struct MailSearchArgs {
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
    folder: MailFolder,
}

fn search_mail(desk: &Desk<'_>, args: Value) -> CallResult {
    let args: MailSearchArgs = parse_args(args)?;
    let most = result_limit(args.limit, DEFAULT_RESULTS, desk);
    let unread = args.unread;
    let mailbox = args.folder.open(desk)?;
    let filter = build_filter(args, desk)?;
    let (mut entries, mut incomplete) = list_entries(&mailbox, desk.limits.max_files)?;
    entries.retain(|entry| unread.is_none_or(|unread| entry.unread == unread));
    let mut found = MailSearchHits::default();
    for entry in entries {
        desk.check_not_canceled()?;
        let Some(file) = entry.read(&mailbox, desk.limits.max_file_bytes)? else { continue };
        incomplete |= file.truncated && filter.needs_text();
        let Some(head) = Mail::parse_headers(&file.bytes) else {
            found.unreadable += 1;
            remember_skipped(&mut found.skipped, &entry.id);
            continue;
        };
        let date = head.date.unwrap_or_else(|| entry.arrival_time(&file));
        if !filter.matches_headers(&head, date) {
            continue;
        }
        let Some(mail) = Mail::parse_whole(&file.bytes) else { continue };
        incomplete |= mail.cut && filter.needs_text();
        if !filter.matches_text(&mail) {
            continue;
        }
        found.add(MailHit { entry, mail: summarize_mail(&mail), date }, most);
    }
    let messages = desk.take_fitting(found.newest.iter().map(|hit| hit.to_json(desk.zone())), most);
    let mut result = json!({
        "messages": messages,
        "total": found.total,
        "unreadable": found.unreadable,
        "incomplete": incomplete,
    });
    if !found.skipped.is_empty() {
        set_field(&mut result, "skipped", found.skipped);
    }
    Ok(result)
}

fn build_filter(args: MailSearchArgs, desk: &Desk<'_>) -> Result<MailFilter, ToolError> {
    let since = args.since.map(|text| parse_moment("since", &text, &desk.now)).transpose()?;
    let until = args.until.map(|text| parse_span("until", &Value::from(text), &desk.now)).transpose()?;
    let recent = args.days.map(|days| parse_moment("days", &format!("{days} days ago"), &desk.now)).transpose()?;
    Ok(MailFilter {
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
struct MailSearchHits {
    newest: Vec<MailHit>,
    total: usize,
    unreadable: usize,
    skipped: Vec<String>,
}

struct MailHit {
    entry: MaildirEntry,
    mail: Value,
    date: Timestamp,
}

impl MailSearchHits {
    fn add(&mut self, hit: MailHit, most: usize) {
        self.total += 1;
        let place = self.newest.partition_point(|other| (other.date, &other.entry.id) > (hit.date, &hit.entry.id));
        self.newest.insert(place, hit);
        self.newest.truncate(most);
    }
}

impl MailHit {
    fn to_json(&self, zone: &TimeZone) -> Value {
        let mut json = self.mail.clone();
        set_field(&mut json, "id", self.entry.id.as_str());
        set_field(&mut json, "date", rfc3339(&self.date.to_zoned(zone.clone())));
        set_field(&mut json, "unread", self.entry.unread);
        json
    }
}

fn summarize_mail(mail: &Mail) -> Value {
    let text = mail.text.split_whitespace().take(SNIPPET_BYTES).collect::<Vec<_>>().join(" ");
    json!({
        "from": format_people(&mail.from),
        "to": format_people(&mail.to),
        "subject": mail.subject,
        "snippet": truncate_text(&text, SNIPPET_BYTES).0,
        "attachments": mail.attachments,
    })
}

fn format_people(people: &[Person]) -> Vec<String> {
    people.iter().map(Person::to_string).collect()
}

#[derive(Deserialize)]
struct MailReadArgs {
    id: String,
    #[serde(default)]
    folder: MailFolder,
}

fn read_mail(desk: &Desk<'_>, args: Value) -> CallResult {
    let args: MailReadArgs = parse_args(args)?;
    let unknown =
        || ToolError::failed(format!("there is no message {:?}; take an id that email.search returned", args.id));
    let (entry, file) = find_message(&args.folder.open(desk)?, &args.id, desk)?.ok_or_else(unknown)?;
    let mail = Mail::parse_whole(&file.bytes).ok_or_else(|| {
        ToolError::failed(format!("the file of the message {:?} is no readable mail; look at others", args.id))
    })?;
    let (text, cut) = truncate_text(&mail.text, desk.limits.max_text_bytes);
    let date = mail.date.unwrap_or_else(|| entry.arrival_time(&file));
    Ok(json!({
        "id": entry.id,
        "from": format_people(&mail.from),
        "to": format_people(&mail.to),
        "cc": format_people(&mail.cc),
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
fn outside_senders(args: &Value, result: &Value) -> Vec<String> {
    if args.get("folder").and_then(Value::as_str) == Some("sent") {
        return Vec::new();
    }
    let found = result.get("messages").and_then(Value::as_array).map_or(std::slice::from_ref(result), Vec::as_slice);
    let from = |mail: &Value| mail.get("from")?.get(0)?.as_str().map(str::to_owned);
    found.iter().map(|mail| source_mark(OutsideSource::Mail, &from(mail).unwrap_or_default())).collect()
}

/// A message by its id, as far as the limits allow, if it is there.
fn find_message(
    mailbox: &Folder,
    id: &str,
    desk: &Desk<'_>,
) -> Result<Option<(MaildirEntry, WorkspaceFile)>, ToolError> {
    let (entries, _) = list_entries(mailbox, desk.limits.max_files)?;
    let Some(entry) = entries.into_iter().find(|entry| entry.id == id) else { return Ok(None) };
    Ok(entry.read(mailbox, desk.limits.max_file_bytes)?.map(|file| (entry, file)))
}
