//! `POST /v1/commands`: a direct order to an agent.

use kairo_core::{
    ids::Name,
    subjects::{Route, USER_COMMAND},
    vocabulary::{ANSWERS, SHARED_HOOKS, SUBMODULES, TEAMS},
};
use kairo_proto::{
    Body,
    v1::{Submodule, UserCommand},
    words::OrderedCommand,
};
use kairo_read_model::OwnedKind;
use serde_json::Value;
use uuid::Uuid;

use super::{Gateway, agents, ingest::UserInput, teams::BudgetChange};
use crate::{
    auth::{Caller, Scope},
    config::GatewayConfig,
    fields::{CLIENT_ID, NAME, RequestFields, UUID, json_text, parse_client_id, parse_name, parse_text},
    ownership::OrderSubject,
    problem::Problem,
};

/// The orders, and the fields that can name what each is about.
pub const COMMANDS: [(&str, &[&str]); 10] = [
    ("cancel", &["action_id", "process_id", "chain_id", "task_id"]),
    ("pause", &["task_id", "team"]),
    ("resume", &["task_id", "team"]),
    ("run", &["task_id"]),
    ("share", &["task_id"]),
    ("unshare", &["task_id"]),
    ("archive", &["thread_id", "team"]),
    ("unarchive", &["thread_id"]),
    ("add", &["submodule"]),
    ("remove", &["submodule"]),
];

#[derive(Clone, Debug)]
pub struct CommandInput {
    user: Name,
    agent: Name,
    command: &'static str,
    target: CommandTarget,
    command_id: Option<String>,
    /// Of a team that is resumed.
    budget: BudgetChange,
    /// True if the action may be a call that waits for consent.
    includes_consents: bool,
}

/// The target of the order.
#[derive(Clone, Debug)]
enum CommandTarget {
    Action(Uuid),
    Process(Uuid),
    Chain(Uuid),
    Task(Uuid),
    Thread(Name),
    /// The team that the agent leads; it bears the agent's name.
    Team(Name),
    /// One that the agent is to have or, to remove it, the name of one that it has.
    Submodule(Box<Submodule>),
}

/// Reads the one field that names what the order is about; `allowed` are those that this order knows.
fn parse_target(
    fields: &mut RequestFields<Value>,
    command: &str,
    allowed: &'static [&'static str],
) -> Option<CommandTarget> {
    // Whether one is named is told apart from whether it can be read: what is wrong is told once.
    let named = TARGETS.into_iter().filter(|field| fields.has(field)).count();
    let [action, process, chain, task, thread, team, submodule] = TARGETS;
    let found = [
        (action, fields.optional(action, UUID, json_text(parse_text)).map(CommandTarget::Action)),
        (process, fields.optional(process, UUID, json_text(parse_text)).map(CommandTarget::Process)),
        (chain, fields.optional(chain, UUID, json_text(parse_text)).map(CommandTarget::Chain)),
        (task, fields.optional(task, UUID, json_text(parse_text)).map(CommandTarget::Task)),
        (thread, fields.optional(thread, NAME, json_text(parse_name)).map(CommandTarget::Thread)),
        (team, fields.optional(team, NAME, json_text(parse_name)).map(CommandTarget::Team)),
        (submodule, parse_submodule_target(fields, command).map(CommandTarget::Submodule)),
    ];
    let expected = || format!("{}: the one thing to {command}", describe_alternatives(allowed));
    if named != 1 {
        fields.reject(allowed.first().copied().unwrap_or_default(), expected());
        return None;
    }
    let (field, target) = found.into_iter().find_map(|(field, target)| Some((field, target?)))?;
    if !allowed.contains(&field) {
        fields.reject(field, expected());
    }
    Some(target)
}

/// The submodule to add, whole, or to remove, by its name.
fn parse_submodule_target(fields: &mut RequestFields<Value>, command: &str) -> Option<Box<Submodule>> {
    let given = fields.optional("submodule", "a JSON object", |it: &Value| it.is_object().then(|| it.clone()))?;
    let read = RequestFields::from_nested(&given)
        .and_then(|fields| agents::parse_submodule(fields, command != OrderedCommand::Remove.as_str()));
    read.map_err(|problem| fields.add_nested_errors("submodule", problem)).ok().map(Box::new)
}

pub const TARGETS: [&str; 7] = ["action_id", "process_id", "chain_id", "task_id", "thread_id", "team", "submodule"];

fn describe_alternatives(fields: &[&str]) -> String {
    match fields {
        [only] => (*only).to_owned(),
        several => format!("exactly one of {}", several.join(", ")),
    }
}

impl UserInput for CommandInput {
    const KIND: &'static str = "command";
    const ID: &'static str = "command_id";
    const ROUTE: Route = USER_COMMAND;

