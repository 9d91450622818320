//! The tools of a fork: those of the catalogue, none of which does anything.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use kairo_proto::v1::ToolCatalogue;
use kairo_replay::cut::{Call, Recorded};
use kairo_tool_runner::tool::{CallContext, Executor, Tool, ToolErrorKind, ToolSpec};
pub use kairo_tool_runner::tool::{CallResult, ToolError};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{Answer, Told, mocks::Mocks};

/// Longest time that a call may take, unless its tool allows more: a person who is asked has to think.
const PATIENCE: Duration = Duration::from_secs(600);

/// Somebody who says what a call comes to.
pub trait Asked: Send + Sync {
    /// Nothing where they do not know either.
    fn about<'a>(&'a self, tool: &'a str, arguments: &'a Value) -> BoxFuture<'a, Option<CallResult>>;
}

/// The sources of answers to calls.
pub(crate) struct Answering {
    pub at: u64,
    pub recorded: Arc<Recorded>,
    pub mocks: Mocks,
    pub asked: Option<Arc<dyn Asked>>,
    pub told: mpsc::UnboundedSender<Told>,
    /// The number of times each call was made, by tool and arguments.
    pub made: Mutex<BTreeMap<(String, String), usize>>,
}

/// A tool that looks like the one of the catalogue.
struct Locked {
    spec: ToolSpec,
    answering: Arc<Answering>,
}

/// All tools of a catalogue.
pub(crate) fn of(catalogue: Option<&ToolCatalogue>, answering: &Arc<Answering>) -> Vec<Arc<dyn Tool>> {
    let tools = catalogue.into_iter().flat_map(|catalogue| &catalogue.tools);
    let specs = tools.filter_map(|tool| ToolSpec::told(tool.clone(), Executor::ToolRunner));
    let locked = |spec: ToolSpec| -> Arc<dyn Tool> {
        let spec = ToolSpec { timeout: spec.timeout.max(PATIENCE), ..spec };
        Arc::new(Locked { spec, answering: answering.clone() })
    };
    specs.map(locked).collect()
}

impl Tool for Locked {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, args: Value, context: CallContext) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            let tool = &self.spec.name;
            let (answer, result) = self.answering.of(tool, &args).await;
            let (action, arguments) = (context.action_id, args);
            let _ = self.answering.told.send(Told::Tool { action, tool: tool.clone(), arguments, answer });
            result
        })
    }

    fn outside(&self, args: &Value, outcome: &CallResult) -> Vec<String> {
        let same =
            |call: &&Call| call.tool == self.spec.name && call.arguments == *args && outcome_of(call) == *outcome;
        let recorded = self.answering.recorded.calls.iter().find(same);
        recorded.map(|call| call.result.outside.clone()).unwrap_or_default()
    }
}

impl Answering {
    async fn of(&self, tool: &str, arguments: &Value) -> (Answer, CallResult) {
        if let Some(result) = self.mocks.of(tool, arguments) {
            return (Answer::Mocked, result);
        }
        let nth = self.nth(tool, arguments);
        if let Some(call) = self.recorded.result(tool, arguments, self.at, nth) {
            return (Answer::Recorded { at: call.at }, outcome_of(call));
        }
        let asked = match &self.asked {
            Some(asked) => asked.about(tool, arguments).await,
            None => None,
        };
        match asked {
            Some(result) => (Answer::Asked, result),
            None => (Answer::Locked, Err(locked(tool))),
        }
    }

    fn nth(&self, tool: &str, arguments: &Value) -> usize {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let times = made.entry((tool.to_owned(), arguments.to_string())).or_default();
        *times += 1;
        *times - 1
    }
}

fn outcome_of(call: &Call) -> CallResult {
    match &call.result.error {
        Some(error) if !call.result.ok => Err(ToolError::new(ToolErrorKind::from(error.kind.as_str()), &error.message)),
        _ => Ok(serde_json::from_str(&call.result.result).unwrap_or_default()),
    }
}

fn locked(tool: &str) -> ToolError {
    ToolError::unavailable(format!(
        "locked: {tool} was not called with these arguments before, and a fork does nothing"
    ))
}
