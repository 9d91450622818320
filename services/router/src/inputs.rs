//! Translates what users say into the messages that agents receive. Pure.

use kairo_core::{
    address::{self, AgentAddress},
    ids::{self, Name},
    subjects::{AGENT_APPROVAL, AGENT_CHOICE, AGENT_COMMAND, AGENT_MESSAGE, Route},
    threads,
};
use kairo_proto::{
    About, Body,
    about::User,
    v1::{AgentApproval, AgentChoice, AgentCommand, AgentMessage},
};
use uuid::Uuid;

/// Something a user said to an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentInput {
    /// The sender's id of the message.
    pub id: String,
    pub user: String,
    /// The agent as the sender named it.
    pub named: String,
    /// The agent it is for or, for the sender, what is wrong with the one that was named.
    pub to: AgentAddress,
    /// The thread it belongs to; empty where the agent knows better.
    pub thread_id: String,
    /// The route of the message to the agent.
    pub route: &'static Route,
    /// The body of the message to the agent.
    pub told: Body,
}

/// Reads what entered with the event `id`; none if it is not for an agent.
pub fn to_agent_input(body: &Body, id: Uuid, default_agent: &str) -> Option<AgentInput> {
    let About::User(said) = body.about() else { return None };
    Some(match said {
        User::Message(said) => {
            let message_id = ids::message_id(&said.message_id, id);
            let (to, text) = address::split_message(&said.agent, &said.text, default_agent);
            let user = said.user.clone();
            let text = text.to_owned();
            let thread_id = said.thread_id.clone();
            let parts = said.parts.clone();
            let environment = said.environment.clone();
            let state = said.state.clone();
            let chat = said.chat.clone();
            let told = AgentMessage { message_id, user, text, thread_id, parts, environment, state, chat };
            let message_id = told.message_id.clone();
            let thread_id = told.thread_id.clone();
            AgentInput { thread_id, ..new_input(&AGENT_MESSAGE, message_id, &said.user, &said.agent, to, told) }
        }
        User::Choice(said) => {
            let told = AgentChoice {
                choice_id: ids::message_id(&said.choice_id, id),
                user: said.user.clone(),
                offer_id: said.offer_id.clone(),
                option: said.option.clone(),
            };
            new_input(
                &AGENT_CHOICE,
                told.choice_id.clone(),
                &said.user,
                &said.agent,
                address::parse_agent(&said.agent),
                told,
            )
        }
        User::Approval(said) => {
            let told = AgentApproval {
                approval_id: ids::message_id(&said.approval_id, id),
                user: said.user.clone(),
                action_id: said.action_id.clone(),
                verdict: said.verdict.clone(),
                note: said.note.clone(),
                arguments: said.arguments.clone(),
            };
            new_input(
                &AGENT_APPROVAL,
                told.approval_id.clone(),
                &said.user,
                &said.agent,
                address::parse_agent(&said.agent),
                told,
            )
        }
        User::Command(said) => {
            let told = AgentCommand {
                command_id: ids::message_id(&said.command_id, id),
                user: said.user.clone(),
                command: said.command.clone(),
                action_id: said.action_id.clone(),
                process_id: said.process_id.clone(),
                chain_id: said.chain_id.clone(),
                task_id: said.task_id.clone(),
                thread_id: said.thread_id.clone(),
                team: said.team.clone(),
                submodule: said.submodule.clone(),
                includes_consents: said.includes_consents,
                task: said.task.clone(),
            };
            new_input(
                &AGENT_COMMAND,
                told.command_id.clone(),
                &said.user,
                &said.agent,
                address::parse_agent(&said.agent),
                told,
            )
        }
        User::Undelivered(_) | User::Switched(_) | User::Forget(_) | User::Forgotten(_) => return None,
    })
}

impl AgentInput {
    /// Returns the input in the user's own thread of the name that it gives.
    pub fn in_own_thread(&self, agent: &Name) -> Self {
        let mut input = self.clone();
        if let Body::AgentMessage(told) = &mut input.told
            && !told.thread_id.is_empty()
        {
            told.thread_id = threads::id_for_name(agent.as_str(), &told.user, &told.thread_id);
            input.thread_id.clone_from(&told.thread_id);
        }
        input
    }
}

fn new_input(
    route: &'static Route,
    id: String,
    user: &str,
    named: &str,
    to: AgentAddress,
    told: impl Into<Body>,
) -> AgentInput {
    AgentInput {
        route,
        id,
        user: user.to_owned(),
        named: named.to_owned(),
        to,
        thread_id: String::new(),
        told: told.into(),
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{ToolResult, UserApproval, UserChoice, UserCommand};

    use super::*;

    fn told(body: impl Into<Body>) -> (String, String, Body) {
        let input = to_agent_input(&body.into(), Uuid::from_u128(7), "default").unwrap();
        (input.to.unwrap().to_string(), input.id, input.told)
    }

    #[test]
    fn agents_are_told_what_users_say() {
        let user = String::from("ann");
        let agent = String::from("cook");
        let choice = UserChoice {
            choice_id: "c".into(),
            user: user.clone(),
            agent: agent.clone(),
            offer_id: "o".into(),
            option: "soup".into(),
        };
        let expected =
            AgentChoice { choice_id: "c".into(), user: user.clone(), offer_id: "o".into(), option: "soup".into() };
        assert_eq!(told(choice), ("cook".into(), "c".into(), expected.into()));

        let approval = UserApproval {
            approval_id: "p".into(),
            user: user.clone(),
            agent: agent.clone(),
            action_id: "a".into(),
            verdict: "happened".into(),
            note: "I saw it".into(),
            arguments: r#"{"a":1}"#.into(),
        };
        let expected = AgentApproval {
            approval_id: "p".into(),
            user: user.clone(),
            action_id: "a".into(),
            verdict: "happened".into(),
            note: "I saw it".into(),
            arguments: r#"{"a":1}"#.into(),
        };
        assert_eq!(told(approval), ("cook".into(), "p".into(), expected.into()));

        let command = UserCommand {
            command_id: String::new(),
            user: user.clone(),
            agent,
            command: "cancel".into(),
            action_id: "a".into(),
            ..Default::default()
        };
        let id = Uuid::from_u128(7).to_string();
        let expected = AgentCommand {
            command_id: id.clone(),
            user,
            command: "cancel".into(),
            action_id: "a".into(),
            ..Default::default()
        };
        assert_eq!(told(command), ("cook".into(), id, expected.into()));
    }

    #[test]
    fn only_messages_may_leave_the_agent_to_the_router() {
        let input = to_agent_input(&UserChoice::default().into(), Uuid::nil(), "default").unwrap();
        assert!(input.to.unwrap_err().contains("expected 1 to 64"));
        assert_eq!(to_agent_input(&ToolResult::default().into(), Uuid::nil(), "default"), None);
    }
}
