//! `process.signal` and `process.write`: reaching a process while it runs. A supervisor does each once for each action
//! that asks, so that a call may be repeated.

use std::sync::Arc;

use kairo_proto::v1::{self, process_request::Ask};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Control, Target, control_tool, process_schema,
    supervisors::Answer,
    watched::{Process, over},
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
        let spec = control.spec("process.signal", description, schema);
        Self { control, spec }
    }

    async fn run(&self, args: Value, ctx: CallContext) -> CallResult {
        let args: SignalArgs = parse_args(args)?;
        let ask = Ask::Signal(v1::ProcessSignal { name: args.signal.clone() });
        let process_id = self.control.send(&ctx, ask).await?;
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
        let spec = control.spec("process.write", description, process_schema(more, &["text"]));
        Self { control, spec }
    }

    async fn run(&self, args: Value, ctx: CallContext) -> CallResult {
        let args: WriteArgs = parse_args(args)?;
        let (bytes, closed) = (args.text.len(), args.close);
        let ask = Ask::Write(v1::ProcessWrite { text: args.text, close: args.close });
        let process_id = self.control.send(&ctx, ask).await?;
        Ok(json!({ "process_id": process_id, "status": "written", "bytes": bytes, "closed": closed }))
    }
}

impl Control {
    /// Has the process's supervisor do something to it; its id.
    async fn send(&self, ctx: &CallContext, ask: Ask) -> Result<String, ToolError> {
        let target = Target::of(ctx, "process")?;
        let spawned = self.running(&target).await?;
        match self.ask(&spawned.supervisor, &target, ask).await {
            Answer::Done(_) => Ok(spawned.process_id),
            Answer::Refused(reason) => Err(ToolError::failed(reason)),
            Answer::Silence => Err(ToolError::in_doubt(format!(
                "the supervisor {} did not answer in time: it may have been done or not; look at process.status",
                spawned.supervisor
            ))),
            Answer::NotHere | Answer::NotBegun | Answer::Nobody => Err(match self.process(&target).await? {
                Process::Ended(exited) => over(&exited),
                _ => ToolError::failed(format!(
                    "the supervisor {} is gone, and the process with it; nothing was done, and its end will be known \
                     soon",
                    spawned.supervisor
                )),
            }),
        }
    }
}
