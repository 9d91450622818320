//! `GET /v1/projections/{projection}/digests`: what is in each generation, in short.

use std::{collections::BTreeSet, time::Duration};

use axum::extract::{Path, RawQuery, State, rejection::PathRejection};
use kairo_proto::{
    v1::{DigestProjectionResponse, DigestRow, PartDigestRow},
    words::GenerationState,
};
use kairo_read_model::{Generation, Projection, READ_MODEL, search::digest};
use tokio::time::timeout;

use super::{super::query::unanswered, Gateway, Told, named};
use crate::{fields::Fields, problem::Problem};

/// Reads all rows of every generation that has any.
pub async fn digests(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Told<DigestProjectionResponse>, Problem> {
    Fields::from_query(query.as_deref()).complete(|| Some(()))?;
    let name = path.map(|Path(name)| name).unwrap_or_default();
    let projection = named(&gateway, &name, &[])?;
    let limit = Duration::from_millis(gateway.config.digest_timeout_ms);
    let late = |_| Problem::unavailable("reading all rows takes longer than gateway.digest_timeout_ms");
    let generations = timeout(limit, digested(&gateway, projection)).await.map_err(late)??;
    Ok(Told(DigestProjectionResponse { projection: name, equal: are_equal(&generations), generations }))
}

async fn digested(gateway: &Gateway, projection: Projection) -> Result<Vec<DigestRow>, Problem> {
    let generations = gateway.read_model.generations().await.map_err(|error| unanswered(gateway, &error))?;
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
    use GenerationState::{Asked, Dropping, Failed};
    !matches!(state.into(), Asked | Failed | Dropping)
}

/// None if it was removed meanwhile, as below.
async fn of_tables(gateway: &Gateway, generation: Generation) -> Result<Option<DigestRow>, Problem> {
    let digests =
        gateway.read_model.digests(generation.generation).await.map_err(|error| unanswered(gateway, &error))?;
    Ok(digests.map(|digests| {
        let places: BTreeSet<u64> = digests.positions.values().copied().collect();
        let positions = match places.len() {
            1 => places.into_iter().collect(),
            _ => digests.positions.into_values().collect(),
        };
        let tables = digests.tables.into_iter();
        let parts = tables.map(|(name, part)| PartDigestRow { name, rows: part.rows, digest: part.digest });
        row(generation, positions, parts.collect())
    }))
}

async fn of_index(gateway: &Gateway, generation: Generation) -> Result<Option<DigestRow>, Problem> {
    let Some((engine, index)) = gateway.search.index(generation.generation) else { return Ok(None) };
    let digests = digest::of_index(engine, &index).await.map_err(|error| {
        tracing::warn!(%error, index, "the search engine does not say what it holds");
        Problem::unavailable("the search engine does not answer; try again")
    })?;
    let kinds = digests.into_iter();
    let parts =
        kinds.map(|(name, part)| PartDigestRow { name: name.to_owned(), rows: part.documents, digest: part.digest });
    let positions = vec![generation.position];
    Ok(Some(row(generation, positions, parts.collect())))
}

/// `positions` is one place where all partitions are at it, however many they are; `parts` are in the order of their
/// names.
fn row(generation: Generation, positions: Vec<u64>, parts: Vec<PartDigestRow>) -> DigestRow {
    let Generation { generation, version, state, .. } = generation;
    let position = positions.iter().min().copied().unwrap_or_default();
    DigestRow { generation, version, state, position, positions, parts }
}

/// Returns true if all digests of the same version and positions hold the same rows.
fn are_equal(digested: &[DigestRow]) -> bool {
    let comparable =
        |one: &DigestRow, other: &DigestRow| (one.version, &one.positions) == (other.version, &other.positions);
    digested.iter().all(|one| {
        let mut others = digested.iter().filter(|other| comparable(one, other));
        others.all(|other| one.parts == other.parts)
    })
}
