//! A nats-server, a Postgres and projectors for one test.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use kairo_cli::local::{NatsOptions, NatsServer, PgOptions, Postgres, Service as Process, Stack, StackOptions, Tools};
use kairo_core::{
    bus::{Bus, BusConfig, NatsConfig, append::Outgoing},
    config::Secret,
    ids::{self, Name},
    subjects::{EVENTS_STREAM, Service},
};
use kairo_read_model::{PostgresConfig, ReadModel, Snapshot};
use sqlx::{AssertSqlSafe, postgres::PgListener, query_scalar};
use tempfile::TempDir;
use tokio::time::timeout;

/// Far above what anything needs, so that only a hang reaches it.
const DEADLINE: Duration = Duration::from_secs(60);
const TABLES: [&str; 13] = [
    "agents",
    "threads",
    "events",
    "messages",
    "actions",
    "processes",
    "memories",
    "chains",
    "chain_steps",
    "tasks",
    "task_firings",
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
        let tools = Tools::find(&PathBuf::from(env!("CARGO_MANIFEST_DIR"))).expect("run ./scripts/test");
        let folder = tempfile::tempdir().unwrap();
        let nats = NatsServer::start(NatsOptions::new(tools.nats_server().unwrap(), folder.path().join("nats")));
        let mut options = PgOptions::new(tools.postgres_bin().unwrap(), folder.path().join("postgres"));
        options.template = Some(tools.postgres_templates());
        options.ephemeral = true;
        let (nats, postgres) = tokio::join!(nats, Postgres::start(options));
        let (nats, postgres) = (nats.unwrap(), postgres.unwrap());
        let database = postgres.create_database("kairo").await.unwrap();

        let bins = StackOptions::bin_dir_of_this_build().unwrap();
        let mut stack = Stack::new(StackOptions::new(bins, folder.path().join("logs")));
        let common = stack.common();
        common.env("KAIRO_NATS__URL", nats.url()).env("KAIRO_POSTGRES__URL", &database);
        // Short, as the tests wait for it.
        common.env("KAIRO_BUS__RETRY_LONGEST_MS", "500").env("KAIRO_PROJECTOR__SESSION_TIMEOUT_MS", "1000");
        settings.iter().for_each(|(name, value)| _ = common.env(*name, *value));
        stack.start(Process::Projector).await.unwrap();

        let bus = connect(&nats.url()).await;
        let config = PostgresConfig { url: Secret::new(database), ..Default::default() };
        let model = ReadModel::open(&config).unwrap();
        sqlx::raw_sql(TELL).execute(model.pool()).await.unwrap();
        Self { nats, postgres, stack, bus, model, _folder: folder }
    }

    /// Publishes it, however often nats goes away meanwhile.
    pub async fn publish(&self, event: &Outgoing) -> u64 {
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
    pub async fn publish_again(&self, event: &Outgoing) -> u64 {
        let body = event.body.encode();
        let ack = self.bus.jetstream.publish_with_headers(event.subject.clone(), event.headers(), body.into()).await;
        ack.unwrap().await.unwrap().sequence
    }

    pub async fn end_of_log(&self) -> u64 {
        let stream = self.bus.jetstream.get_stream_no_info(EVENTS_STREAM).await.unwrap();
        stream.get_info().await.unwrap().state.last_sequence
    }

    /// Waits until the read model takes account of all that is in the log, being told by Postgres when it moves.
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

    /// The read model as it is.
    pub async fn now(&self) -> Snapshot {
        self.model.snapshot().await.unwrap()
    }

    /// All rows of all tables, as text.
    pub async fn rows(&self) -> BTreeMap<&'static str, String> {
        let mut rows = BTreeMap::new();
        for table in TABLES {
            let sql = format!("SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') FROM {table} t");
            rows.insert(table, query_scalar(AssertSqlSafe(sql)).fetch_one(self.model.pool()).await.unwrap());
        }
        rows
    }

    pub async fn count(&self, sql: &'static str) -> i64 {
        query_scalar(sql).fetch_one(self.model.pool()).await.unwrap()
    }
}

/// Makes Postgres tell whoever listens that the position moved.
pub const TELL: &str = "
    CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('moved', ''); RETURN NEW; END $$;
    CREATE TRIGGER moved AFTER UPDATE ON projections FOR EACH ROW EXECUTE FUNCTION tell();";

async fn connect(url: &str) -> Bus {
    let nats = NatsConfig { url: url.to_owned(), ..Default::default() };
    let instance = Name::parse(&format!("test-{}", ids::entering().simple())).unwrap();
    Bus::connect(Service::Gateway, instance, &nats, &BusConfig::default()).await.unwrap()
}
