//! A world with a search engine.

use std::time::Duration;

use kairo_core::{bus::append::OutgoingEvent, config::Secret};
use kairo_proto::v1::SearchResponse;
use kairo_read_model::{
    GENERATIONS_CHANNEL, Generation, POSITION_CHANNEL, PostgresConfig, SEARCH,
    search::{SearchConfig, SearchQuery, SearchService, digest},
};
use sqlx::{ConnectOptions, postgres::PgListener};
use tokio::time::timeout;

use crate::{meili::Meili, world::World};

/// The deadline of a wait, far above any normal duration, so that only a hang reaches it.
const DEADLINE: Duration = Duration::from_secs(120);

pub struct Setup {
    pub world: World,
    pub meili: Meili,
}

impl Setup {
    /// Starts a world whose projector reaches the search engine at this address, or directly.
    pub async fn start(meili: Meili, url: Option<&str>) -> Self {
        let settings = meili.settings(url);
        let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Self { world: World::start(&settings).await, meili }
    }

    pub async fn publish(&self, events: &[OutgoingEvent]) {
        for event in events {
            self.world.publish(event).await;
        }
    }

    pub fn search(&self) -> SearchService {
        search(&self.world, &self.meili.config)
    }

    /// Waits until the live index contains the whole log.
    pub async fn caught_up(&self) -> Generation {
        let end = self.world.end_of_log().await;
        self.until(|all| all.iter().find(|one| one.state == "live" && one.position >= end).cloned()).await
    }

    /// Waits until `find` finds a generation of the documents.
    pub async fn until(&self, find: impl Fn(&[Generation]) -> Option<Generation>) -> Generation {
        let found = async {
            let mut told = PgListener::connect_with(self.world.model.pool()).await.unwrap();
            told.listen_all([POSITION_CHANNEL, GENERATIONS_CHANNEL]).await.unwrap();
            loop {
                let all = self.world.model.list_generations().await.unwrap();
                let all: Vec<Generation> = all.into_iter().filter(|one| one.projection == SEARCH.name).collect();
                if let Some(found) = find(&all) {
                    return found;
                }
                // A change of state is not always told of.
                _ = timeout(Duration::from_millis(500), told.recv()).await;
            }
        };
        timeout(DEADLINE, found).await.expect("the search index never came to that")
    }

    /// Returns the digests of a generation's index: those it holds, and those it should hold.
    pub async fn digests(&self, generation: i64) -> (digest::KindDigests, digest::KindDigests) {
        let index = self.meili.config.index_name(generation);
        let held = digest::of_index(&self.meili.engine(), &index).await.unwrap();
        (held, digest::of_tables(&self.world.now().await).await.unwrap())
    }

    /// All that is there is in the live index, and a clean rebuild leads to the same.
    pub async fn is_as_if_rebuilt(&self) {
        let live = self.caught_up().await;
        let (held, wanted) = self.digests(live.generation).await;
        assert_eq!(held, wanted);
        let asked = self.world.model.request_rebuild(SEARCH).await.unwrap().expect("one is being made");
        self.until(|all| all.iter().find(|one| one.generation == asked && one.state == "live").cloned()).await;
        assert_eq!(self.digests(asked).await.0, held);
    }
}

pub fn search(world: &World, config: &SearchConfig) -> SearchService {
    let url = world.model.pool().connect_options().to_url_lossy().to_string();
    let postgres = PostgresConfig { url: Secret::new(url), ..Default::default() };
    SearchService::open(world.model.clone(), &postgres, config).unwrap()
}

pub async fn ask(search: &SearchService, query: SearchQuery) -> SearchResponse {
    search.search(&SearchQuery { limit: 20, ..query }, 0, Duration::ZERO).await.unwrap()
}
