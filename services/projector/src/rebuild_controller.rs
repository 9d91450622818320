//! Building generations of the tables: whoever holds the lock of this version does what is to be done next, and what
//! that is stands in the registry, so that anybody can go on with it.

use std::{convert::Infallible, sync::Arc, time::Duration};

use kairo_core::{
    bus::{Bus, BusError, consume::backoff_delay},
    subjects::EVENTS_STREAM,
};
use kairo_proto::words::GenerationState;
use kairo_read_model::{GenerationDigest, READ_MODEL, REQUEST_REBUILD, digest_generation};
use sqlx::{PgConnection, query, query_as, query_scalar};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{Instant, timeout},
};

use crate::{
    Config,
    connection::{self, SessionError, lock_class},
    generation::{self, GenerationBuild},
    partition_progress::PartitionPosition,
    reader::to_reader_error,
    transition::{self, BuildState, Transition, TransitionFacts, is_foreign},
    worker::ProjectorError,
};

/// The longest time the live generation waits while another one is swapped in.
const SWAP: Duration = Duration::from_secs(2);
/// The longest time that queries wait while a generation is removed.
const REMOVAL: Duration = Duration::from_millis(100);

const HOLD: &str = "SELECT pg_try_advisory_lock($1, $2)";
/// Those of this version; what is to be removed, of any.
const BUILDINGS: &str = "
    SELECT generation, place, state, target FROM generations
    WHERE projection = $1 AND (version = $2 OR state = 'dropping') ORDER BY generation";
/// One that failed makes room for another attempt, in a while.
const CLEAR: &str = "
    UPDATE generations SET state = 'dropping', since = now()
    WHERE projection = $1 AND version = $2 AND state = 'failed' AND since < now() - interval '1 minute'";
const FAILED: &str = "SELECT count(*) FROM generations WHERE projection = $1 AND version = $2 AND state = 'failed'";

pub struct RebuildController {
    pub bus: Bus,
    pub config: Arc<Config>,
    /// Changes whenever something in the registry may have.
    pub woken: watch::Receiver<()>,
}

/// One session's life, while it holds the lock.
struct ControllerTerm<'s> {
    controller: &'s RebuildController,
    connection: PgConnection,
    /// The measured content of the live generation, to compare the next one with.
    measured: Option<(i64, GenerationDigest)>,
}

impl RebuildController {
    /// Builds what is to be built, for as long as it is not dropped.
    pub async fn run(mut self) {
        let mut failures = 0;
        loop {
            let began = Instant::now();
            let Err(error) = self.run_session().await;
            failures = if began.elapsed() > self.config.projector.session_timeout() { 1 } else { failures + 1 };
            tracing::warn!(%error, failures, "building read models was interrupted, starting again");
            tokio::time::sleep(backoff_delay(&self.bus.limits, failures)).await;
        }
    }

    async fn run_session(&mut self) -> Result<Infallible, ProjectorError> {
        let mut connection = connection::open_connection(&self.config.postgres, &self.config.projector).await?;
        let patience = connection::answer_timeout(&self.config.postgres, &self.config.projector);
        let mut woken = self.woken.clone();
        let beat = self.config.projector.heartbeat_interval();
        loop {
            let hold = query_scalar(HOLD).bind(lock_class(0)).bind(READ_MODEL.version).fetch_one(&mut connection);
            if connection::with_timeout(patience, hold).await? {
                break;
            }
            _ = timeout(beat, woken.changed()).await;
        }
        let mut term = ControllerTerm { controller: self, connection, measured: None };
        loop {
            woken.mark_unchanged();
            while term.advance_all().await? {}
            _ = timeout(beat, woken.changed()).await;
        }
    }
}

