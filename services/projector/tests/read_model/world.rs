//! A nats-server, a Postgres and projectors for one test.

use std::{collections::BTreeMap, time::Duration};

use kairo_core::{
    bus::{Bus, BusConfig, NatsConfig, append::OutgoingEvent},
    config::Secret,
    ids::{self, Name},
    subjects::{EVENTS_STREAM, Service},
};
use kairo_local::{Login, NatsServer, Postgres, Servers, Service as Process, Stack, Tools};
use kairo_read_model::{GENERATIONS_CHANNEL, Generation, PostgresConfig, READ_MODEL, ReadModel, ReadSnapshot};
use sqlx::{AssertSqlSafe, Connection, postgres::PgListener, query_scalar};
use tempfile::TempDir;
use tokio::time::timeout;

/// The deadline of a wait, far above any normal duration, so that only a hang reaches it.
const DEADLINE: Duration = Duration::from_secs(60);
const TABLES: [&str; 16] = [
    "agents",
    "threads",
    "events",
    "messages",
    "actions",
    "processes",
    "memories",
    "memory_versions",
    "chains",
    "chain_steps",
    "tasks",
    "task_firings",
    "model_calls",
    "entries",
    "approvals",
    "offers",
];

pub struct World {
    pub nats: NatsServer,
    pub postgres: Postgres,
    pub stack: Stack,
    pub bus: Bus,
    pub model: ReadModel,
    _folder: TempDir,
}

impl World {
    /// One projector, with these variables on top.
    pub async fn start(settings: &[(&str, &str)]) -> Self {
        let tools = Tools::of_this_checkout().expect("run ./scripts/test");
        let folder = tempfile::tempdir().unwrap();
        let nats = tools.nats_in(folder.path().join("nats")).unwrap();
        let postgres = tools.ephemeral_postgres_in(folder.path().join("postgres")).unwrap();
        let Servers { nats, postgres, database } = Servers::start(nats, postgres).await.unwrap();

        let mut stack = Stack::of_this_build(folder.path().join("logs")).unwrap();
        stack.use_nats(&nats.url(), nats.users());
        stack.use_database(&database);
        let common = stack.common();
        // Short, as the tests wait for it.
        common.env("KAIRO_BUS__RETRY_LONGEST_MS", "500").env("KAIRO_PROJECTOR__SESSION_TIMEOUT_MS", "1000");
        common.env("KAIRO_PROJECTOR__REBALANCE_MS", "100");
        settings.iter().for_each(|(name, value)| _ = common.env(*name, *value));
        stack.provision().await.unwrap();
        stack.start(Process::Projector).await.unwrap();

        let bus = connect(nats.operator()).await;
        let config = PostgresConfig {
            url: Secret::new(database.service_url(Process::Projector).unwrap().to_owned()),
            ..Default::default()
        };
        let model = ReadModel::open(&config).unwrap();
        sqlx::raw_sql(TELL).execute(model.pool()).await.unwrap();
        Self { nats, postgres, stack, bus, model, _folder: folder }
    }

    /// Publishes it, however often nats goes away meanwhile.
    pub async fn publish(&self, event: &OutgoingEvent) -> u64 {
        let published = async {
            loop {
                if let Ok(written) = self.bus.publish(event).await {
                    return written.sequence;
                }
            }
        };
        timeout(DEADLINE, published).await.expect("nats stayed away")
    }

    /// Publishes it as if for the first time.
    pub async fn publish_again(&self, event: &OutgoingEvent) -> u64 {
        let body = event.body.encode();
        let ack = self
            .bus
            .nats()
            .unwrap()
            .jetstream
            .publish_with_headers(self.bus.stored_subject(&event.subject), event.headers(), body.into())
            .await;
        ack.unwrap().await.unwrap().sequence
    }

    pub async fn end_of_log(&self) -> u64 {
        let stream = self.bus.nats().unwrap().jetstream.get_stream_no_info(EVENTS_STREAM).await.unwrap();
        stream.get_info().await.unwrap().state.last_sequence
    }

    /// Waits until the read model contains the whole log; Postgres notifies of each move of its position.
    pub async fn caught_up(&self) {
        let end = self.end_of_log().await;
        let caught_up = async {
            let mut moves = PgListener::connect_with(self.model.pool()).await.unwrap();
            moves.listen("moved").await.unwrap();
            while self.model.position().await.unwrap() < end {
                moves.recv().await.unwrap();
            }
        };
        timeout(DEADLINE, caught_up).await.expect("the projection never caught up");
    }

    /// Has the tables built anew beside the live ones, until the new ones are live; their generation.
    pub async fn rebuild(&self) -> i64 {
        let generation = self.model.request_rebuild(READ_MODEL).await.unwrap().expect("one is being built");
        self.reaches(generation, "live").await;
        generation
    }

