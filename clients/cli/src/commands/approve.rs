//! `kairo approve` and `kairo reject`

use std::process::ExitCode;

use clap::Args;
use kairo_proto::v1;
use kairo_proto::words::Verdict;
use serde_json::{Map, Value};

use super::{
    GatewaySession,
    event_lookup::RecentEventSelector,
    orders::{AnswerOptions, STATUS},
};
use crate::{Error, client::NewApproval, order::AwaitedEvent};

#[derive(Debug, Args)]
#[command(after_help = STATUS)]
pub(super) struct ApproveArgs {
    #[command(flatten)]
    verdict: VerdictOptions,
    /// Approve the call with these arguments, a JSON object that replaces all of the agent's
    #[arg(long, value_name = "JSON", value_parser = json_object, conflicts_with = "set")]
    arguments: Option<Map<String, Value>>,
    /// Change one argument of the call and approve it; VALUE is JSON, or plain text if it is not valid JSON; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = argument)]
    set: Vec<(String, Value)>,
}

#[derive(Debug, Args)]
#[command(after_help = STATUS)]
pub(super) struct RejectArgs {
    #[command(flatten)]
    verdict: VerdictOptions,
}

#[derive(Debug, Args)]
struct VerdictOptions {
    #[command(flatten)]
    action: RecentEventSelector,
    /// Note to the agent about it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    answering: AnswerOptions,
}

/// The changes of a call's arguments.
#[derive(Debug, Default)]
struct ArgumentChanges {
    whole: Option<Map<String, Value>>,
    single: Vec<(String, Value)>,
}

fn json_object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("expected a JSON object: {error}"))
}

/// A value that is no JSON is a text.
fn argument(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as subject=Lunch")?;
    Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()))))
}

impl ArgumentChanges {
    /// The arguments to call with, if they are others than those asked for.
    fn apply(self, asked: Map<String, Value>, is_known: bool) -> Result<Option<Map<String, Value>>, Error> {
        if self.single.is_empty() {
            return Ok(self.whole);
        }
        if !is_known {
            let advice =
                "the call was asked for too long ago to change single arguments: give all of them with --arguments";
            return Err(Error::Usage(advice.to_owned()));
        }
        Ok(Some(asked.into_iter().chain(self.single).collect()))
    }
}

pub(super) async fn approve(arguments: ApproveArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let changes = ArgumentChanges { whole: arguments.arguments, single: arguments.set };
    submit(arguments.verdict, &Verdict::Approved, changes, session).await
}

pub(super) async fn reject(arguments: RejectArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    submit(arguments.verdict, &Verdict::Rejected, ArgumentChanges::default(), session).await
}

async fn submit(
    options: VerdictOptions,
    verdict: &Verdict,
    changes: ArgumentChanges,
    session: &GatewaySession,
) -> Result<ExitCode, Error> {
    let VerdictOptions { action, note, answering } = options;
    let request = action.find_request(v1::ApprovalRequested::TYPE, "request for consent", session).await?;
    let manner = answering.into_order_options(request.user.as_deref())?;
    let awaited = if *verdict == Verdict::Approved { AwaitedEvent::Result } else { AwaitedEvent::Decision };
    let approval = NewApproval {
        user: manner.user.to_string(),
        agent: request.agent,
        action_id: request.id,
        verdict: verdict.text(),
        note,
        arguments: changes.apply(request.arguments, request.user.is_some())?,
    };
    manner.post_and_wait("v1/approvals", &approval, &approval.agent, awaited, session).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn single_arguments_replace_those_that_were_asked_for() {
        let asked = || json!({ "to": ["a"], "subject": "Hi" }).as_object().cloned().unwrap();
        let single = |text: &[&str]| text.iter().map(|text| argument(text).unwrap()).collect();
        let apply = |whole, single, is_known| {
            let changes = ArgumentChanges { whole, single };
            changes.apply(asked(), is_known).map(|arguments| arguments.map(Value::Object))
        };
        assert_eq!(apply(None, Vec::new(), true).unwrap(), None);
        let changed = apply(None, single(&["subject=Lunch = one", "to=[\"b\"]", "urgent=true"]), true).unwrap();
        assert_eq!(changed, Some(json!({ "to": ["b"], "subject": "Lunch = one", "urgent": true })));
        assert_eq!(apply(Some(Map::new()), Vec::new(), true).unwrap(), Some(json!({})));
        assert!(apply(None, single(&["a=1"]), false).is_err());
        assert!(argument("subject").is_err() && json_object("[1]").is_err());
    }
}
