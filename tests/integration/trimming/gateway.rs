//! The gateway's answers about positions before the beginning of a trimmed log, from the archive and the read model.

use super::*;

/// The positions that are asked about: the first message to an agent, and its first decision.
pub struct Asked {
    message: u64,
    decision: u64,
    through: u64,
    known: Vec<Value>,
}

impl Asked {
    /// Records the answers while nothing is trimmed.
    pub async fn of_a_whole_log(world: &World, through: u64) -> Self {
        let log = world.raw_log().await;
        let first = |subject: String| log.iter().find(|raw| raw.subject == subject).unwrap().sequence;
        let (message, decision) =
            (first(AGENT_MESSAGE.of_owner(&agent(AGENT))), first(AGENT_DECISION.of_owner(&agent(AGENT))));
        let mut asked = Self { message, decision, through, known: Vec::new() };
        asked.known = asked.all(world).await;
        asked
    }

    /// Returns the results of replaying the agent's log up to the decision, and the read model's events around it.
    async fn all(&self, world: &World) -> Vec<Value> {
        let Self { decision, through, .. } = self;
        let agents = format!("/v1/agents/{AGENT}");
        let mut answers = vec![world.post(&format!("{agents}/replay"), &json!({ "to": decision })).await];
        for asked in [
            format!("{agents}/state?at={decision}"),
            format!("{agents}/requests?at={decision}"),
            format!("/v1/events?before={decision}&limit=3"),
            format!("/v1/events?before={through}&agent={AGENT}&limit=500"),
            format!("/v1/events?after={}&limit=3", decision - 1),
        ] {
            answers.push(world.get(&asked).await);
        }
        let answered = answers.into_iter().map(|(status, mut answer)| {
            assert_eq!(status, 200, "{answer}");
            // How far the read model is.
            answer.as_object_mut().unwrap().remove("position");
            answer
        });
        answered.collect()
    }

    /// Sends the requests that need all of the agent's log and returns the status and body of each answer.
    async fn of_all(&self, world: &World) -> Vec<(u16, Value)> {
        let (agents, at) = (format!("/v1/agents/{AGENT}"), self.message);
        vec![
            world.post(&format!("{agents}/whatif"), &json!({ "at": at, "drop": true })).await,
            world.post(&format!("{agents}/forks"), &json!({ "at": at })).await,
            // Lines, and no JSON.
            world.get(&format!("/v1/incidents/{AGENT}")).await,
        ]
    }

    /// Checks that all is answered from the archive, which the gateway can read.
    pub async fn are_answered(&self, world: &World) {
        assert_eq!(self.all(world).await, self.known);
        let statuses: Vec<u16> = self.of_all(world).await.into_iter().map(|(status, _)| status).collect();
        assert_eq!(statuses, [200, 201, 200]);
        self.is_watched_from_where_the_log_begins(world).await;
    }

    /// Checks that a watcher resuming from a trimmed position gets 410, with the position where the log now begins.
    async fn is_watched_from_where_the_log_begins(&self, world: &World) {
        let stream = world.url("/v1/events/stream");
        for gone in [
            world.http.get(format!("{stream}?after={}", self.decision)),
            world.http.get(&stream).header("last-event-id", format!("{}.0", self.decision)),
        ] {
            let told = gone.send().await.unwrap();
            assert_eq!(told.status(), 410);
            let told: Value = told.json().await.unwrap();
            let detail = told["detail"].as_str().unwrap();
            assert_eq!(told["type"], "urn:kairo:problem:gone");
            assert!(detail.contains(&format!("begins at message {}", self.through + 1)), "{detail}");
            assert!(detail.contains(&format!("/v1/events?after={}", self.decision)), "{detail}");
        }
        let goes_on = world.http.get(format!("{stream}?after={}", self.through)).send().await.unwrap();
        assert_eq!(goes_on.status(), 200);
    }

    /// A gateway that has no archive makes nothing of what is left, and says what is gone; what the read model has is there still.
    pub async fn are_gone_without_an_archive(&self, world: &mut World) {
        world.stack.service(Service::Gateway).env("KAIRO_ARCHIVE__FOLDER", "");
        world.stack.restart(Service::Gateway, 0).await.unwrap();
        let (agents, decision) = (format!("/v1/agents/{AGENT}"), self.decision);
        let mut gone = self.of_all(world).await;
        gone.push(world.post(&format!("{agents}/replay"), &json!({ "to": decision })).await);
        for asked in ["requests?at=", "state?at="] {
            gone.push(world.get(&format!("{agents}/{asked}{decision}")).await);
        }
        // Also where it stands in the log still: it follows from what is gone.
        gone.push(world.get(&format!("{agents}/state")).await);
        for (status, problem) in gone {
            assert_eq!((status, &problem["type"]), (410, &json!("urn:kairo:problem:gone")), "{problem}");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(&format!("begins at message {}", self.through + 1)), "{detail}");
            assert!(detail.contains("archive.folder"), "{detail}");
        }
        let (status, events) = world.get(&format!("/v1/events?before={decision}&limit=3")).await;
        assert_eq!((status, events["events"].as_array().unwrap().len()), (200, 3), "{events}");
        self.is_watched_from_where_the_log_begins(world).await;
    }
}
