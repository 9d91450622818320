//! The tools of a fork: those of the catalogue, none of which does anything.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use kairo_proto::v1::ToolCatalogue;
use kairo_replay::cut::{RecordedCall, RecordedResults};
use kairo_tool_runner::tool::{CallContext, Executor, Tool, ToolErrorKind, ToolSpec};
pub use kairo_tool_runner::tool::{CallResult, ToolError};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{AnswerSource, ForkAnswer, mocks::Mocks};

/// Longest time that a call may take, unless its tool allows more: a person who is asked has to think.
const PATIENCE: Duration = Duration::from_secs(600);

/// Somebody who says what a call comes to.
pub trait CallAnswerer: Send + Sync {
    /// Nothing where they do not know either.
    fn answer_call<'a>(&'a self, tool: &'a str, arguments: &'a Value) -> BoxFuture<'a, Option<CallResult>>;
}

/// The sources of answers to calls.
pub(crate) struct ToolAnswers {
    pub at: u64,
    pub recorded: Arc<RecordedResults>,
    pub mocks: Mocks,
    pub asked: Option<Arc<dyn CallAnswerer>>,
    pub told: mpsc::UnboundedSender<ForkAnswer>,
    /// The number of times each call was made, by tool and arguments.
    pub made: Mutex<BTreeMap<(String, String), usize>>,
}

/// A tool that looks like the one of the catalogue.
struct LockedTool {
    spec: ToolSpec,
    answering: Arc<ToolAnswers>,
}

/// All tools of a catalogue.
pub(crate) fn locked_tools(catalogue: Option<&ToolCatalogue>, answering: &Arc<ToolAnswers>) -> Vec<Arc<dyn Tool>> {
    let tools = catalogue.into_iter().flat_map(|catalogue| &catalogue.tools);
    let specs = tools.filter_map(|tool| ToolSpec::from_message(tool.clone(), Executor::ToolRunner));
    let locked = |spec: ToolSpec| -> Arc<dyn Tool> {
        let spec = ToolSpec { timeout: spec.timeout.max(PATIENCE), ..spec };
        Arc::new(LockedTool { spec, answering: answering.clone() })
    };
    specs.map(locked).collect()
}

impl Tool for LockedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, args: Value, context: CallContext) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            let tool = &self.spec.name;
            let (answer, result) = self.answering.answer_call(tool, &args).await;
            let action = context.action_id;
            let arguments = args;
            let _ = self.answering.told.send(ForkAnswer::Tool { action, tool: tool.clone(), arguments, answer });
            result
        })
    }

    fn outside_sources(&self, args: &Value, outcome: &CallResult) -> Vec<String> {
        let same = |call: &&RecordedCall| {
            call.tool == self.spec.name && call.arguments == *args && call_outcome(call) == *outcome
        };
        let recorded = self.answering.recorded.calls.iter().find(same);
        recorded.map(|call| call.result.outside.clone()).unwrap_or_default()
    }
}

impl ToolAnswers {
    async fn answer_call(&self, tool: &str, arguments: &Value) -> (AnswerSource, CallResult) {
        if let Some(result) = self.mocks.find(tool, arguments) {
            return (AnswerSource::Mocked, result);
        }
        let nth = self.next_repetition(tool, arguments);
        if let Some(call) = self.recorded.find_call(tool, arguments, self.at, nth) {
            return (AnswerSource::Recorded { at: call.at }, call_outcome(call));
        }
        let asked = match &self.asked {
            Some(asked) => asked.answer_call(tool, arguments).await,
            None => None,
        };
        match asked {
            Some(result) => (AnswerSource::Asked, result),
            None => (AnswerSource::Locked, Err(locked_error(tool))),
        }
    }

    fn next_repetition(&self, tool: &str, arguments: &Value) -> usize {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let times = made.entry((tool.to_owned(), arguments.to_string())).or_default();
        *times += 1;
        *times - 1
    }
}

fn call_outcome(call: &RecordedCall) -> CallResult {
    match &call.result.error {
        Some(error) if !call.result.ok => Err(ToolError::new(ToolErrorKind::from(error.kind.as_str()), &error.message)),
        _ => Ok(serde_json::from_str(&call.result.result).unwrap_or_default()),
    }
}

fn locked_error(tool: &str) -> ToolError {
    ToolError::unavailable(format!(
        "locked: {tool} was not called with these arguments before, and a fork does nothing"
    ))
}