    /// Waits until a generation is in this state.
    pub async fn reaches(&self, generation: i64, state: &str) -> Generation {
        let found = self.until(generation, |found| {
            let Some(found) = found else { return false };
            assert!(found.state == state || !["differing", "failed"].contains(&found.state.as_str()), "{found:?}");
            found.state == state
        });
        found.await.expect("it is there")
    }

    /// Waits until a generation was removed.
    pub async fn is_gone(&self, generation: i64) {
        assert_eq!(self.until(generation, |found| found.is_none()).await, None);
    }

    /// Waits for something about a generation, being told by Postgres when one changes, however often it goes away.
    pub async fn until(&self, generation: i64, is_so: impl Fn(Option<&Generation>) -> bool) -> Option<Generation> {
        let reached = async {
            let mut changes = None;
            loop {
                if changes.is_none() {
                    changes = self.changes().await;
                }
                if let Ok(generations) = self.model.list_generations().await {
                    let found = generations.into_iter().find(|found| found.generation == generation);
                    if is_so(found.as_ref()) {
                        return found;
                    }
                }
                if let Some(listener) = &mut changes {
                    // Also where the connection was lost, as nothing is told meanwhile.
                    if !matches!(listener.try_recv().await, Ok(Some(_))) {
                        changes = None;
                    }
                }
            }
        };
        timeout(DEADLINE, reached).await.unwrap_or_else(|_| panic!("waited for generation {generation} in vain"))
    }

    async fn changes(&self) -> Option<PgListener> {
        let mut changes = PgListener::connect_with(self.model.pool()).await.ok()?;
        changes.listen(GENERATIONS_CHANNEL).await.ok()?;
        Some(changes)
    }

    /// Returns a snapshot of the read model.
    pub async fn now(&self) -> ReadSnapshot {
        self.model.snapshot().await.unwrap()
    }

    /// All rows of all tables, as text.
    pub async fn rows(&self) -> BTreeMap<&'static str, String> {
        let mut rows = BTreeMap::new();
        for table in TABLES {
            let sql = format!("SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') FROM kairo.{table} t");
            rows.insert(table, query_scalar(AssertSqlSafe(sql)).fetch_one(self.model.pool()).await.unwrap());
        }
        rows
    }

    /// Waits until a generation takes account of this message.
    pub async fn until_position(&self, generation: i64, position: u64) {
        let mut moves = PgListener::connect_with(self.model.pool()).await.unwrap();
        moves.listen("moved").await.unwrap();
        let reached = async {
            while self
                .model
                .list_generations()
                .await
                .unwrap()
                .iter()
                .all(|g| g.generation != generation || g.position < position)
            {
                moves.recv().await.unwrap();
            }
        };
        timeout(DEADLINE, reached).await.expect("it never got there");
    }

    /// Polls until a statement selects this number; there is no notification of it.
    pub async fn until_count(&self, sql: &'static str, expected: i64) {
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        let reached = async {
            while self.count(sql).await != expected {
                looks.tick().await;
            }
        };
        timeout(DEADLINE, reached).await.unwrap_or_else(|_| panic!("never {expected}: {sql}"));
    }

    /// Runs a statement on the live tables and returns the number that it yields.
    pub async fn count(&self, sql: &'static str) -> i64 {
        let mut connection = self.model.pool().acquire().await.unwrap();
        let mut transaction = connection.begin().await.unwrap();
        sqlx::raw_sql("SET LOCAL search_path = kairo, public").execute(&mut *transaction).await.unwrap();
        query_scalar(sql).fetch_one(&mut *transaction).await.unwrap()
    }

    /// The schema of the live tables.
    pub async fn place(&self) -> String {
        let live = "SELECT place FROM generations WHERE projection = 'read-model' AND state = 'live'";
        query_scalar(live).fetch_one(self.model.pool()).await.unwrap()
    }
}

/// Makes Postgres notify listeners when the position moves.
pub const TELL: &str = "
    CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('moved', ''); RETURN NEW; END $$;
    CREATE TRIGGER moved AFTER UPDATE ON positions FOR EACH ROW EXECUTE FUNCTION tell();";

async fn connect(login: Login) -> Bus {
    let Login { url, user, password, .. } = login;
    let nats = NatsConfig { url, user, password: Secret::new(password), ..Default::default() };
    let instance = Name::parse(&format!("test-{}", ids::generate().simple())).unwrap();
    let bus = Bus::connect(Service::Gateway, instance, &nats, &BusConfig::default()).await.unwrap();
    bus.find_log().await.unwrap();
    bus
}
