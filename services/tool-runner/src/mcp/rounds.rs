//! A call from its first request to its result: a server may want something of the client first (`input_required`), and then
//! the same request is sent again with it, or carry the call out as a task.

use rmcp::model::{
    CallToolRequestParams, CallToolResult, CreateTaskResult, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, JsonObject, UpdateTaskParams,
};
use serde_json::{Value, json};

use super::failure::Failure;
use super::handle::Connection;
use super::roots;
use super::tasks::{self, Look, Running};
use crate::tool::{CallContext, ToolError};

/// Times that a server may want something before one call ends, as in the library.
const MAX_ROUNDS: usize = 10;

/// The server's answer to one request of a call.
#[derive(Debug)]
pub enum Answered {
    Result(CallToolResult),
    /// It wants something first; nothing was done.
    Wants(InputRequiredResult),
    /// It carries the call out as a task.
    Task(CreateTaskResult),
    /// The tool is called as a task only, in the form of 2025-11-25; nothing was begun.
    AsTask,
}

impl Connection {
    /// Calls a tool, to its end.
    ///
    /// # Errors
    /// Every way in which there is no result.
    pub async fn call(&self, tool: &str, arguments: JsonObject, ctx: &CallContext) -> Result<CallToolResult, Failure> {
        let _entry = self.asking.enter(ctx);
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        for _ in 0..=MAX_ROUNDS {
            match self.request_call(params.clone(), ctx).await? {
                Answered::Result(result) => return Ok(result),
                Answered::Wants(InputRequiredResult { input_requests, request_state, .. }) => {
                    let answers = self.answers(input_requests.unwrap_or_default(), ctx).await?;
                    params.input_responses = Some(answers).filter(|answers| !answers.is_empty());
                    params.request_state = request_state;
                }
                Answered::Task(CreateTaskResult { task, .. }) => {
                    let running = Running { peer: &self.peer, id: task.task_id.clone(), is_extension: true };
                    running.pause(&task, ctx).await?;
                    return self.follow(running, ctx).await;
                }
                Answered::AsTask => {
                    let id = tasks::begin(&self.peer, &params, ctx).await?;
                    return self.follow(Running { peer: &self.peer, id, is_extension: false }, ctx).await;
                }
            }
        }
        Err(refused(format!("the server asked for more than {MAX_ROUNDS} times and did not answer")))
    }

    async fn follow(&self, running: Running<'_>, ctx: &CallContext) -> Result<CallToolResult, Failure> {
        let mut rounds = 0;
        loop {
            let task = match running.look(ctx).await? {
                Look::Over(result) => return result,
                Look::Working(task) => task,
                Look::Wants(task, requests) => {
                    rounds += 1;
                    if rounds <= MAX_ROUNDS {
                        let params = UpdateTaskParams::new(running.id.clone(), self.answers(requests, ctx).await?);
                        // If it did not arrive, the next look shows that it is still wanted.
                        let _ = self.peer.update_task(params).await;
                    }
                    task
                }
            };
            running.pause(&task, ctx).await?;
        }
    }

    /// Collects the client's answers to the requests of a server.
    async fn answers(&self, requests: InputRequests, ctx: &CallContext) -> Result<InputResponses, Failure> {
        let mut answers = InputResponses::new();
        for (key, request) in requests {
            let answer = ctx.cancel.run_until_cancelled(self.answer(request, ctx)).await.ok_or(Failure::Canceled)?;
            answers.insert(key, answer?);
        }
        Ok(answers)
    }

    async fn answer(&self, request: InputRequest, ctx: &CallContext) -> Result<Value, Failure> {
        let value = match request {
            InputRequest::ListRoots(_) => serde_json::to_value(roots::told(&self.roots)),
            InputRequest::Elicitation(request) => serde_json::to_value(self.asking.elicit(request.params, ctx).await),
            // It was not announced, so a server that keeps to the protocol does not want it.
            _ => return Err(refused("the server asks for a completion of a model, which it does not get".to_owned())),
        };
        Ok(value.unwrap_or_else(|_| json!({})))
    }
}

fn refused(why: String) -> Failure {
    Failure::Refused(ToolError::failed(why))
}
