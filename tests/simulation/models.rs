//! The models: what they answer follows from the request alone ([`crate::model`]), and they take a while.

use std::time::Duration;

use futures::future::BoxFuture;
use kairo_agent_runtime::{LiveAnswer, ModelClient, ProgressHandle};
use kairo_mind::request::{ModelRequest, check_conversation};
use kairo_proto::v1::Completion;

use crate::{model, world::Shared};

pub struct Scripted {
    pub world: Shared,
    pub replica: usize,
}

impl ModelClient for Scripted {
    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        _received: &'a ProgressHandle,
        _live: Option<LiveAnswer<'a>>,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let (delay, seed, tries, _busy) = {
                let mut world = self.world.lock().unwrap();
                let digest = request.digest();
                *world.asked.entry(digest.clone()).or_default() += 1;
                world.tries += 1;
                let tries = world.tries;
                let instance = world.replicas[self.replica].instance.clone();
                world.note(&instance, || format!("asks a model: {digest}, the {tries}. time"));
                let long = if world.permille(150) { 4_000 } else { 150 };
                (world.below(long) as u64, world.seed, tries, world.busy.clone())
            };
            tokio::time::sleep(Duration::from_millis(delay)).await;
            assert_eq!(check_conversation(&request.messages), Ok(()), "every endpoint takes it");
            let completion = model::answer(request, tries, seed);
            if completion.error.is_some() || completion.text.is_empty() && completion.tool_calls.is_empty() {
                // Nobody pays for what cannot be used, and it may be asked for again.
                *self.world.lock().unwrap().asked.entry(completion.request_digest.clone()).or_default() -= 1;
            }
            completion
        })
    }
}