impl ControllerTerm<'_> {
    /// Takes a transition about each generation that there is something to be done about. Returns false if there was nothing.
    async fn advance_all(&mut self) -> Result<bool, ProjectorError> {
        let log = self.controller.bus.log_identity()?.id;
        generation::abandon_foreign(&mut self.connection, log).await.map_err(SessionError::from)?;
        let buildings = query_as(BUILDINGS).bind(READ_MODEL.name).bind(READ_MODEL.version);
        let buildings: Vec<GenerationBuild> =
            buildings.fetch_all(&mut self.connection).await.map_err(SessionError::from)?;
        if !buildings.iter().any(|building| BuildState::parse(&building.state).is_some_and(BuildState::is_wanted)) {
            return self.request_build().await;
        }
        let live = buildings.iter().find(|building| building.state == GenerationState::Live.known_word());
        let mut done = false;
        for building in &buildings {
            done |= self.advance_build(building, live).await?;
        }
        Ok(done)
    }

    /// There is nothing of this version, so it is to be built. Returns false if that was tried a moment ago.
    async fn request_build(&mut self) -> Result<bool, ProjectorError> {
        let asked = async {
            let connection = &mut self.connection;
            query(CLEAR).bind(READ_MODEL.name).bind(READ_MODEL.version).execute(&mut *connection).await?;
            let failed = query_scalar(FAILED).bind(READ_MODEL.name).bind(READ_MODEL.version);
            let failed: i64 = failed.fetch_one(&mut *connection).await?;
            if failed > 0 {
                return Ok(false);
            }
            let entered = query_scalar(REQUEST_REBUILD).bind(READ_MODEL.name).bind(READ_MODEL.version);
            let entered: Option<i64> = entered.fetch_one(connection).await?;
            Ok(entered.is_some())
        };
        Ok(asked.await.map_err(SessionError::Failed)?)
    }

    async fn advance_build(
        &mut self,
        building: &GenerationBuild,
        live: Option<&GenerationBuild>,
    ) -> Result<bool, ProjectorError> {
        let Some(state) = BuildState::parse(&building.state) else { return Ok(false) };
        let facts = self.gather_facts(building, state, live).await?;
        let transition = transition::next_transition(state, &facts);
        if transition == Transition::Wait {
            return Ok(false);
        }
        tracing::info!(generation = building.generation, ?state, ?transition, "building");
        let foreign = facts.live.as_ref().is_some_and(|live| is_foreign(live, facts.end));
        match self.take_transition(transition, building, live, &facts, foreign).await {
            Err(ProjectorError::Session(SessionError::Failed(error))) if is_final(&error) => {
                self.fail_build(building, &error.to_string()).await
            }
            Err(ProjectorError::Session(SessionError::Refused(error))) => {
                self.fail_build(building, &error.to_string()).await
            }
            // Somebody looks at what is to be changed: once more at the next beat.
            Err(ProjectorError::Session(SessionError::Contended(error))) => {
                tracing::debug!(%error, generation = building.generation, "not now");
                Ok(false)
            }
            taken => taken,
        }
    }

    async fn gather_facts(
        &mut self,
        building: &GenerationBuild,
        state: BuildState,
        live: Option<&GenerationBuild>,
    ) -> Result<TransitionFacts, ProjectorError> {
        let near = u64::try_from(self.controller.config.projector.batch).unwrap_or(u64::MAX);
        let measured = self.measured.as_ref().is_some_and(|(generation, _)| *generation == building.generation);
        let mut facts = TransitionFacts { measured, near, ..TransitionFacts::default() };
        if !matches!(state, BuildState::Filling | BuildState::Asked | BuildState::Comparing | BuildState::Ready) {
            return Ok(facts);
        }
        facts.own = self.read_positions(building).await?;
        if let Some(live) = live {
            facts.live = Some(self.read_positions(live).await?);
        }
        // After the positions, which are never beyond it.
        if state != BuildState::Filling {
            facts.end = self.end_of_log().await?;
        }
        Ok(facts)
    }

    async fn take_transition(
        &mut self,
        transition: Transition,
        building: &GenerationBuild,
        live: Option<&GenerationBuild>,
        facts: &TransitionFacts,
        foreign: bool,
    ) -> Result<bool, ProjectorError> {
        // Where what stood before the log is in no archive, none is built of what is left.
        if transition == Transition::Begin
            && let Err(error) = self.count_archived().await?
        {
            return self.fail_build(building, &error.to_string()).await;
        }
        let connection = &mut self.connection;
        let projector = &self.controller.config.projector;
        let taken = match transition {
            Transition::Wait => Ok(false),
            Transition::Begin => {
                let log = self.controller.bus.log_identity()?.id;
                generation::create_tables(connection, building, projector.partitions, facts.end, log, live.is_none())
                    .await
            }
            Transition::Check => return self.check_completeness(building).await,
            Transition::Index => generation::create_indexes(connection, building).await,
            Transition::Measure => return self.measure_live(building, live).await,
            Transition::Compare => return self.compare_with_live(building).await,
            Transition::Accept(reason) => {
                generation::resume_following(connection, building, GenerationState::Ready.known_word(), &reason).await
            }
            Transition::Swap => {
                let patience = SWAP.min(projector.session_timeout() / 2);
                generation::swap_in(connection, building, live, foreign, patience).await
            }
            Transition::Drop => generation::drop_generation(connection, building, REMOVAL).await,
        };
        Ok(taken.map_err(SessionError::from)?)
    }

    /// Nothing that is in the log may be missing.
    async fn check_completeness(&mut self, building: &GenerationBuild) -> Result<bool, ProjectorError> {
        let stored = self.count_stored(building.target).await?;
        let stored = match self.count_archived().await? {
            Ok(before) => before + stored,
            Err(error) => return self.fail_build(building, &error.to_string()).await,
        };
        let held = generation::count_held(&mut self.connection, building).await.map_err(SessionError::from)?;
        if held < stored {
            let reason = format!("holds {held} of the {stored} messages of the log up to {}", building.target);
            return self.fail_build(building, &reason).await;
        }
        let entered =
            generation::enter_state(&mut self.connection, building, GenerationState::Indexing.known_word(), "").await;
        Ok(entered.map_err(SessionError::from)?)
    }

    async fn measure_live(
        &mut self,
        building: &GenerationBuild,
        live: Option<&GenerationBuild>,
    ) -> Result<bool, ProjectorError> {
        let Some(live) = live else { return Ok(false) };
        let measured = digest_generation(&mut self.connection, live.generation).await.map_err(SessionError::from)?;
        let Some(measured) = measured else { return Ok(false) };
        generation::stop_at(&mut self.connection, building, &measured).await.map_err(SessionError::from)?;
        self.measured = Some((building.generation, measured));
        Ok(true)
    }

    async fn compare_with_live(&mut self, building: &GenerationBuild) -> Result<bool, ProjectorError> {
        let Some((_, live)) = self.measured.take() else { return Ok(false) };
        let own = digest_generation(&mut self.connection, building.generation).await.map_err(SessionError::from)?;
        let Some(own) = own else { return Ok(false) };
        if own.positions != live.positions {
            // Its end was moved by somebody else.
            return Ok(true);
        }
        let differing = live.differing_tables(&own);
        let (state, reason) = match differing.is_empty() {
            true => (GenerationState::Ready.known_word(), String::new()),
            false => (
                GenerationState::Differing.known_word(),
                format!("differs from generation {} in {}", live.generation, differing.join(", ")),
            ),
        };
        if state == GenerationState::Differing.known_word() {
            tracing::warn!(generation = building.generation, reason, "it is not swapped in");
        }
        let followed = generation::resume_following(&mut self.connection, building, state, &reason).await;
        Ok(followed.map_err(SessionError::from)?)
    }

    async fn fail_build(&mut self, building: &GenerationBuild, reason: &str) -> Result<bool, ProjectorError> {
        tracing::error!(generation = building.generation, reason, "it cannot be built");
        let failed =
            generation::enter_state(&mut self.connection, building, GenerationState::Failed.known_word(), reason).await;
        Ok(failed.map_err(SessionError::Failed)?)
    }

    async fn read_positions(&mut self, building: &GenerationBuild) -> Result<Vec<PartitionPosition>, ProjectorError> {
        let positions = generation::read_positions(&mut self.connection, building.generation).await;
        Ok(positions.map_err(SessionError::from)?)
    }

    async fn end_of_log(&self) -> Result<u64, ProjectorError> {
        let asked = async {
            let stream = self.controller.bus.nats()?.jetstream.get_stream_no_info(EVENTS_STREAM).await?;
            Ok::<_, async_nats::Error>(stream.get_info().await?.state.last_sequence)
        };
        Ok(asked.await.map_err(crate::reader::ReaderError::from)?)
    }

    /// Counts the messages from before the beginning of the log; an error if they are gone.
    async fn count_archived(&self) -> Result<Result<u64, BusError>, ProjectorError> {
        let bus = self.controller.bus.clone();
        let beginning = bus.log_start().await.map_err(to_reader_error)?;
        // That may take reading a file.
        let counted = spawn_blocking(move || bus.count_archived(&beginning)).await;
        Ok(counted.map_err(|error| to_reader_error(BusError::Refused(error.to_string())))?)
    }

    /// Counts the messages in the log up to this one.
    async fn count_stored(&self, up_to: u64) -> Result<u64, ProjectorError> {
        let asked = async {
            let stream = self.controller.bus.nats()?.jetstream.get_stream_no_info(EVENTS_STREAM).await?;
            Ok::<_, async_nats::Error>(stream.info_builder().with_deleted(true).fetch().await?.info.state)
        };
        let state = asked.await.map_err(crate::reader::ReaderError::from)?;
        let within = |sequence: &u64| (state.first_sequence..=up_to).contains(sequence);
        let deleted = state.deleted.unwrap_or_default().iter().filter(|deleted| within(deleted)).count();
        let deleted = u64::try_from(deleted).unwrap_or(u64::MAX);
        let all = (up_to + 1).saturating_sub(state.first_sequence);
        Ok(all.saturating_sub(deleted))
    }
}

/// Returns true if a retry would fail again: Postgres rejects the statement as unsupported, forbidden or invalid.
fn is_final(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| ["0A", "42"].iter().any(|class| code.starts_with(class)))
}
