//! Playing an example's conversation over the gateway's API, and noting what came of each scene.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use kairo_core::{event_json::EventJson, ids::Name};
use kairo_proto::v1;
use kairo_proto::words::{ChainOrigin, OfferAnswer};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use super::{
    conversation::{Cue, Scene, SceneEnd},
    expectation,
    files::Example,
};
use crate::{
    Error,
    client::{AcceptedOrder, Client, EventFilter, EventFollower, NewMessage, StreamUpdate},
    turn::is_unsolicited,
};

/// A real model may think for a while.
const PATIENCE: Duration = Duration::from_secs(120);
/// The events of one message of the log are told together; after this pause they have all come.
const REST: Duration = Duration::from_millis(200);

/// The result of a scene.
#[derive(Clone, Debug, Serialize)]
pub struct SceneResult {
    /// True if it happened before what the example shows.
    pub before: bool,
    /// The user's words, or a description of what happened.
    pub cue: String,
    /// True if `cue` is the user's words.
    pub said: bool,
    /// The user's answer when another thread was suggested.
    pub chose: Option<String>,
    pub reply: Option<String>,
    /// The index of the event before which the user interrupted it, and the user's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<(usize, String)>,
    /// The differences from what was expected.
    pub unmet: Vec<String>,
    pub events: Vec<EventJson>,
}

/// Plays one example, scene by scene.
pub struct Player<'a> {
    client: &'a Client,
    example: &'a Example,
    /// The agent's folder.
    folder: PathBuf,
    follow: EventFollower,
    /// Every event of the agent so far.
    seen: Vec<EventJson>,
    /// Messages that are being answered.
    running: Vec<RunningMessage<'a>>,
}

/// A message on its way to its reply.
struct RunningMessage<'a> {
    before: bool,
    scene: &'a Scene,
    /// Its first event, among those seen.
    from: usize,
    /// The correlation ids of its events: they follow from the message, or from a choice.
    correlations: BTreeSet<Uuid>,
    /// True if a tool was begun for it, or a human is asked whether one may be.
    acting: bool,
    /// The chains in which the agent looks at its environment before it thinks, and their calls: with these nothing is done yet.
    looking: BTreeSet<String>,
    chose: Option<String>,
    reply: Option<String>,
    unmet: Vec<String>,
}

impl<'a> Player<'a> {
    /// Defines the example's agent, whose folder is `folder`; a team is made in a scene.
    pub async fn begin(client: &'a Client, example: &'a Example, folder: &Path) -> Result<Self, Error> {
        for member in &example.members {
            client.post::<Value>("v1/agents", member).await?;
        }
        if !example.is_team {
            client.post::<Value>("v1/agents", &example.profile).await?;
        }
        let is_alone = !example.is_team && example.members.is_empty();
        let agent = Name::parse(example.agent()).ok().filter(|_| is_alone);
        let filter = EventFilter { agent, after: Some(0), ..EventFilter::default() };
        let mut follow = client.follow(filter, false);
        follow.open().await?;
        Ok(Self { client, example, folder: folder.to_owned(), follow, seen: Vec::new(), running: Vec::new() })
    }

    /// Plays the whole conversation, what happened before included, and tells each scene when it is over.
    pub async fn play(
        &mut self,
        mut tell: impl FnMut(&SceneResult) -> Result<(), Error>,
    ) -> Result<Vec<SceneResult>, Error> {
        let conversation = &self.example.conversation;
        let before = conversation.before.iter().map(|scene| (true, scene));
        let scenes: Vec<_> = before.chain(conversation.scenes.iter().map(|scene| (false, scene))).collect();
        let mut all = Vec::new();
        for (at, (before, scene)) in scenes.iter().enumerate() {
            let next = scenes.get(at + 1).map(|(_, next)| &next.cue);
            for played in self.play_scene(*before, scene, matches!(next, Some(Cue::Interrupt(_)))).await? {
                tell(&played)?;
                all.push(played);
            }
        }
        Ok(all)
    }

