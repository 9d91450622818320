//! `POST /v1/commands`: a direct order to an agent's actions.

use kairo_core::{
    ids::Name,
    subjects::{Route, USER_COMMAND},
};
use kairo_proto::{Body, v1::UserCommand};
use serde_json::Value;
use uuid::Uuid;

use super::entering::Entering;
use crate::{
    config::GatewayConfig,
    fields::{CLIENT_ID, Fields, NAME, UUID, client_id, name, one_of, parsed, text},
    problem::Problem,
};

const COMMANDS: [&str; 1] = ["cancel"];

#[derive(Debug)]
pub struct Command {
    user: Name,
    agent: Name,
    command: &'static str,
    target: Target,
    command_id: Option<String>,
}

/// What the order is about.
#[derive(Debug)]
enum Target {
    Action(Uuid),
    Process(Uuid),
}

impl Entering for Command {
    const KIND: &'static str = "command";
    const ID: &'static str = "command_id";
    const ROUTE: Route = USER_COMMAND;

    fn read(mut fields: Fields<Value>, _: &GatewayConfig) -> Result<Self, Problem> {
        let user = fields.required("user", NAME, text(name));
        let agent = fields.required("agent", NAME, text(name));
        let command = fields.required("command", COMMANDS.join(" or "), text(one_of(&COMMANDS)));
        // Whether one is named is told apart from whether it can be read: what is wrong is told once.
        let named = (fields.has("action_id"), fields.has("process_id"));
        let action = fields.optional("action_id", UUID, text(parsed)).map(Target::Action);
        let process = fields.optional("process_id", UUID, text(parsed)).map(Target::Process);
        if named.0 == named.1 {
            fields.reject("action_id", "either action_id or process_id: the one thing to cancel");
        }
        let command_id = fields.optional("command_id", CLIENT_ID, text(client_id));
        fields.complete(|| {
            let (user, agent, command, target) = (user?, agent?, command?, action.or(process)?);
            Some(Self { user, agent, command, target, command_id })
        })
    }

    fn user(&self) -> &Name {
        &self.user
    }

    fn id(&self) -> Option<&str> {
        self.command_id.as_deref()
    }

    fn body(self, id: &str) -> Body {
        let command = UserCommand {
            command_id: id.to_owned(),
            user: self.user.to_string(),
            agent: self.agent.to_string(),
            command: self.command.to_owned(),
            ..Default::default()
        };
        match self.target {
            Target::Action(action) => UserCommand { action_id: action.to_string(), ..command },
            Target::Process(process) => UserCommand { process_id: process.to_string(), ..command },
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    fn read(rest: &str) -> Result<Body, Vec<String>> {
        let body = format!(r#"{{"user": "ann", "agent": "a", "command": "cancel"{rest}}}"#);
        let command = Command::read(Fields::from_json(body.as_bytes()).unwrap(), &GatewayConfig::default());
        let errors = |problem: Problem| problem.errors.into_iter().map(|error| error.field).collect();
        command.map(|command| command.body("c-1")).map_err(errors)
    }

    #[test]
    fn one_thing_is_cancelled() {
        let Ok(Body::UserCommand(command)) = read(&format!(r#", "process_id": "{ID}""#)) else { panic!() };
        assert_eq!((command.action_id.as_str(), command.process_id.as_str()), ("", ID));
        let Ok(Body::UserCommand(command)) = read(&format!(r#", "action_id": "{ID}", "process_id": null"#)) else {
            panic!()
        };
        assert_eq!((command.action_id.as_str(), command.process_id.as_str()), (ID, ""));
        assert_eq!(read("").unwrap_err(), ["action_id"]);
        assert_eq!(read(&format!(r#", "action_id": "{ID}", "process_id": "{ID}""#)).unwrap_err(), ["action_id"]);
        assert_eq!(read(r#", "process_id": "7""#).unwrap_err(), ["process_id"]);
    }

    #[test]
    fn everything_wrong_is_named() {
        let body = br#"{"user": 1, "agent": "", "command": "dance", "command_id": "", "x": 1}"#;
        let problem = Command::read(Fields::from_json(body).unwrap(), &GatewayConfig::default()).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["user", "agent", "command", "action_id", "command_id", "x"]);
    }
}
