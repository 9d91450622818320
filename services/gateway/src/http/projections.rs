//! `/v1/projections`: the read models, how far each of them is, and what operators want done with them.

mod digests;

use axum::{
    extract::{Path, State, rejection::PathRejection},
    http::StatusCode,
};
use kairo_core::{bus::BusError, subjects::EVENTS_STREAM};
use kairo_proto::{
    v1::{
        DropGenerationResponse, GenerationRow, ListProjectionsResponse, ProjectionRow, RebuildProjectionResponse,
        RebuildRow, SwapProjectionResponse, UnknownTypeRow,
    },
    words::GenerationState,
};
use kairo_read_model::{Generation, PROJECTIONS, Projection, ProjectionStats, READ_MODEL, SEARCH};

use super::{Gateway, query, sorted_json::SortedJson};
use crate::problem::{FieldError, Problem};
pub use digests::digest_projection;

/// The name that stands for every projection.
const ALL: &str = "all";
const NUMBER: &str = "the number of a generation";

/// Every projection, and every generation of each.
pub async fn list_projections(State(gateway): State<Gateway>) -> Result<SortedJson<ListProjectionsResponse>, Problem> {
    let end = end_of_log(&gateway).await?;
    let asked = async {
        let generations = gateway.read_model.list_generations().await?;
        let is_live = |generation: &Generation| is_live(generation, READ_MODEL);
        let unknown = match generations.iter().any(is_live) {
            true => gateway.read_model.unknown_types().await?,
            false => Vec::new(),
        };
        Ok((generations, unknown, gateway.read_model.projection_stats().await?))
    };
    let (generations, unknown, standing) = query::await_answer(&gateway, asked).await?;
    let offered = configured_projections(&gateway);
    let described =
        offered.iter().map(|projection| projection_row(*projection, end, &generations, &unknown, &standing));
    let projections = described.collect();
    Ok(SortedJson(ListProjectionsResponse { last_sequence: end, set_aside: standing.set_aside, projections }))
}

/// Has projections built anew, beside those that are live.
pub async fn rebuild_projection(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
) -> Result<(StatusCode, SortedJson<RebuildProjectionResponse>), Problem> {
    let name = path.map(|Path(name)| name).unwrap_or_default();
    let wanted = match name.as_str() {
        ALL => configured_projections(&gateway),
        name => vec![find_projection(&gateway, name, &[ALL])?],
    };
    let mut rebuilding = Vec::new();
    for projection in wanted {
        let generation = query::await_answer(&gateway, gateway.read_model.request_rebuild(projection)).await?;
        let row = |generation| RebuildRow { projection: projection.name.to_owned(), generation };
        rebuilding.extend(generation.map(row));
    }
    if rebuilding.is_empty() {
        let detail = format!("another generation of {name} is being built; GET /v1/projections says how far it is");
        return Err(Problem::conflict(detail));
    }
    tracing::info!(projection = name, "a rebuild was asked for");
    Ok((StatusCode::ACCEPTED, SortedJson(RebuildProjectionResponse { rebuilding })))
}

/// Has a generation that differs from the live one become the live one.
pub async fn swap_projection(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
) -> Result<(StatusCode, SortedJson<SwapProjectionResponse>), Problem> {
    let name = path.map(|Path(name)| name).unwrap_or_default();
    let projection = find_projection(&gateway, &name, &[])?;
    match query::await_answer(&gateway, gateway.read_model.request_swap(projection)).await? {
        Some(generation) => {
            tracing::info!(projection = name, generation, "a swap was asked for");
            Ok((StatusCode::ACCEPTED, SortedJson(SwapProjectionResponse { projection: name, generation })))
        }
        None => Err(Problem::conflict(format!(
            "no generation of {name} differs from the live one and waits; GET /v1/projections says how each stands"
        ))),
    }
}