    /// Plays one scene; returns those that are over. One that is interrupted is over with the interruption.
    async fn play_scene(
        &mut self,
        before: bool,
        scene: &'a Scene,
        interrupted: bool,
    ) -> Result<Vec<SceneResult>, Error> {
        let from = self.seen.len();
        let outcome = timeout(PATIENCE, self.act(before, scene, interrupted)).await;
        let lost = match outcome {
            Ok(done) => done.map(|()| Vec::new())?,
            Err(_) => vec![format!("nothing came of it within {} s", PATIENCE.as_secs())],
        };
        if interrupted && lost.is_empty() {
            return Ok(Vec::new());
        }
        self.drain_events().await?;
        let running = std::mem::take(&mut self.running);
        let interruptions: Vec<_> =
            running.iter().skip(1).map(|next| (next.from, describe_cue(&next.scene.cue).0)).collect();
        let mut interruptions = interruptions.into_iter();
        let played = running.into_iter().map(|running| running.into_result(&self.seen, &lost, interruptions.next()));
        let played: Vec<SceneResult> = played.collect();
        if !played.is_empty() {
            return Ok(played);
        }
        let events = self.seen.get(from..).unwrap_or_default().to_vec();
        let mut unmet = lost;
        unmet.extend(expectation::unmet(&scene.expect, &events, None));
        let (cue, said) = describe_cue(&scene.cue);
        Ok(vec![SceneResult { before, cue, said, chose: None, reply: None, meanwhile: None, unmet, events }])
    }

    async fn act(&mut self, before: bool, scene: &'a Scene, interrupted: bool) -> Result<(), Error> {
        match &scene.cue {
            Cue::Say(text) | Cue::Interrupt(text) => {
                self.say(before, scene, text).await?;
                while !self.running.iter().all(|running| running.reply.is_some() || interrupted && running.acting) {
                    self.advance().await?;
                }
                match scene.until {
                    Some(until) => self.wait_for_end(until).await,
                    None => Ok(()),
                }
            }
            Cue::Mail(files) => {
                files.names().iter().try_for_each(|file| self.example.deliver(&self.folder, file))?;
                self.wait_for_chain("hook").await
            }
            Cue::RunTask(title) => {
                self.run_task(title).await?;
                match scene.until {
                    Some(until) => self.wait_for_end(until).await,
                    None => self.wait_for_chain("task").await,
                }
            }
            Cue::MakeTeam(_) => {
                self.client.post::<Value>("v1/teams", &self.example.profile).await?;
                self.wait_for_end(SceneEnd::Rest).await
            }
        }
    }

    async fn say(&mut self, before: bool, scene: &'a Scene, text: &str) -> Result<(), Error> {
        let message = NewMessage {
            user: self.example.conversation.user.clone(),
            text: text.to_owned(),
            agent: Some(self.example.agent().to_owned()),
            message_id: None,
            thread_id: None,
            parts: Vec::new(),
            environment: scene.environment.clone(),
            state: None,
        };
        let from = self.seen.len();
        let accepted = self.client.send(&message).await?;
        self.running.push(RunningMessage {
            before,
            scene,
            from,
            correlations: BTreeSet::from([accepted.correlation_id]),
            acting: false,
            looking: BTreeSet::new(),
            chose: None,
            reply: None,
            unmet: Vec::new(),
        });
        Ok(())
    }

    /// Takes in the next event, and answers when it asks the user something.
    async fn advance(&mut self) -> Result<(), Error> {
        let event = self.next().await?;
        let ours = |running: &RunningMessage<'_>| running.correlations.contains(&event.correlation_id);
        let Some(at) = self.running.iter().position(ours) else { return Ok(()) };
        let asked = event.type_name == v1::ThreadSuggested::TYPE;
        let chosen = match self.running.get(at).filter(|_| asked) {
            Some(running) => {
                let option = running.scene.choose.clone().unwrap_or_else(|| OfferAnswer::Decline.text());
                Some((self.choose(&event, &option).await?, option))
            }
            None => None,
        };
        let Some(running) = self.running.get_mut(at) else { return Ok(()) };
        running.note_acting(&event);
        if let Some((correlation, option)) = chosen {
            if running.scene.choose.is_none() {
                running.unmet.push("offer: another thread was suggested, which was not expected".to_owned());
            }
            running.correlations.insert(correlation);
            running.chose = Some(option);
        }
        if event.is_final_reply() && !is_unsolicited(&event) {
            running.reply = Some(event.text().to_owned());
        }
        Ok(())
    }

    async fn choose(&self, offer: &EventJson, option: &str) -> Result<Uuid, Error> {
        let choice = json!({
            "user": self.example.conversation.user,
            "agent": self.example.agent(),
            "offer_id": offer.event_id,
            "option": option,
        });
        let ordered: AcceptedOrder = self.client.post("v1/choices", &choice).await?;
        Ok(ordered.correlation_id)
    }