    fn from_fields(mut fields: RequestFields<Value>, _: &GatewayConfig) -> Result<Self, Problem> {
        let user = fields.required("user", NAME, json_text(parse_name));
        let agent = fields.required("agent", NAME, json_text(parse_name));
        let words = COMMANDS.map(|(command, _)| command).join(", ");
        let known = |word: &str| COMMANDS.into_iter().find(|(command, _)| *command == word);
        let command = fields.required("command", format!("one of {words}"), json_text(known));
        // What is no order may be about anything.
        let (word, allowed) = command.unwrap_or(("do it to", &TARGETS));
        let target = parse_target(&mut fields, word, allowed);
        let budget = BudgetChange::from_fields(&mut fields);
        if let Some(field) =
            budget.first_field().filter(|_| !matches!((word, &target), ("resume", Some(CommandTarget::Team(_)))))
        {
            fields.reject("command", format!("resume of a team, since {field} is given"));
        }
        let command_id = fields.optional("command_id", CLIENT_ID, json_text(parse_client_id));
        if let (Some(agent), Some(CommandTarget::Team(team))) = (&agent, &target)
            && agent != team
        {
            fields.reject("team", format!("{agent}, the agent: a team has the name of the agent that leads it"));
        }
        fields.complete(|| {
            let (user, agent, (command, _), target) = (user?, agent?, command?, target?);
            Some(Self { user, agent, command, target, command_id, budget, includes_consents: false })
        })
    }

    fn user(&self) -> &Name {
        &self.user
    }

    fn agent(&self) -> Option<&Name> {
        Some(&self.agent)
    }

    fn id(&self) -> Option<&str> {
        self.command_id.as_deref()
    }

    /// A shared hook sees what concerns other users.
    fn required_scope(&self) -> Scope {
        match OrderedCommand::from(self.command) {
            OrderedCommand::Share | OrderedCommand::Unshare => Scope::Admin,
            // It changes what the agent is.
            OrderedCommand::Add | OrderedCommand::Remove => Scope::Admin,
            _ => Scope::Write,
        }
    }

    async fn prepare(&mut self, gateway: &Gateway, caller: &Caller) -> Result<(), Problem> {
        if matches!(self.target, CommandTarget::Submodule(_)) {
            return match gateway.bus.current_epoch().await? < SUBMODULES {
                true => {
                    let detail = format!("there are submodules from epoch {SUBMODULES} on: see kairo fleet promote");
                    Err(Problem::conflict(detail))
                }
                false => Ok(()),
            };
        }
        if self.required_scope() == Scope::Admin && gateway.bus.current_epoch().await? < SHARED_HOOKS {
            let detail = format!("hooks are shared from epoch {SHARED_HOOKS} on: see kairo fleet promote");
            return Err(Problem::conflict(detail));
        }
        if matches!(self.target, CommandTarget::Team(_)) && gateway.bus.current_epoch().await? < TEAMS {
            let detail = format!("there are teams from epoch {TEAMS} on: see kairo fleet promote");
            return Err(Problem::conflict(detail));
        }
        if let CommandTarget::Team(team) = &self.target {
            self.budget.store_for_team(gateway, caller, team, &self.user).await?;
        }
        self.includes_consents =
            matches!(self.target, CommandTarget::Action(_)) && gateway.bus.current_epoch().await? >= ANSWERS;
        Ok(())
    }

    fn concerned_object(&self) -> Option<OrderSubject> {
        let [action, process, chain, task, thread, team, _] = TARGETS;
        Some(match &self.target {
            CommandTarget::Action(id) => OrderSubject::Thing(action, OwnedKind::Action, *id),
            CommandTarget::Process(id) => OrderSubject::Thing(process, OwnedKind::Process, *id),
            CommandTarget::Chain(id) => OrderSubject::Thing(chain, OwnedKind::Chain, *id),
            CommandTarget::Task(id) => OrderSubject::Thing(task, OwnedKind::Task, *id),
            CommandTarget::Thread(id) => OrderSubject::Thread(thread, id.to_string()),
            CommandTarget::Team(id) => OrderSubject::Team(team, id.to_string()),
            CommandTarget::Submodule(_) => return None,
        })
    }

    /// Compares without regard to the epoch at the time of the first command.
    fn is_the_same_as(&self, stored: &Body, id: &str) -> bool {
        let includes_consents = UserCommand::of(stored).is_some_and(|stored| stored.includes_consents);
        Self { includes_consents, ..self.clone() }.into_body(id) == *stored
    }

