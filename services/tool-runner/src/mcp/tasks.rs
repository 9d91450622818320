//! Calls that a server carries out as a task: it answers at once that it has begun, and is asked how far it is until it ends.
//!
//! There are two forms: the extension `io.modelcontextprotocol/tasks` (2026-07-28), in which the server decides that a call
//! becomes a task, and that of 2025-11-25, in which the client wants it and a tool may require it.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, CancelTaskParams, ClientRequest, CustomRequest, CustomResult, DetailedTask,
    ErrorCode, GetTaskParams, JsonObject, ServerResult, Task, TaskPayload, TaskStatus,
};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::failure::{CallFailure, classify_error};
use super::server_handle::ACTION_ID_KEY;
use crate::tool::{CallContext, ProgressReport, ToolError};

/// Shortest and longest time between two looks at a task, whatever its server suggests.
const POLL: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(10);
/// Time between two looks where the server suggests none.
const USUAL_POLL: Duration = Duration::from_secs(1);
/// Looks in a row that may fail before the task counts as lost.
const MAX_FAILED_LOOKS: usize = 5;
/// Time limit for telling a server that a task is no longer wanted.
const CANCELING: Duration = Duration::from_secs(5);

/// The state of a task when it was polled.
#[derive(Debug)]
pub enum PolledTask {
    /// Still running.
    Working(Task),
    /// Still running, and it wants this input from the client.
    Wants(Task, rmcp::model::InputRequests),
    Over(Result<CallToolResult, CallFailure>),
}

/// A task that has begun, in either form.
pub struct RunningTask<'c> {
    pub peer: &'c Peer<RoleClient>,
    pub id: String,
    /// True for a task of the extension, false for one of the 2025-11-25 form.
    pub is_extension: bool,
}

impl RunningTask<'_> {
    /// Waits until the next look is due, or the call is canceled: then the task is, too.
    ///
    /// # Errors
    /// `canceled`.
    pub async fn wait_for_next_poll(&self, task: &Task, ctx: &CallContext) -> Result<(), CallFailure> {
        if let Some(message) = &task.status_message {
            ctx.progress.report(ProgressReport { fraction: None, message: Some(message.clone()) });
        }
        let wanted = task.poll_interval_ms.map_or(USUAL_POLL, Duration::from_millis);
        if ctx.cancel.run_until_cancelled(sleep(wanted.clamp(*POLL.start(), *POLL.end()))).await.is_some() {
            return Ok(());
        }
        self.cancel().await;
        Err(CallFailure::Canceled)
    }

    /// Looks how far it is.
    pub async fn poll_task(&self, ctx: &CallContext) -> Result<PolledTask, CallFailure> {
        let mut failed = 0;
        loop {
            let looked = ctx.cancel.run_until_cancelled(self.get_task()).await;
            let error = match looked {
                None => {
                    self.cancel().await;
                    return Err(CallFailure::Canceled);
                }
                Some(Ok(task)) => return self.read_task(task).await,
                Some(Err(error)) => error,
            };
            failed += 1;
            // The server answered, so it will not say anything else.
            let is_final = matches!(error, ServiceError::McpError(_));
            if is_final || failed >= MAX_FAILED_LOOKS {
                return Err(match classify_error(&error) {
                    CallFailure::Refused(error) => {
                        CallFailure::Lost(format!("its task cannot be looked at: {}", error.message))
                    }
                    CallFailure::NotSent(why) => CallFailure::Lost(why),
                    other => other,
                });
            }
            sleep(*POLL.start()).await;
        }
    }

    async fn read_task(&self, task: DetailedTask) -> Result<PolledTask, CallFailure> {
        let DetailedTask { task, payload, .. } = task;
        Ok(match payload {
            TaskPayload::Working => PolledTask::Working(task),
            TaskPayload::InputRequired { input_requests } => PolledTask::Wants(task, input_requests),
            TaskPayload::Completed { result } if self.is_extension => PolledTask::Over(parse_result(result.into())),
            TaskPayload::Completed { .. } => PolledTask::Over(self.get_result().await),
            TaskPayload::Failed { error } => PolledTask::Over(Err(task_failure(&error))),
            TaskPayload::Cancelled => PolledTask::Over(Err(CallFailure::Refused(ToolError::failed(
                "the server canceled the task; what it did until then stays done",
            )))),
            // A later version of the library: whatever it is, the task is not known to be over.
            _ => PolledTask::Working(task),
        })
    }

    async fn get_task(&self) -> Result<DetailedTask, ServiceError> {
        if self.is_extension {
            return Ok(self.peer.get_task(GetTaskParams::new(self.id.clone())).await?.task);
        }
        let LegacyTask { task_id, status, status_message, poll_interval } = self.request_legacy("tasks/get").await?;
        let mut task = Task::new(task_id, status, "", "");
        task.status_message = status_message;
        task.poll_interval_ms = poll_interval;
        let payload = match status {
            TaskStatus::Completed => TaskPayload::Completed { result: JsonObject::new() },
            // What failed is told by the same request as what was done.
            TaskStatus::Failed => TaskPayload::Completed { result: JsonObject::new() },
            TaskStatus::Cancelled => TaskPayload::Cancelled,
            // It asks by a request of its own.
            _ => TaskPayload::Working,
        };
        Ok(DetailedTask::new(task, payload))
    }

    async fn get_result(&self) -> Result<CallToolResult, CallFailure> {
        let value: Value = self.request_legacy("tasks/result").await.map_err(|error| match classify_error(&error) {
            CallFailure::NotSent(why) => CallFailure::Lost(why),
            other => other,
        })?;
        parse_result(value)
    }

    /// A request of the former form, which the library does not know.
    async fn request_legacy<T: DeserializeOwned>(&self, method: &str) -> Result<T, ServiceError> {
        let request = custom_request(method, json!({ "taskId": self.id }));
        read_custom(self.peer.send_request(request).await?)
    }

    async fn cancel(&self) {
        let canceled = async {
            match self.is_extension {
                true => self.peer.cancel_task(CancelTaskParams::new(self.id.clone())).await,
                false => self.request_legacy::<Value>("tasks/cancel").await.map(drop),
            }
        };
        // Whether it heard it does not matter any more.
        let _ = timeout(CANCELING, canceled).await;
    }
}