    async fn run_task(&mut self, title: &str) -> Result<(), Error> {
        let named = |event: &EventJson| {
            let task = event.payload.get("task").filter(|_| event.type_name == v1::TaskScheduled::TYPE)?;
            let its = task.get("title")?.as_str()?.to_lowercase();
            its.contains(&title.to_lowercase()).then(|| task.get("task_id").cloned())?
        };
        let task = self.seen.iter().rev().find_map(named);
        let task = task.ok_or_else(|| Error::Advice(format!("the agent has no task {title:?}")))?;
        let order = json!({
            "user": self.example.conversation.user,
            "agent": self.example.agent(),
            "command": "run",
            "task_id": task,
        });
        self.client.post::<Value>("v1/commands", &order).await?;
        Ok(())
    }

    /// Waits for the end of a chain that a task or a hook began.
    async fn wait_for_chain(&mut self, origin: &str) -> Result<(), Error> {
        let mut chain = None;
        loop {
            let event = self.next().await?;
            let field = |name: &str| event.payload.get(name).and_then(Value::as_str).map(str::to_owned);
            match event.type_name.as_str() {
                v1::ChainStarted::TYPE if field("origin").as_deref() == Some(origin) => chain = field("chain_id"),
                v1::ChainEnded::TYPE if chain.is_some() && field("chain_id") == chain => return Ok(()),
                _ => {}
            }
        }
    }

    /// Waits until the agent has learned from a session of work, so that nothing is left to do; or has shown what it decided.
    async fn wait_for_end(&mut self, until: SceneEnd) -> Result<(), Error> {
        let ends = match until {
            SceneEnd::Rest => v1::ThreadCompleted::TYPE,
            SceneEnd::Shown => v1::AgentBroadcast::TYPE,
        };
        loop {
            let event = self.next().await?;
            let is_of_agent = event_agent(&event) == self.example.agent();
            if is_of_agent && event.type_name == ends {
                return Ok(());
            }
        }
    }

    /// The next event of the agent.
    async fn next(&mut self) -> Result<EventJson, Error> {
        loop {
            if let StreamUpdate::Event(event) = self.follow.next().await? {
                self.seen.push((*event).clone());
                return Ok(*event);
            }
        }
    }

    /// Takes in what is told already.
    async fn drain_events(&mut self) -> Result<(), Error> {
        while let Ok(told) = timeout(REST, self.next()).await {
            told?;
        }
        Ok(())
    }
}

impl RunningMessage<'_> {
    /// Takes in whether something is being done for it.
    fn note_acting(&mut self, event: &EventJson) {
        let field = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default();
        match event.type_name.as_str() {
            v1::ChainStarted::TYPE if field("origin") == ChainOrigin::Environment.as_str() => {
                self.looking.insert(field("chain_id").to_owned());
            }
            v1::AgentAction::TYPE if self.looking.contains(field("chain_id")) => {
                self.looking.insert(event.event_id.to_string());
            }
            v1::ToolInvoke::TYPE => self.acting |= !self.looking.contains(field("action_id")),
            v1::ApprovalRequested::TYPE => self.acting = true,
            _ => {}
        }
    }

    /// Ends the scene. `lost` holds the reasons why no reply came; `interruption` the index in `seen` of the first event after the user
    /// interrupted it, and the user's words.
    fn into_result(self, seen: &[EventJson], lost: &[String], interruption: Option<(usize, String)>) -> SceneResult {
        let since = seen.get(self.from..).unwrap_or_default().iter();
        // What a team does for a message, it does in chains of its own, too.
        let is_of_it =
            |event: &&EventJson| self.scene.until.is_some() || self.correlations.contains(&event.correlation_id);
        let meanwhile = interruption.map(|(at, words)| {
            let before = seen.get(self.from..at).unwrap_or_default().iter();
            (before.filter(is_of_it).count(), words)
        });
        let events: Vec<_> = since.filter(is_of_it).cloned().collect();
        let mut unmet = self.unmet;
        if self.reply.is_none() {
            unmet.extend_from_slice(lost);
        }
        unmet.extend(expectation::unmet(&self.scene.expect, &events, self.reply.as_deref()));
        let (cue, said) = describe_cue(&self.scene.cue);
        SceneResult { before: self.before, cue, said, chose: self.chose, reply: self.reply, meanwhile, unmet, events }
    }
}

/// Describes the cue for people, and returns true if it is the user's words.
fn describe_cue(cue: &Cue) -> (String, bool) {
    match cue {
        Cue::Say(text) | Cue::Interrupt(text) => (text.clone(), true),
        Cue::Mail(files) => (format!("mail arrives: {}", files.names().join(", ")), false),
        Cue::RunTask(title) => (format!("the task “{title}” is run"), false),
        Cue::MakeTeam(text) => (text.clone(), false),
    }
}

/// The agent whose event it is; of one that is nobody's, whoever it names in its place.
pub fn event_agent(event: &EventJson) -> &str {
    event.subject.split('.').nth(2).unwrap_or_default()
}
