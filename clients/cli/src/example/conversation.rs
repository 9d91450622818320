//! `conversation.yaml`: what the user says and chooses, what happens outside, and what should come of it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::investigation::InvestigationStep;

/// A conversation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversation {
    /// The subject of the example, in a few words.
    pub title: String,
    pub user: String,
    /// The scenes from before: they are played first, so that what the agent knows, it knows from its own events.
    #[serde(default)]
    pub before: Vec<Scene>,
    pub scenes: Vec<Scene>,
    /// The commands to run when it is over.
    #[serde(default)]
    pub investigate: Vec<InvestigationStep>,
}

/// One thing that happens, and what should come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scene {
    #[serde(flatten)]
    pub cue: Cue,
    /// The user's answer when another thread is suggested: accept or decline.
    #[serde(default)]
    pub choose: Option<String>,
    /// When the scene is over, where that is later than what the cue says.
    #[serde(default)]
    pub until: Option<SceneEnd>,
    /// The environment of the user, as the user's client reports it.
    #[serde(default)]
    pub environment: Option<serde_json::Value>,
    /// For the reader.
    #[serde(default)]
    pub note: Option<String>,
    #[serde(default)]
    pub expect: SceneExpectation,
}

/// When a scene is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SceneEnd {
    /// The agent has done all that it has to do, and learned from it.
    Rest,
    /// The decision has been shown to the submodules that want to know.
    Shown,
}

/// The cue of a scene.
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

/// The expected result of a scene; a field that is left out accepts any.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SceneExpectation {
    /// The way the thread was found: new, continue or switch.
    pub thread: Option<String>,
    /// The suggestion: suggest_switch or suggest_new.
    pub offer: Option<String>,
    /// The steps of the chain by name, those that run at once as a list. Empty: there is no chain.
    pub steps: Option<Vec<Group>>,
    /// The number of calls, by tool.
    pub calls: BTreeMap<String, usize>,
    /// The texts that the reply contains, regardless of case.
    pub reply: Vec<String>,
    /// The texts of the user's notifications.
    pub notified: Vec<String>,
    /// The agents that the lead had do something, in order.
    pub delegated: Option<Vec<String>>,
    /// True if the owner was told the result of a session; false if it was found not worth telling.
    pub briefed: Option<bool>,
    /// The goal that the message was taken to have.
    pub goal: Option<String>,
    /// The verdicts of the reviews of drafts, in order: act, revise or finished.
    pub reviews: Option<Vec<String>>,
    /// True if a thread was summed up since it was too long for a model.
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
