//! `GET /v1/projections/{projection}/digests`: what is in each generation, in short.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_read_model::{Generation, Projection, READ_MODEL, search::digest};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{super::query::unanswered, Gateway, named};
use crate::problem::Problem;

/// What a generation holds.
struct Digested {
    generation: Generation,
    /// Up to where each partition has read: one place where they all are at it, however many they are.
    positions: Vec<u64>,
    /// Rows and digest of each table, or of each kind of document.
    parts: BTreeMap<String, (u64, String)>,
}

/// Reads all rows of every generation that has any.
pub async fn digests(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<Value>, Problem> {
    let name = path.map(|Path(name)| name).unwrap_or_default();
    let projection = named(&gateway, &name, &[])?;
    let limit = Duration::from_millis(gateway.config.digest_timeout_ms);
    let late = |_| Problem::unavailable("reading all rows takes longer than gateway.digest_timeout_ms");
    let digested = timeout(limit, digested(&gateway, projection)).await.map_err(late)??;
    Ok(Json(json!({
        "projection": projection.name,
        "equal": are_equal(&digested),
        "generations": digested.iter().map(shown).collect::<Vec<_>>(),
    })))
}

async fn digested(gateway: &Gateway, projection: Projection) -> Result<Vec<Digested>, Problem> {
    let generations = gateway.read_model.generations().await.map_err(|error| unanswered(&error))?;
    let mut digested = Vec::new();
    for generation in generations.into_iter().filter(|it| it.projection == projection.name && has_rows(&it.state)) {
        digested.extend(match projection {
            READ_MODEL => of_tables(gateway, generation).await?,
            _ => of_index(gateway, generation).await?,
        });
    }
    Ok(digested)
}

fn has_rows(state: &str) -> bool {
    !matches!(state, "asked" | "failed" | "dropping")
}

/// None if it was removed meanwhile, as below.
async fn of_tables(gateway: &Gateway, generation: Generation) -> Result<Option<Digested>, Problem> {
    let digests = gateway.read_model.digests(generation.generation).await.map_err(|error| unanswered(&error))?;
    Ok(digests.map(|digests| {
        let places: BTreeSet<u64> = digests.positions.values().copied().collect();
        let positions = match places.len() {
            1 => places.into_iter().collect(),
            _ => digests.positions.into_values().collect(),
        };
        let parts = digests.tables.into_iter().map(|(name, part)| (name, (part.rows, part.digest)));
        Digested { generation, positions, parts: parts.collect() }
    }))
}

async fn of_index(gateway: &Gateway, generation: Generation) -> Result<Option<Digested>, Problem> {
    let Some((engine, index)) = gateway.search.index(generation.generation) else { return Ok(None) };
    let digests = digest::of_index(engine, &index).await.map_err(|error| {
        tracing::warn!(%error, index, "the search engine does not say what it holds");
        Problem::unavailable("the search engine does not answer; try again")
    })?;
    let parts = digests.into_iter().map(|(name, part)| (name.to_owned(), (part.documents, part.digest)));
    Ok(Some(Digested { positions: vec![generation.position], parts: parts.collect(), generation }))
}

/// Whether those of one version that took account of the same messages hold the same rows.
fn are_equal(digested: &[Digested]) -> bool {
    let comparable = |one: &Digested, other: &Digested| {
        (one.generation.version, &one.positions) == (other.generation.version, &other.positions)
    };
    digested.iter().all(|one| {
        let mut others = digested.iter().filter(|other| comparable(one, other));
        others.all(|other| one.parts == other.parts)
    })
}

fn shown(digested: &Digested) -> Value {
    let Digested { generation, positions, parts } = digested;
    let parts = parts.iter().map(|(name, (rows, digest))| json!({ "name": name, "rows": rows, "digest": digest }));
    json!({
        "generation": generation.generation,
        "version": generation.version,
        "state": generation.state,
        "position": positions.iter().min().copied().unwrap_or_default(),
        "positions": positions,
        "parts": parts.collect::<Vec<_>>(),
    })
}
