//! `/v1/projections`: the read models, how far each of them is, and what operators want done with them.

mod digests;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    http::StatusCode,
};
use kairo_core::{bus::BusError, subjects::EVENTS_STREAM};
use kairo_read_model::{Generation, PROJECTIONS, Projection, READ_MODEL, SEARCH, Standing, UnknownType};
use serde_json::{Value, json};

use super::{Gateway, query};
use crate::problem::{FieldError, Problem};
pub use digests::digests;

/// What stands for every projection.
const ALL: &str = "all";
const NUMBER: &str = "the number of a generation";

/// Every projection, and every generation of each.
pub async fn get(State(gateway): State<Gateway>) -> Result<Json<Value>, Problem> {
    let end = end_of_log(&gateway).await?;
    let asked = async {
        let generations = gateway.read_model.generations().await?;
        let is_live = |generation: &Generation| is_live(generation, READ_MODEL);
        let unknown = match generations.iter().any(is_live) {
            true => gateway.read_model.unknown_types().await?,
            false => Vec::new(),
        };
        Ok((generations, unknown, gateway.read_model.standing().await?))
    };
    let (generations, unknown, standing) = query::answered(&gateway, asked).await?;
    let offered = offered(&gateway);
    let described = offered.iter().map(|projection| described(*projection, end, &generations, &unknown, &standing));
    Ok(Json(json!({
        "last_sequence": end,
        "set_aside": standing.set_aside,
        "projections": described.collect::<Vec<_>>(),
    })))
}

/// Has projections built anew, beside those that are live.
pub async fn rebuild(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let name = path.map(|Path(name)| name).unwrap_or_default();
    let wanted = match name.as_str() {
        ALL => offered(&gateway),
        name => vec![named(&gateway, name, &[ALL])?],
    };
    let mut begun = Vec::new();
    for projection in wanted {
        let generation = query::answered(&gateway, gateway.read_model.rebuild(projection)).await?;
        begun.extend(generation.map(|generation| json!({ "projection": projection.name, "generation": generation })));
    }
    if begun.is_empty() {
        let detail = format!("another generation of {name} is being built; GET /v1/projections says how far it is");
        return Err(Problem::conflict(detail));
    }
    tracing::info!(projection = name, "a rebuild was asked for");
    Ok((StatusCode::ACCEPTED, Json(json!({ "rebuilding": begun }))))
}

/// Has a generation that differs from the live one become the live one.
pub async fn swap(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let name = path.map(|Path(name)| name).unwrap_or_default();
    let projection = named(&gateway, &name, &[])?;
    match query::answered(&gateway, gateway.read_model.request_swap(projection)).await? {
        Some(generation) => Ok(requested(projection, generation, "a swap")),
        None => Err(Problem::conflict(format!(
            "no generation of {name} differs from the live one and waits; GET /v1/projections says how each stands"
        ))),
    }
}

/// Has a generation removed that is not live.
pub async fn drop(
    State(gateway): State<Gateway>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let (name, number) = path.map(|Path(path)| path).unwrap_or_default();
    let projection = named(&gateway, &name, &[])?;
    let number = generation(&number)?;
    let asked = async {
        let all = gateway.read_model.generations().await?;
        let known = all.iter().any(|it| (it.generation, it.projection.as_str()) == (number, projection.name));
        Ok((known, known && gateway.read_model.request_drop(number).await?))
    };
    match query::answered(&gateway, asked).await? {
        (_, true) => Ok(requested(projection, number, "a removal")),
        (true, false) => {
            Err(Problem::conflict(format!("generation {number} answers queries, or is being removed already")))
        }
        (false, false) => {
            let detail = format!("{name} has no generation {number}; GET /v1/projections lists those there are");
            Err(Problem::not_found(detail))
        }
    }
}

fn requested(projection: Projection, generation: i64, what: &str) -> (StatusCode, Json<Value>) {
    tracing::info!(projection = projection.name, generation, "{what} was asked for");
    (StatusCode::ACCEPTED, Json(json!({ "projection": projection.name, "generation": generation })))
}

fn generation(given: &str) -> Result<i64, Problem> {
    given.parse().ok().filter(|number| *number > 0).ok_or_else(|| {
        let found = Some(given.chars().take(80).collect());
        Problem::invalid(vec![FieldError { field: "generation".to_owned(), expected: NUMBER.to_owned(), found }])
    })
}

fn described(
    projection: Projection,
    end: u64,
    generations: &[Generation],
    unknown: &[UnknownType],
    standing: &Standing,
) -> Value {
    let rate = |generation: &Generation| standing.rates.get(&generation.generation).copied().unwrap_or_default();
    let lag = |generation: &Generation| end.saturating_sub(generation.position);
    let live = generations.iter().find(|generation| is_live(generation, projection));
    let own = generations.iter().filter(|generation| generation.projection == projection.name);
    let own = own.map(|generation| {
        json!({
            "generation": generation.generation,
            "version": generation.version,
            "place": generation.place,
            "state": generation.state,
            "position": generation.position,
            "lag": lag(generation),
            "rate": rate(generation),
            "partitions": generation.partitions,
            "target": generation.target,
            "reason": generation.reason,
            "source": generation.source,
            "asked_at": generation.asked_at,
            "since": generation.since,
        })
    });
    json!({
        "name": projection.name,
        "version": projection.version,
        "live": live.map(|live| live.generation),
        "position": live.map(|live| live.position),
        "lag": live.map(lag),
        "rate": live.map(rate),
        "partitions": live.map(|live| live.partitions),
        "generations": own.collect::<Vec<_>>(),
        "unknown_types": if projection == READ_MODEL { unknown } else { &[] },
    })
}

/// Whether it answers the queries of this version.
fn is_live(generation: &Generation, projection: Projection) -> bool {
    generation.projection == projection.name && generation.version == projection.version && generation.state == "live"
}

async fn end_of_log(gateway: &Gateway) -> Result<u64, Problem> {
    let asked = async {
        let stream = gateway.bus.nats()?.jetstream.get_stream_no_info(EVENTS_STREAM).await?;
        Ok::<_, async_nats::Error>(stream.get_info().await?.state.last_sequence)
    };
    Ok(asked.await.map_err(|source| BusError::Unavailable { doing: "asking for the end of the log", source })?)
}

/// The projections that there are here.
fn offered(gateway: &Gateway) -> Vec<Projection> {
    let is_there = |projection: &Projection| *projection != SEARCH || gateway.search.is_configured();
    PROJECTIONS.into_iter().filter(is_there).collect()
}

fn named(gateway: &Gateway, name: &str, others: &[&str]) -> Result<Projection, Problem> {
    let offered = offered(gateway);
    offered.iter().find(|projection| projection.name == name).copied().ok_or_else(|| {
        let names: Vec<&str> = offered.iter().map(|projection| projection.name).chain(others.iter().copied()).collect();
        Problem::not_found(format!("there is no projection of this name; there is {}", names.join(", ")))
    })
}
