//! `GET /v1/projections/{projection}/digests`: what is in each generation, in short.

use std::{collections::BTreeSet, time::Duration};

use axum::extract::{Path, RawQuery, State, rejection::PathRejection};
use kairo_proto::{
    v1::{DigestProjectionResponse, DigestRow, PartDigestRow},
    words::GenerationState,
};
use kairo_read_model::{Generation, Projection, READ_MODEL, search::digest};
use tokio::time::timeout;

use super::{super::query::read_error_problem, Gateway, SortedJson, find_projection};
use crate::{fields::RequestFields, problem::Problem};

/// Reads all rows of every generation that has any.
pub async fn digest_projection(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<SortedJson<DigestProjectionResponse>, Problem> {
    RequestFields::from_query(query.as_deref()).complete(|| Some(()))?;
    let name = path.map(|Path(name)| name).unwrap_or_default();
    let projection = find_projection(&gateway, &name, &[])?;
    let limit = Duration::from_millis(gateway.config.digest_timeout_ms);
    let late = |_| Problem::unavailable("reading all rows takes longer than gateway.digest_timeout_ms");
    let generations = timeout(limit, digest_generations(&gateway, projection)).await.map_err(late)??;
    Ok(SortedJson(DigestProjectionResponse { projection: name, equal: are_equal(&generations), generations }))
}

async fn digest_generations(gateway: &Gateway, projection: Projection) -> Result<Vec<DigestRow>, Problem> {
    let generations =
        gateway.read_model.list_generations().await.map_err(|error| read_error_problem(gateway, &error))?;
    let mut digested = Vec::new();
    for generation in generations.into_iter().filter(|it| it.projection == projection.name && has_rows(&it.state)) {
        digested.extend(match projection {
            READ_MODEL => digest_tables(gateway, generation).await?,
            _ => digest_index(gateway, generation).await?,
        });
    }
    Ok(digested)
}

fn has_rows(state: &str) -> bool {
    use GenerationState::{Asked, Dropping, Failed};
    !matches!(state.into(), Asked | Failed | Dropping)
}

/// None if it was removed meanwhile, as below.
async fn digest_tables(gateway: &Gateway, generation: Generation) -> Result<Option<DigestRow>, Problem> {
    let digests = gateway
        .read_model
        .generation_digest(generation.generation)
        .await
        .map_err(|error| read_error_problem(gateway, &error))?;
    Ok(digests.map(|digests| {
        let places: BTreeSet<u64> = digests.positions.values().copied().collect();
        let positions = match places.len() {
            1 => places.into_iter().collect(),
            _ => digests.positions.into_values().collect(),
        };
        let tables = digests.tables.into_iter();
        let parts = tables.map(|(name, part)| PartDigestRow { name, rows: part.rows, digest: part.digest });
        digest_row(generation, positions, parts.collect())
    }))
}

async fn digest_index(gateway: &Gateway, generation: Generation) -> Result<Option<DigestRow>, Problem> {
    let Some((engine, index)) = gateway.search.engine_index(generation.generation) else { return Ok(None) };
    let digests = digest::of_index(engine, &index).await.map_err(|error| {
        tracing::warn!(%error, index, "the search engine does not say what it holds");
        Problem::unavailable("the search engine does not answer; try again")
    })?;
    let kinds = digests.into_iter();
    let parts =
        kinds.map(|(name, part)| PartDigestRow { name: name.to_owned(), rows: part.documents, digest: part.digest });
    let positions = vec![generation.position];
    Ok(Some(digest_row(generation, positions, parts.collect())))
}

/// `positions` is one place where all partitions are at it, however many they are; `parts` are in the order of their
/// names.
fn digest_row(generation: Generation, positions: Vec<u64>, parts: Vec<PartDigestRow>) -> DigestRow {
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