    fn into_body(self, id: &str) -> Body {
        let command = UserCommand {
            command_id: id.to_owned(),
            user: self.user.to_string(),
            agent: self.agent.to_string(),
            command: self.command.to_owned(),
            includes_consents: self.includes_consents,
            ..Default::default()
        };
        match self.target {
            CommandTarget::Action(action) => UserCommand { action_id: action.to_string(), ..command },
            CommandTarget::Process(process) => UserCommand { process_id: process.to_string(), ..command },
            CommandTarget::Chain(chain) => UserCommand { chain_id: chain.to_string(), ..command },
            CommandTarget::Task(task) => UserCommand { task_id: task.to_string(), ..command },
            CommandTarget::Thread(thread) => UserCommand { thread_id: thread.to_string(), ..command },
            CommandTarget::Team(team) => UserCommand { team: team.to_string(), ..command },
            CommandTarget::Submodule(submodule) => UserCommand { submodule: Some(*submodule), ..command },
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::FieldError;

    const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    fn read(command: &str, rest: &str) -> Result<UserCommand, Vec<FieldError>> {
        let body = format!(r#"{{"user": "ann", "agent": "a", "command": "{command}"{rest}}}"#);
        let fields = RequestFields::from_json(body.as_bytes()).unwrap();
        let command = CommandInput::from_fields(fields, &GatewayConfig::default()).map_err(|problem| problem.errors)?;
        let Body::UserCommand(command) = command.into_body("c-1") else { panic!() };
        Ok(command)
    }

    fn wrong_fields(command: &str, rest: &str) -> Vec<String> {
        read(command, rest).unwrap_err().into_iter().map(|error| error.field).collect()
    }

    fn named(field: &str) -> String {
        if field == "submodule" {
            return r#", "submodule": {"name": "critic", "prompt": "Find fault."}"#.to_owned();
        }
        let value = match field {
            "thread_id" => "dinner",
            "team" => "a",
            _ => ID,
        };
        format!(r#", "{field}": "{value}""#)
    }

    #[test]
    fn an_order_is_about_one_thing_of_a_kind_that_it_knows() {
        for (word, allowed) in COMMANDS {
            for field in TARGETS {
                let only_named = r#", "submodule": {"name": "critic"}"#.to_owned();
                let told =
                    read(word, &if (word, field) == ("remove", "submodule") { only_named } else { named(field) });
                if !allowed.contains(&field) {
                    assert_eq!(wrong_fields(word, &named(field)), [field], "{word}");
                    continue;
                }
                let command = told.unwrap();
                let of = |target: &str| command_field(&command, target).to_owned();
                let others: Vec<String> = TARGETS.into_iter().filter(|other| *other != field).map(of).collect();
                assert!(!of(field).is_empty() && others.concat().is_empty(), "{word} {field}: {command:?}");
                assert_eq!(command.command, word);
            }
        }
    }

    fn command_field<'a>(command: &'a UserCommand, field: &str) -> &'a str {
        match field {
            "submodule" => command.submodule.as_ref().map(|submodule| submodule.name.as_str()).unwrap_or_default(),
            "action_id" => &command.action_id,
            "process_id" => &command.process_id,
            "chain_id" => &command.chain_id,
            "task_id" => &command.task_id,
            "team" => &command.team,
            _ => &command.thread_id,
        }
    }

    #[test]
    fn what_is_ordered_is_named_once() {
        assert_eq!(wrong_fields("cancel", ""), ["action_id"]);
        assert_eq!(wrong_fields("pause", ""), ["task_id"]);
        assert_eq!(wrong_fields("archive", ""), ["thread_id"]);
        assert_eq!(wrong_fields("cancel", &(named("action_id") + &named("task_id"))), ["action_id"]);
        assert_eq!(wrong_fields("cancel", r#", "process_id": "7""#), ["process_id"]);
        assert_eq!(wrong_fields("archive", r#", "thread_id": "Dinner!""#), ["thread_id"]);
        assert_eq!(wrong_fields("run", r#", "chain_id": 7"#), ["chain_id"]);
        assert_eq!(wrong_fields("pause", r#", "team": "b""#), ["team"]);
        assert_eq!(wrong_fields("run", &named("team")), ["team"]);
        assert!(read("cancel", &format!(r#", "action_id": "{ID}", "task_id": null"#)).is_ok());
        let errors = read("resume", &named("thread_id")).unwrap_err();
        assert_eq!(
            errors.first().map(|error| error.expected.as_str()),
            Some("exactly one of task_id, team: the one thing to resume")
        );
        let expected = "exactly one of action_id, process_id, chain_id, task_id: the one thing to cancel";
        let errors = read("cancel", "").unwrap_err();
        assert_eq!(errors.first().map(|error| error.expected.as_str()), Some(expected));
    }

    #[test]
    fn everything_wrong_is_named() {
        let body = br#"{"user": 1, "agent": "", "command": "dance", "command_id": "", "x": 1}"#;
        let problem =
            CommandInput::from_fields(RequestFields::from_json(body).unwrap(), &GatewayConfig::default()).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["user", "agent", "command", "action_id", "command_id", "x"]);
    }
}
