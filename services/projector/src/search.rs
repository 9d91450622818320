//! Keeps the documents of the search engine up to date from the tables, if there is a search engine.
//!
//! One replica does it at a time ([`leader`]). It sends what was changed since its position ([`keeper`], [`document_groups`]),
//! and moves that ([`registry`]) when the engine has taken it in; so nothing is passed over whichever of them dies, and
//! what is sent twice is the same. Another generation of the documents is made when there is none, when the tables are
//! of another generation, when somebody asks for it and when the index is lost.

mod document_groups;
mod keeper;
mod leader;
mod registry;

use std::{future::pending, time::Duration};

use kairo_core::service::ServiceError;
use kairo_read_model::{
    ReadError, ReadModel,
    search::meili::{EngineError, SearchEngine},
};
use tokio::time::sleep;

use crate::Config;
use keeper::IndexKeeper;

/// Pause before the first try anew.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The reason for an interruption.
#[derive(Debug, thiserror::Error)]
enum SearchIndexError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("postgres failed: {0}")]
    Database(#[from] sqlx::Error),
    #[error("postgres does not answer within {0:?}")]
    Silent(Duration),
    /// The position or the state is another one than expected.
    #[error("the generation was changed by somebody else")]
    Overtaken,
}

/// Runs for ever, also where there is no search engine, in which case it does nothing.
pub(crate) async fn run(config: &Config) -> Result<(), ServiceError> {
    let other = |error: &dyn std::error::Error| ServiceError::Other(error.to_string());
    let Some(engine) = SearchEngine::open(&config.search).map_err(|error| other(&error))? else {
        return pending().await;
    };
    let model = ReadModel::open(&config.postgres).map_err(|error| other(&error))?;
    let keeper = IndexKeeper::new(model, engine, &config.search);
    let longest = Duration::from_millis(config.search.retry_longest_ms);
    let mut pause = FIRST_PAUSE;
    loop {
        let mut progress = false;
        let Err(error) = leader::run_as_leader(config, keeper.keep_current(&mut progress)).await;
        pause = if progress { FIRST_PAUSE } else { (pause * 2).min(longest) };
        tracing::warn!(%error, "the search index is not kept up to date for now, trying again");
        sleep(pause).await;
    }
}