/// A task of 2025-11-25.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LegacyTask {
    task_id: String,
    status: TaskStatus,
    status_message: Option<String>,
    poll_interval: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct LegacyTaskStart {
    task: LegacyTask,
}

/// Returns true if this refusal says that the tool must be called as a task of 2025-11-25: nothing was begun.
pub fn error_requires_task(error: &ServiceError) -> bool {
    matches!(error, ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND)
}

/// Returns true if this result says that the tool must be called as a task: servers made with the SDK for TypeScript
/// put the error of the protocol into a result.
pub fn result_requires_task(result: &CallToolResult) -> bool {
    let text = result.content.first().and_then(|block| block.as_text());
    let is_required = text.is_some_and(|text| text.text.starts_with("MCP error -32601:") && text.text.contains("task"));
    result.is_error == Some(true) && is_required
}

/// Begins a call as a task of 2025-11-25; its id.
///
/// # Errors
/// As any call.
pub async fn begin_legacy_task(
    peer: &Peer<RoleClient>,
    params: &CallToolRequestParams,
    ctx: &CallContext,
) -> Result<String, CallFailure> {
    let mut params = serde_json::to_value(params).unwrap_or_default();
    if let Some(params) = params.as_object_mut() {
        params.insert("task".to_owned(), json!({}));
        params.insert("_meta".to_owned(), json!({ ACTION_ID_KEY: ctx.action_id }));
    }
    let sent = peer.send_request(custom_request("tools/call", params)).await;
    let begun: LegacyTaskStart = sent.and_then(read_custom).map_err(|error| classify_error(&error))?;
    Ok(begun.task.task_id)
}

fn custom_request(method: &str, params: Value) -> ClientRequest {
    ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)))
}

fn read_custom<T: DeserializeOwned>(result: ServerResult) -> Result<T, ServiceError> {
    let value = match result {
        ServerResult::CustomResult(CustomResult(value)) => Ok(value),
        other => serde_json::to_value(other),
    };
    value.and_then(serde_json::from_value).map_err(|_| ServiceError::UnexpectedResponse)
}

fn parse_result(value: Value) -> Result<CallToolResult, CallFailure> {
    serde_json::from_value(value)
        .map_err(|_| CallFailure::Lost("its task ended with something other than a result".to_owned()))
}

fn task_failure(error: &JsonObject) -> CallFailure {
    let message = error.get("message").and_then(Value::as_str).unwrap_or("the server did not say why");
    CallFailure::Refused(ToolError::failed(message.chars().take(500).collect::<String>()))
}
