//! `tools.now`: what time it is.

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::{Timestamp, Zoned};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{parse_args, time_zone};
use crate::tool::{CallContext, CallResult, Executor, Tool, ToolError, ToolSpec};

/// The tool's name.
pub const NAME: &str = "tools.now";

/// The tool, with the time zone that calls without one get.
#[derive(Debug)]
pub struct NowTool {
    spec: ToolSpec,
    default_zone: String,
}

impl NowTool {
    /// `default_zone` is the IANA name of the configured time zone.
    pub fn new(default_zone: &str, timeout: Duration) -> Self {
        Self {
            spec: ToolSpec {
                name: NAME.to_owned(),
                description: format!("The current date and time, in time_zone (IANA name, default {default_zone})."),
                schema: json!({
                    "type": "object",
                    "properties": {
                        "time_zone": {"type": "string", "description": "IANA time zone such as Europe/Berlin"},
                    },
                    "additionalProperties": false,
                }),
                idempotent: true,
                timeout,
                executor: Executor::ToolRunner,
                needs_approval: false,
                needs_approval_with: Vec::new(),
                acts_outside: false,
                definition: None,
            },
            default_zone: default_zone.to_owned(),
        }
    }
}

#[derive(Deserialize)]
struct NowArgs {
    time_zone: Option<String>,
}

impl Tool for NowTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        let result = parse_args::<NowArgs>(args).and_then(|args| {
            let zone = args.time_zone.as_deref().unwrap_or(&self.default_zone);
            // The clock and not `ctx.now`: this tool exists to say what time it is when it runs.
            describe_time(ctx.begun, zone)
        });
        Box::pin(std::future::ready(result))
    }
}

fn describe_time(now: Timestamp, zone: &str) -> Result<Value, ToolError> {
    let now = now.to_zoned(time_zone(zone)?);
    Ok(json!({
        "now": rfc3339(&now),
        "date": now.date().to_string(),
        "time": now.strftime("%H:%M:%S").to_string(),
        "weekday": now.strftime("%A").to_string(),
        "time_zone": zone,
        "unix": now.timestamp().as_second(),
    }))
}

/// Date and time with the offset and without fractions of a second, which nobody asked for.
pub(super) fn rfc3339(time: &Zoned) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolErrorKind;

    #[test]
    fn the_answer_holds_every_form() {
        let now: Timestamp = "2026-03-28T23:30:15.5Z".parse().unwrap();
        assert_eq!(
            describe_time(now, "Europe/Berlin").unwrap(),
            json!({
                "now": "2026-03-29T00:30:15+01:00",
                "date": "2026-03-29",
                "time": "00:30:15",
                "weekday": "Sunday",
                "time_zone": "Europe/Berlin",
                "unix": 1_774_740_615,
            })
        );
        assert_eq!(describe_time(now, "UTC").unwrap()["now"], "2026-03-28T23:30:15+00:00");
    }

    #[test]
    fn an_unknown_zone_is_the_callers_mistake() {
        let error = describe_time(Timestamp::UNIX_EPOCH, "Mars").unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
    }
}
