//! `kairo events`

use std::process::ExitCode;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use kairo_core::{event_json::EventJson, ids::Name};
use uuid::Uuid;

use super::{GatewaySession, name, status::end_of_log};
use crate::{
    Error,
    client::{EventFilter, StreamUpdate},
    event_lines::EventLines,
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo events                          the latest events
  kairo events --follow                 what happens from now on, until Ctrl-C
  kairo events --agent ops --since 1h   all that concerned one agent in the last hour
  kairo events --correlation ID         one message and all that it led to
  kairo events --before 1200            the latest events before that place
  kairo events --after 0 --json         the whole log, one JSON object a line

A line holds the place in the log, the time, the subject, the type, what caused it and what it
says. Places are what --after takes.";

/// Shown when nothing says how much is wanted.
const LATEST: u64 = 50;

/// Show what happened, or what is happening
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct EventsArgs {
    /// Only what concerns this agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
    /// Only this thread
    #[arg(long, value_parser = name, value_name = "ID")]
    thread: Option<Name>,
    /// Only what one message led to: the id of its event
    #[arg(long, value_name = "ID")]
    correlation: Option<Uuid>,
    /// Only what comes after this place in the log
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<u64>,
    /// Only what comes before this message of the log, the newest of it
    #[arg(long, value_name = "SEQUENCE", conflicts_with = "follow")]
    before: Option<u64>,
    /// Only what happened since: a time such as 2026-11-21T10:00:00Z, or so long ago, such as 90s or 2h
    #[arg(long, value_parser = since, value_name = "TIME")]
    since: Option<Timestamp>,
    /// Only so many of the newest; 50 if nothing else says how many
    #[arg(long, value_name = "N")]
    latest: Option<u64>,
    /// Go on with what happens from now on
    #[arg(long, short)]
    follow: bool,
}

pub(super) async fn run(arguments: EventsArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let mut printer = EventPrinter { json: session.json, lines: terminal::event_lines() };
    let mut filter = EventFilter {
        agent: arguments.agent,
        thread: arguments.thread,
        correlation: arguments.correlation,
        after: arguments.after,
        before: arguments.before,
        since: arguments.since,
        latest: arguments.latest,
        limit: None,
    };
    if !arguments.follow {
        let narrowed = filter.after.is_some() || filter.since.is_some() || filter.correlation.is_some();
        if !narrowed && filter.latest.is_none() {
            filter.latest = Some(LATEST);
        }
        print_history(&mut filter, session, &mut printer).await?;
        return Ok(ExitCode::SUCCESS);
    }
    if filter.since.is_some() || filter.latest.is_some() {
        print_history(&mut filter, session, &mut printer).await?;
    }
    if filter.after.is_none() {
        // Said, so that a connection lost before the first event is taken up here and not where it came back.
        filter.after = Some(end_of_log(session).await?);
    }
    let mut follow = session.client.follow(EventFilter { since: None, latest: None, before: None, ..filter }, false);
    loop {
        if let StreamUpdate::Event(event) = follow.next().await? {
            printer.print(&event)?;
        }
    }
}

/// Prints what is in the log already, page by page; `filter.after` is then where it ended.
async fn print_history(
    filter: &mut EventFilter,
    session: &GatewaySession,
    printer: &mut EventPrinter,
) -> Result<(), Error> {
    loop {
        let page = session.client.events(filter).await?;
        for event in &page.events {
            printer.print(event)?;
        }
        filter.after = page.next_after.or(page.events.last().map(|event| event.sequence)).or(filter.after);
        if page.next_after.is_none() {
            return Ok(());
        }
    }
}

struct EventPrinter {
    json: bool,
    lines: EventLines,
}

impl EventPrinter {
    fn print(&mut self, event: &EventJson) -> Result<(), Error> {
        match self.json {
            true => terminal::json(event)?,
            false => terminal::line(self.lines.format_line(event))?,
        }
        Ok(())
    }
}

/// A time, or how long ago it was.
fn since(text: &str) -> Result<Timestamp, String> {
    let expected = || "expected a time such as 2026-11-21T10:00:00Z, or so long ago, such as 90s or 2h".to_owned();
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let ago: SignedDuration = text.parse().map_err(|_| expected())?;
    Timestamp::now().checked_sub(ago).map_err(|_| expected())
}
