//! `process.signal` and `process.write`: reaching a process while it runs. A supervisor does each once for each action
//! that asks, so that a call may be repeated.

use std::sync::Arc;

use kairo_core::ids::process_id;
use kairo_proto::v1::{self, process_request::Ask, tool_order::Order};
use kairo_proto::words::ProcessAnswered;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    Control, ControlTarget, control_tool,
    logged_process::{LoggedProcess, process_ended_error},
    orders::REPLY,
    process_schema,
    supervisors::SupervisorAnswer,
    unavailable_error,
};
use crate::{
    builtin::parse_args,
    tool::{CallContext, CallResult, ToolError, ToolSpec},
};

pub struct ProcessSignal {
    control: Arc<Control>,
    spec: ToolSpec,
}

pub struct ProcessWrite {
    control: Arc<Control>,
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct SignalArgs {
    signal: String,
}

#[derive(Deserialize)]
struct WriteArgs {
    text: String,
    #[serde(default)]
    close: bool,
}

control_tool!(ProcessSignal);
control_tool!(ProcessWrite);

impl ProcessSignal {
    pub fn new(control: Arc<Control>) -> Self {
        let description = "Sends a signal to a running process. To end one, use process.cancel.";
        let names = ["HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "KILL", "STOP", "CONT"];
        let schema = process_schema(json!({ "signal": { "type": "string", "enum": names } }), &["signal"]);
        let spec = control.build_spec("process.signal", description, schema);
        Self { control, spec }
    }

    async fn run(&self, args: Value, ctx: CallContext) -> CallResult {
        let args: SignalArgs = parse_args(args)?;
        let order = Order::Signal(v1::ProcessSignal { name: args.signal.clone() });
        let process_id = self.control.send_to_process(&ctx, order).await?;
        Ok(json!({ "process_id": process_id, "status": "sent", "signal": args.signal }))
    }
}

impl ProcessWrite {
    pub fn new(control: Arc<Control>) -> Self {
        let description = "Writes text to the standard input of a process that was spawned with \"stdin\": true. A line \
                           needs its \\n. With \"close\" the input ends there.";
        let more = json!({
            "text": { "type": "string" },
            "close": { "type": "boolean", "description": "Whether to close the input afterwards. Default false." },
        });
        let spec = control.build_spec("process.write", description, process_schema(more, &["text"]));
        Self { control, spec }
    }

    async fn run(&self, args: Value, ctx: CallContext) -> CallResult {
        let args: WriteArgs = parse_args(args)?;
        let bytes = args.text.len();
        let closed = args.close;
        let order = Order::Write(v1::ProcessWrite { text: args.text, close: args.close });
        let process_id = self.control.send_to_process(&ctx, order).await?;
        Ok(json!({ "process_id": process_id, "status": "written", "bytes": bytes, "closed": closed }))
    }
}

impl Control {
    /// Has the process's supervisor do something to it; its id.
    async fn send_to_process(&self, ctx: &CallContext, order: Order) -> Result<String, ToolError> {
        let target = ControlTarget::from_context(ctx, "process")?;
        match self.orders_are_known().await.map_err(unavailable_error)? {
            true => self.send_order(&target, order).await?,
            false => self.send_request(&target, order).await?,
        }
        Ok(process_id(target.action).to_string())
    }

    async fn send_order(&self, target: &ControlTarget, order: Order) -> Result<(), ToolError> {
        let placed = match self.find_order(target).await.map_err(unavailable_error)? {
            // What came of it counts, whatever became of the process since.
            Some(earlier) => earlier,
            None => {
                let spawned = self.require_running(target).await?;
                // Nobody would say what came of it.
                if !self.liveness.is_held(&self.bus, &spawned.supervisor, target.action).await {
                    return Err(self.explain_absence(target, &spawned.supervisor).await?);
                }
                self.write_order(target, &spawned.supervisor, order).await.map_err(unavailable_error)?
            }
        };
        match timeout(REPLY, self.wait_for_reply(target, placed.sequence)).await {
            Ok(reply) => match reply.outcome_word() {
                ProcessAnswered::Done => Ok(()),
                ProcessAnswered::Refused => Err(ToolError::failed(reply.reason)),
                ProcessAnswered::NotHere | ProcessAnswered::NotBegun => {
                    Err(self.explain_absence(target, &reply.supervisor).await?)
                }
                ProcessAnswered::Unknown(_) => Err(silent_supervisor_error(&placed.by)),
            },
            Err(_) => Err(silent_supervisor_error(&placed.by)),
        }
    }

    /// Sends an order as a request, in a log whose readers know no orders.
    async fn send_request(&self, target: &ControlTarget, order: Order) -> Result<(), ToolError> {
        let spawned = self.require_running(target).await?;
        let ask = match order {
            Order::Stop(stop) => Ask::Stop(stop),
            Order::Signal(signal) => Ask::Signal(signal),
            Order::Write(write) => Ask::Write(write),
        };
        match self.ask_supervisor(&spawned.supervisor, target, ask).await {
            SupervisorAnswer::Done(_) => Ok(()),
            SupervisorAnswer::Refused(reason) => Err(ToolError::failed(reason)),
            SupervisorAnswer::Silence => Err(silent_supervisor_error(&spawned.supervisor)),
            SupervisorAnswer::NotHere | SupervisorAnswer::NotBegun | SupervisorAnswer::Nobody => {
                Err(self.explain_absence(target, &spawned.supervisor).await?)
            }
        }
    }

    /// Builds the error of a call on a process that the supervisor no longer runs: nothing was done.
    async fn explain_absence(&self, target: &ControlTarget, supervisor: &str) -> Result<ToolError, ToolError> {
        Ok(match self.read_process(target).await? {
            LoggedProcess::Ended(exited) => process_ended_error(&exited),
            _ => ToolError::failed(format!(
                "the supervisor {supervisor} is gone, and the process with it; nothing was done, and its end will be \
                 known soon"
            )),
        })
    }
}

fn silent_supervisor_error(supervisor: &str) -> ToolError {
    ToolError::in_doubt(format!(
        "the supervisor {supervisor} did not answer in time: it may have been done or not; look at process.status"
    ))
}
