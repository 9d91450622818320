//! `conversation.yaml`: what the user says and chooses, what happens outside, and what should come of it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::investigate::Step;

/// A conversation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversation {
    /// What it shows, in a few words.
    pub title: String,
    pub user: String,
    /// What happened before: it is played first, so that what the agent knows, it knows from its own events.
    #[serde(default)]
    pub before: Vec<Scene>,
    pub scenes: Vec<Scene>,
    /// What is done about it when it is over.
    #[serde(default)]
    pub investigate: Vec<Step>,
}

/// One thing that happens, and what should come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scene {
    #[serde(flatten)]
    pub cue: Cue,
    /// What the user answers when another thread is suggested: accept or decline.
    #[serde(default)]
    pub choose: Option<String>,
    /// When the scene is over, where that is later than what the cue says.
    #[serde(default)]
    pub until: Option<Until>,
    /// What the user's client says of where the user is.
    #[serde(default)]
    pub environment: Option<serde_json::Value>,
    /// For the reader.
    #[serde(default)]
    pub note: Option<String>,
    #[serde(default)]
    pub expect: Expected,
}

/// When a scene is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// The agent has done all that it has to do, and learned from it.
    Rest,
    /// What was decided has been shown to the submodules that want to know.
    Shown,
}

/// What happens.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cue {
    /// The user says it, once the message before was answered.
    Say(String),
    /// The user says it while the message before is still being worked on, as soon as a tool was begun for it, or the user is
    /// asked whether one may be.
    Interrupt(String),
    /// Mail arrives: these files of `incoming/` are delivered to the mailbox. Over when a hook's chain is.
    Mail(Group),
    /// The user orders that the task with this in its title runs now.
    RunTask(String),
    /// The user makes the team of `team.yaml`; this says so. Over when its lead rests.
    MakeTeam(String),
}

/// What should come of it; what is not named may be as it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expected {
    /// How the thread was found: new, continue or switch.
    pub thread: Option<String>,
    /// What was suggested: suggest_switch or suggest_new.
    pub offer: Option<String>,
    /// The steps of the chain by name, those that run at once as a list. Empty: there is no chain.
    pub steps: Option<Vec<Group>>,
    /// How often tools were called.
    pub calls: BTreeMap<String, usize>,
    /// What the reply contains, in any case.
    pub reply: Vec<String>,
    /// What the user is notified of.
    pub notified: Vec<String>,
    /// Whom the lead had do something, in order.
    pub delegated: Option<Vec<String>>,
    /// Whether the owner was told what a session came to; that a session was not worth it was decided, too.
    pub briefed: Option<bool>,
    /// What the message was taken to be after.
    pub goal: Option<String>,
    /// What reviews of drafts said, in order: act, revise or finished.
    pub reviews: Option<Vec<String>>,
    /// Whether a thread was summed up since it was too long for a model.
    pub compacted: Option<bool>,
    /// The submodules that said something, were asked, and were late, in the order of their names.
    pub thinks: Option<Vec<String>>,
    pub asked: Option<Vec<String>>,
    pub late: Option<Vec<String>>,
}

/// Steps that run at once, or mails that arrive at once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Group {
    One(String),
    Several(Vec<String>),
}

impl Group {
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}