/// Has a generation removed that is not live.
pub async fn drop_generation(
    State(gateway): State<Gateway>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<(StatusCode, SortedJson<DropGenerationResponse>), Problem> {
    let (name, number) = path.map(|Path(path)| path).unwrap_or_default();
    let projection = find_projection(&gateway, &name, &[])?;
    let number = parse_generation(&number)?;
    let asked = async {
        let all = gateway.read_model.list_generations().await?;
        let known = all.iter().any(|it| (it.generation, it.projection.as_str()) == (number, projection.name));
        Ok((known, known && gateway.read_model.request_drop(number).await?))
    };
    match query::await_answer(&gateway, asked).await? {
        (_, true) => {
            tracing::info!(projection = name, generation = number, "a removal was asked for");
            Ok((StatusCode::ACCEPTED, SortedJson(DropGenerationResponse { projection: name, generation: number })))
        }
        (true, false) => {
            Err(Problem::conflict(format!("generation {number} answers queries, or is being removed already")))
        }
        (false, false) => {
            let detail = format!("{name} has no generation {number}; GET /v1/projections lists those there are");
            Err(Problem::not_found(detail))
        }
    }
}

fn parse_generation(given: &str) -> Result<i64, Problem> {
    given.parse().ok().filter(|number| *number > 0).ok_or_else(|| {
        let found = Some(given.chars().take(80).collect());
        Problem::invalid_fields(vec![FieldError { field: "generation".to_owned(), expected: NUMBER.to_owned(), found }])
    })
}

fn projection_row(
    projection: Projection,
    end: u64,
    generations: &[Generation],
    unknown: &[UnknownTypeRow],
    standing: &ProjectionStats,
) -> ProjectionRow {
    let row = |generation: &Generation| {
        let rate = standing.rates.get(&generation.generation).copied().unwrap_or_default();
        generation_row(generation.clone(), end.saturating_sub(generation.position), rate)
    };
    let live = generations.iter().find(|generation| is_live(generation, projection)).map(row);
    let own = generations.iter().filter(|generation| generation.projection == projection.name);
    ProjectionRow {
        name: projection.name.to_owned(),
        version: projection.version,
        live: live.as_ref().map(|live| live.generation),
        position: live.as_ref().map(|live| live.position),
        lag: live.as_ref().map(|live| live.lag),
        rate: live.as_ref().map(|live| live.rate),
        partitions: live.as_ref().map(|live| live.partitions),
        generations: own.map(row).collect(),
        unknown_types: if projection == READ_MODEL { unknown.to_vec() } else { Vec::new() },
    }
}

fn generation_row(generation: Generation, lag: u64, rate: f64) -> GenerationRow {
    GenerationRow {
        generation: generation.generation,
        version: generation.version,
        place: generation.place,
        state: generation.state,
        position: generation.position,
        lag,
        rate,
        partitions: generation.partitions,
        target: generation.target,
        reason: generation.reason,
        source: generation.source,
        asked_at: Some(generation.asked_at.into()),
        since: Some(generation.since.into()),
    }
}

/// Returns true if a generation answers the queries of this version of the projection.
fn is_live(generation: &Generation, projection: Projection) -> bool {
    let is_live = GenerationState::from(generation.state.as_str()) == GenerationState::Live;
    generation.projection == projection.name && generation.version == projection.version && is_live
}

async fn end_of_log(gateway: &Gateway) -> Result<u64, Problem> {
    let asked = async {
        let stream = gateway.bus.nats()?.jetstream.get_stream_no_info(EVENTS_STREAM).await?;
        Ok::<_, async_nats::Error>(stream.get_info().await?.state.last_sequence)
    };
    Ok(asked.await.map_err(|source| BusError::Unavailable { doing: "asking for the end of the log", source })?)
}

/// The projections that there are here.
fn configured_projections(gateway: &Gateway) -> Vec<Projection> {
    let is_there = |projection: &Projection| *projection != SEARCH || gateway.search.is_configured();
    PROJECTIONS.into_iter().filter(is_there).collect()
}

fn find_projection(gateway: &Gateway, name: &str, others: &[&str]) -> Result<Projection, Problem> {
    let offered = configured_projections(gateway);
    offered.iter().find(|projection| projection.name == name).copied().ok_or_else(|| {
        let names: Vec<&str> = offered.iter().map(|projection| projection.name).chain(others.iter().copied()).collect();
        Problem::not_found(format!("there is no projection of this name; there is {}", names.join(", ")))
    })
}
