//! Output of a fork.

use std::collections::BTreeMap;

use kairo_core::{
    event_json::{self, EventJson},
    ids::Name,
    record::Record,
};
use kairo_fork::{AnswerSource, ForkAnswer, model_calls::ForkSpending};
use kairo_proto::v1;
use kairo_replay::cut::ForkParts;
use serde_json::{Value, json};

use crate::commands::GatewaySession;
use crate::{
    Error,
    event_lines::{EventLines, printable},
    terminal,
    turn::is_say,
};

/// Characters of arguments that are shown.
const ARGUMENTS: usize = 200;

pub struct ForkScreen {
    json: bool,
    /// The printer of event lines, if every event is shown.
    lines: Option<EventLines>,
    /// True if the speaker of each message is named.
    names: bool,
    /// The number of answers by kind and source.
    counts: BTreeMap<(&'static str, String), usize>,
}

impl ForkScreen {
    pub fn new(session: &GatewaySession, events: bool, names: bool) -> Self {
        let lines = events.then(terminal::event_lines);
        Self { json: session.json, lines, names, counts: BTreeMap::new() }
    }

    /// Shows the agents and the place of the fork, the calls in flight, and the model that is asked.
    pub fn show_opening(&self, parts: &ForkParts, user: &Name, model: Option<&str>) -> Result<(), Error> {
        if self.json {
            return Ok(());
        }
        let agents: Vec<&str> = parts.agents.iter().map(Name::as_str).collect();
        let lost = parts.pending.iter().filter(|it| !it.has_recorded_end()).count();
        let later = parts.pending.len();
        terminal::line(format!(
            "A fork of {} behind message {}, in memory. You speak as {user}.",
            agents.join(", "),
            parts.at
        ))?;
        if later > 0 {
            let told = format!("{later} in flight, of which the log knows what came of {}", later - lost);
            terminal::line(told)?;
        }
        terminal::line(match model {
            Some(model) => format!("What the log has no answer to, {model} is asked."),
            None => "No model is configured: what the log has no answer to, nobody answers.".to_owned(),
        })?;
        Ok(())
    }

    /// A message of the log of the fork.
    pub fn show_record(&mut self, record: &Record) -> Result<Vec<EventJson>, Error> {
        let events = event_json::events(record);
        for event in &events {
            if self.json {
                terminal::json(event)?;
            } else if let Some(lines) = &mut self.lines {
                terminal::line(lines.format_line(event))?;
            } else if let Some(line) = self.format_speech(event) {
                terminal::line(line)?;
            }
        }
        Ok(events)
    }

    fn format_speech(&self, event: &EventJson) -> Option<String> {
        let text = printable(event.text());
        let agent = event.subject.split('.').nth(2).unwrap_or_default();
        match event.type_name.as_str() {
            v1::UserMessageUndelivered::TYPE => Some(format!("not delivered: {text}")),
            v1::AgentFailed::TYPE => Some(format!("{agent} failed: {text}")),
            _ if is_say(event) && self.names => Some(format!("{agent}: {text}")),
            _ if is_say(event) => Some(text),
            _ => None,
        }
    }

    /// An answer that no tool, agent or model outside gave.
    pub fn show_answer(&mut self, told: &ForkAnswer) -> Result<(), Error> {
        let (kind, answer) = match told {
            ForkAnswer::Tool { answer, .. } => ("tools", answer),
            ForkAnswer::Agent { answer, .. } => ("agents", answer),
            ForkAnswer::Model { answer, .. } => ("models", answer),
        };
        *self.counts.entry((kind, answer_source(answer))).or_default() += 1;
        if self.json {
            return Ok(terminal::json(told)?);
        }
        let what = match told {
            ForkAnswer::Model { answer: AnswerSource::NotAsked { why }, .. } => {
                return Ok(terminal::line(format!("  no model is asked: {}", printable(why)))?);
            }
            ForkAnswer::Model { .. } => return Ok(()),
            ForkAnswer::Agent { agent, .. } => format!("asked {agent}"),
            ForkAnswer::Tool { tool, arguments, .. } => {
                let arguments: String = arguments.to_string().chars().take(ARGUMENTS).collect();
                format!("{tool} {arguments}")
            }
        };
        let place = match answer {
            AnswerSource::Recorded { at } => format!(" at {at}"),
            _ => String::new(),
        };
        // Names of tools and agents come from the log, too.
        Ok(terminal::line(format!("  {}: {}{place}", printable(&what), answer_source(answer)))?)
    }

    /// Words about the fork itself.
    pub fn show_note(&self, text: impl AsRef<str>) -> Result<(), Error> {
        if self.json { Ok(()) } else { Ok(terminal::line(text)?) }
    }

    /// Shows the prompt to whoever types.
    pub fn show_prompt(&self, text: &str) -> Result<(), Error> {
        if self.json { Ok(()) } else { Ok(terminal::piece(text)?) }
    }

    /// Shows how the fork ended, and what models were asked.
    pub fn show_closing(&self, at_rest: bool, now: jiff::Timestamp, spent: Option<&ForkSpending>) -> Result<(), Error> {
        if self.json {
            let counts: BTreeMap<String, usize> =
                self.counts.iter().map(|((kind, from), count)| (format!("{kind}_{from}"), *count)).collect();
            let ended = json!({ "at_rest": at_rest, "now": now, "answers": counts, "asked": spent });
            return Ok(terminal::json(&ended)?);
        }
        let of = |kind: &str| {
            let of = self.counts.iter().filter(|((of, _), _)| *of == kind);
            let told: Vec<String> = of.map(|((_, from), count)| format!("{count} {from}")).collect();
            (!told.is_empty()).then(|| format!("{kind}: {}", told.join(", ")))
        };
        let told: Vec<String> = ["models", "tools", "agents"].into_iter().filter_map(of).collect();
        let told = if told.is_empty() { "nothing was asked or called".to_owned() } else { told.join("; ") };
        terminal::line(format!("The fork has ended. {told}"))?;
        Ok(spent.map_or(Ok(()), |spent| terminal::line(spent.to_string()))?)
    }
}

/// Returns the source of an answer, as `--json` names it.
fn answer_source(answer: &AnswerSource) -> String {
    let told = serde_json::to_value(answer).unwrap_or_default();
    told.get("from").and_then(Value::as_str).unwrap_or_default().to_owned()
}
