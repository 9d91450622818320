//! A call from its first request to its result: a server may want something of the client first (`input_required`), and then
//! the same request is sent again with it, or carry the call out as a task.

use rmcp::model::{
    CallToolRequestParams, CallToolResult, CreateTaskResult, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, JsonObject, UpdateTaskParams,
};
use serde_json::{Value, json};

use super::failure::CallFailure;
use super::roots;
use super::server_handle::McpConnection;
use super::tasks::{self, PolledTask, RunningTask};
use crate::tool::{CallContext, ToolError};

/// Times that a server may want something before one call ends, as in the library.
const MAX_ROUNDS: usize = 10;

/// The server's answer to one request of a call.
#[derive(Debug)]
pub enum CallAnswer {
    Result(CallToolResult),
    /// It wants something first; nothing was done.
    Wants(InputRequiredResult),
    /// It carries the call out as a task.
    Task(CreateTaskResult),
    /// The tool is called as a task only, in the form of 2025-11-25; nothing was begun.
    AsTask,
}

impl McpConnection {
    /// Calls a tool, to its end.
    ///
    /// # Errors
    /// Every way in which there is no result.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: JsonObject,
        ctx: &CallContext,
    ) -> Result<CallToolResult, CallFailure> {
        let _entry = self.asking.register_call(ctx);
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        for _ in 0..=MAX_ROUNDS {
            match self.request_call(params.clone(), ctx).await? {
                CallAnswer::Result(result) => return Ok(result),
                CallAnswer::Wants(InputRequiredResult { input_requests, request_state, .. }) => {
                    let answers = self.answer_requests(input_requests.unwrap_or_default(), ctx).await?;
                    params.input_responses = Some(answers).filter(|answers| !answers.is_empty());
                    params.request_state = request_state;
                }
                CallAnswer::Task(CreateTaskResult { task, .. }) => {
                    let running = RunningTask { peer: &self.peer, id: task.task_id.clone(), is_extension: true };
                    running.wait_for_next_poll(&task, ctx).await?;
                    return self.follow_task(running, ctx).await;
                }
                CallAnswer::AsTask => {
                    let id = tasks::begin_legacy_task(&self.peer, &params, ctx).await?;
                    return self.follow_task(RunningTask { peer: &self.peer, id, is_extension: false }, ctx).await;
                }
            }
        }
        Err(refusal_failure(format!("the server asked for more than {MAX_ROUNDS} times and did not answer")))
    }

    async fn follow_task(&self, running: RunningTask<'_>, ctx: &CallContext) -> Result<CallToolResult, CallFailure> {
        let mut rounds = 0;
        loop {
            let task = match running.poll_task(ctx).await? {
                PolledTask::Over(result) => return result,
                PolledTask::Working(task) => task,
                PolledTask::Wants(task, requests) => {
                    rounds += 1;
                    if rounds <= MAX_ROUNDS {
                        let params =
                            UpdateTaskParams::new(running.id.clone(), self.answer_requests(requests, ctx).await?);
                        // If it did not arrive, the next look shows that it is still wanted.
                        let _ = self.peer.update_task(params).await;
                    }
                    task
                }
            };
            running.wait_for_next_poll(&task, ctx).await?;
        }
    }

    /// Collects the client's answers to the requests of a server.
    async fn answer_requests(&self, requests: InputRequests, ctx: &CallContext) -> Result<InputResponses, CallFailure> {
        let mut answers = InputResponses::new();
        for (key, request) in requests {
            let answer =
                ctx.cancel.run_until_cancelled(self.answer_request(request, ctx)).await.ok_or(CallFailure::Canceled)?;
            answers.insert(key, answer?);
        }
        Ok(answers)
    }

    async fn answer_request(&self, request: InputRequest, ctx: &CallContext) -> Result<Value, CallFailure> {
        let value = match request {
            InputRequest::ListRoots(_) => serde_json::to_value(roots::list_result(&self.roots)),
            InputRequest::Elicitation(request) => serde_json::to_value(self.asking.elicit(request.params, ctx).await),
            // It was not announced, so a server that keeps to the protocol does not want it.
            _ => {
                return Err(refusal_failure(
                    "the server asks for a completion of a model, which it does not get".to_owned(),
                ));
            }
        };
        Ok(value.unwrap_or_else(|_| json!({})))
    }
}

fn refusal_failure(why: String) -> CallFailure {
    CallFailure::Refused(ToolError::failed(why))
}
