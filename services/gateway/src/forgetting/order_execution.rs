//! Carrying out orders to forget somebody. Of several gateways one is at an order, for as long as it says so.

use std::time::Duration;

use jiff::Timestamp;
use kairo_core::{
    bus::{BusError, append::OutgoingEvent, data_keys::DataKeyHolder},
    envelope::{Envelope, Origin},
    ids::{self, Name},
    subjects::{AGENT_FORGOTTEN, SIGN_INS_BUCKET, Service, USER_FORGOTTEN},
};
use kairo_proto::{
    v1::{AgentForgotten, UserForgotten},
    words::{ForgettingStep, GenerationState},
};
use kairo_read_model::{Projection, READ_MODEL, SEARCH};
use tokio::time::{Instant, sleep};

use super::{ForgetOrder, OrderEntry, agent_notice_id, for_each_order};
use crate::{http::mcp_login, objects::sweep, problem::Problem, state::Gateway};

/// Longest wait for the read model, before that is tried again.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval at which the progress of a read model under construction is checked.
const LOOK: Duration = Duration::from_millis(500);

/// The reason an order makes no progress for now; it is retried.
#[derive(Debug, thiserror::Error)]
enum OrderError {
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("the read model does not answer: {0}")]
    ReadModel(#[from] kairo_read_model::ReadError),
    #[error("{0}")]
    Problem(String),
    /// Somebody else is at it.
    #[error("another gateway is at it")]
    ClaimedElsewhere,
}

impl From<Problem> for OrderError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem.detail)
    }
}

/// Carries out what orders there are, until the gateway stops.
pub async fn run(gateway: Gateway) {
    let all = for_each_order(&gateway.bus, async |user| match execute_order(&gateway, &user).await {
        Ok(()) => true,
        Err(stuck) => {
            if !matches!(stuck, OrderError::ClaimedElsewhere) {
                tracing::warn!(%user, %stuck, "forgetting a user does not get any further for now");
            }
            false
        }
    });
    gateway.shutdown.run_until_cancelled(all).await;
}

/// Interval at which a gateway renews its claim on the order it carries out; the claim lasts for [`claim_duration`].
fn claim_interval(gateway: &Gateway) -> Duration {
    Duration::from_millis(gateway.bus.limits.member_expiry_ms)
}

fn claim_duration(gateway: &Gateway) -> Duration {
    4 * claim_interval(gateway)
}

/// Goes on with the order to forget a user, to its end.
async fn execute_order(gateway: &Gateway, user: &Name) -> Result<(), OrderError> {
    let Some(mut kept) = gateway.orders.open_order(user).await? else { return Ok(()) };
    let now = gateway.bus.now();
    let own = gateway.bus.instance.as_str();
    if kept.order.by != own && now < kept.order.until {
        return Err(OrderError::ClaimedElsewhere);
    }
    renew_claim(gateway, &mut kept).await?;
    gateway.orders.write_to_log(&kept.order).await?;
    loop {
        let done = run_step(gateway, &mut kept).await;
        kept.order.reason = done.as_ref().err().map(ToString::to_string).unwrap_or_default();
        match done {
            Ok(ForgettingStep::Done) => {
                publish_completion(gateway, &kept.order).await?;
                ForgettingStep::Done.as_str().clone_into(&mut kept.order.step);
                return renew_claim(gateway, &mut kept).await;
            }
            Ok(next) => next.as_str().clone_into(&mut kept.order.step),
            Err(stuck) => {
                // It is told why, if it can be.
                drop(renew_claim(gateway, &mut kept).await);
                return Err(stuck);
            }
        }
        renew_claim(gateway, &mut kept).await?;
    }
}

/// Says that it is at it, and how far.
async fn renew_claim(gateway: &Gateway, kept: &mut OrderEntry) -> Result<(), OrderError> {
    gateway.bus.instance.as_str().clone_into(&mut kept.order.by);
    kept.order.until = gateway.bus.now().saturating_add(claim_duration(gateway)).unwrap_or(Timestamp::MAX);
    match gateway.orders.save_order(kept).await {
        Err(BusError::Conflict { .. }) => Err(OrderError::ClaimedElsewhere),
        kept => Ok(kept?),
    }
}

/// Does what is to be done at its step; the one behind it.
async fn run_step(gateway: &Gateway, kept: &mut OrderEntry) -> Result<ForgettingStep, OrderError> {
    match kept.order.step() {
        ForgettingStep::Asked => replace_key(gateway, &mut kept.order).await,
        ForgettingStep::Replaced => find_agents(gateway, kept).await,
        ForgettingStep::Found => destroy_keys(gateway, &kept.order).await,
        ForgettingStep::Destroyed => notify_agents(gateway, &kept.order).await,
        ForgettingStep::Told => replace_agent_keys(gateway, kept).await,
        ForgettingStep::Resealed => Ok(ForgettingStep::Rebuilding),
        ForgettingStep::Rebuilding => rebuild_projections(gateway, kept).await,
        ForgettingStep::Done => Ok(ForgettingStep::Done),
        ForgettingStep::Unknown(word) => Err(OrderError::Problem(format!("a newer gateway goes on with it at {word}"))),
    }
}

/// From here on what is new of the user is sealed with another key, as soon as everybody knows of it.
async fn replace_key(gateway: &Gateway, order: &mut ForgetOrder) -> Result<ForgettingStep, OrderError> {
    let holder = DataKeyHolder::User(order.user.as_str());
    order.generation = gateway.bus.replace_data_key(holder).await?.unwrap_or(0);
    Ok(ForgettingStep::Replaced)
}

/// Finds the agents that hold data of the user, once no replica encrypts with the old data key any more.
async fn find_agents(gateway: &Gateway, kept: &mut OrderEntry) -> Result<ForgettingStep, OrderError> {
    wait_for_key_expiry(gateway, kept).await?;
    kept.order.through = gateway.bus.end_sequence().await?;
    let snapshot = gateway.read_model.snapshot_at_least(kept.order.through, PATIENCE).await;
    let snapshot = snapshot.map_err(|error| OrderError::Problem(error.to_string()))?;
    let held = snapshot.user_holdings(kept.order.user.as_str()).await?;
    kept.order.agents = held.iter().filter_map(|held| Name::parse(&held.agent).ok()).collect();
    Ok(ForgettingStep::Found)
}

/// So long until every replica has read data keys anew.
async fn wait_for_key_expiry(gateway: &Gateway, kept: &mut OrderEntry) -> Result<(), OrderError> {
    let mut left = gateway.bus.data_key_age() + Duration::from_secs(1);
    while !left.is_zero() {
        let now = left.min(claim_interval(gateway));
        sleep(now).await;
        left -= now;
        renew_claim(gateway, kept).await?;
    }
    Ok(())
}

/// Nobody can read it any more.
async fn destroy_keys(gateway: &Gateway, order: &ForgetOrder) -> Result<ForgettingStep, OrderError> {
    end_sign_ins(gateway, &order.user).await?;
    gateway.bus.destroy_data_keys(DataKeyHolder::User(order.user.as_str()), order.generation).await?;
    Ok(ForgettingStep::Destroyed)
}

/// Nobody acts in the user's name at MCP servers any more.
async fn end_sign_ins(gateway: &Gateway, user: &Name) -> Result<(), OrderError> {
    let of_user = format!("*.{user}");
    if gateway.bus.read_values(SIGN_INS_BUCKET, &of_user).await?.is_empty() {
        return Ok(());
    }
    mcp_login::forget_sign_ins(gateway, user).await?;
    match gateway.bus.read_values(SIGN_INS_BUCKET, &of_user).await?.is_empty() {
        true => Ok(()),
        false => Err(OrderError::Problem(format!("{user} is still signed in at MCP servers"))),
    }
}

async fn notify_agents(gateway: &Gateway, order: &ForgetOrder) -> Result<ForgettingStep, OrderError> {
    for agent in &order.agents {
        let id = agent_notice_id(order.order_id, agent);
        let envelope = Envelope {
            correlation_id: order.order_id,
            causation_id: Some(order.order_id),
            ..Envelope::from_outside(id, Service::Gateway, Origin::User, gateway.bus.now())
        };
        let body = AgentForgotten { order_id: order.order_id.to_string(), user: order.user.to_string() };
        gateway.bus.publish(&OutgoingEvent::new(&AGENT_FORGOTTEN, agent, envelope, body)).await?;
    }
    Ok(ForgettingStep::Told)
}

/// Snapshots that were taken before their agents were told cannot be opened any more.
async fn replace_agent_keys(gateway: &Gateway, kept: &mut OrderEntry) -> Result<ForgettingStep, OrderError> {
    let mut before = Vec::new();
    for agent in &kept.order.agents {
        let holder = DataKeyHolder::Agent(agent.as_str());
        let replaced = gateway.bus.replace_data_key(holder).await?;
        before.extend(replaced.map(|replaced| (agent.clone(), replaced)));
    }
    wait_for_key_expiry(gateway, kept).await?;
    for (agent, newest) in before {
        gateway.bus.destroy_data_keys(DataKeyHolder::Agent(agent.as_str()), newest).await?;
    }
    Ok(ForgettingStep::Resealed)
}

/// The read models are built anew, from a log in which nothing of the user can be read; once they are built they answer queries, and
/// those before are removed.
async fn rebuild_projections(gateway: &Gateway, kept: &mut OrderEntry) -> Result<ForgettingStep, OrderError> {
    let search = gateway.search.is_configured().then_some(SEARCH);
    // The documents of a search engine are made from the tables.
    for projection in [Some(READ_MODEL), search].into_iter().flatten() {
        let generation = ensure_build(gateway, kept, projection).await?;
        wait_until_swapped(gateway, kept, projection, generation).await?;
        drop_older_generations(gateway, kept, projection, generation).await?;
    }
    // Nobody names them any more; the sweep would let them wait.
    sweep::remove_for_user(gateway, &kept.order.user, kept.order.given_at()).await?;
    Ok(ForgettingStep::Done)
}

/// Drops the generations before, and waits until they are gone.
async fn drop_older_generations(
    gateway: &Gateway,
    kept: &mut OrderEntry,
    projection: Projection,
    generation: i64,
) -> Result<(), OrderError> {
    let mut said = Instant::now();
    loop {
        let mut older = gateway.read_model.list_generations().await?;
        older.retain(|it| it.projection == projection.name && it.generation < generation);
        if older.is_empty() {
            return Ok(());
        }
        for older in older {
            if GenerationState::from(older.state.as_str()) != GenerationState::Dropping {
                gateway.read_model.request_drop(older.generation).await?;
            }
        }
        pause_and_renew(gateway, kept, &mut said).await?;
    }
}

/// A pause, in which it is said that somebody is at it.
async fn pause_and_renew(gateway: &Gateway, kept: &mut OrderEntry, said: &mut Instant) -> Result<(), OrderError> {
    sleep(LOOK).await;
    if said.elapsed() > claim_interval(gateway) {
        *said = Instant::now();
        renew_claim(gateway, kept).await?;
    }
    Ok(())
}

/// Begins to build a generation for the order, unless one was begun before; its number.
async fn ensure_build(gateway: &Gateway, kept: &mut OrderEntry, projection: Projection) -> Result<i64, OrderError> {
    let of = generation_of(&mut kept.order, projection);
    if *of == 0 {
        let name = projection.name;
        let before =
            || OrderError::Problem(format!("another generation of {name} is being built, which may have begun before"));
        *of = gateway.read_model.request_rebuild(projection).await?.ok_or_else(before)?;
        renew_claim(gateway, kept).await?;
    }
    Ok(*generation_of(&mut kept.order, projection))
}

async fn wait_until_swapped(
    gateway: &Gateway,
    kept: &mut OrderEntry,
    projection: Projection,
    generation: i64,
) -> Result<(), OrderError> {
    let mut said = Instant::now();
    loop {
        let generations = gateway.read_model.list_generations().await?;
        let built = generations.iter().find(|it| it.generation == generation);
        match built.map(|built| GenerationState::from(built.state.as_str())) {
            Some(GenerationState::Live) => return Ok(()),
            // What it differs in is what is forgotten.
            Some(GenerationState::Differing) => _ = gateway.read_model.request_swap(projection).await?,
            Some(GenerationState::Failed | GenerationState::Dropping | GenerationState::Kept) | None => {
                *generation_of(&mut kept.order, projection) = 0;
                let name = projection.name;
                return Err(OrderError::Problem(format!(
                    "generation {generation} of {name} was not built; it is built again"
                )));
            }
            Some(_) => {}
        }
        pause_and_renew(gateway, kept, &mut said).await?;
    }
}

fn generation_of(order: &mut ForgetOrder, projection: Projection) -> &mut i64 {
    if projection == SEARCH { &mut order.search } else { &mut order.read_model }
}

/// Says that it is done.
async fn publish_completion(gateway: &Gateway, order: &ForgetOrder) -> Result<(), OrderError> {
    let ForgetOrder { order_id, user, agents, through, .. } = order;
    let envelope = Envelope {
        correlation_id: *order_id,
        causation_id: Some(*order_id),
        ..Envelope::from_outside(ids::derive(*order_id, "done"), Service::Gateway, Origin::System, gateway.bus.now())
    };
    let body = UserForgotten {
        order_id: order_id.to_string(),
        user: user.to_string(),
        agents: agents.iter().map(Name::to_string).collect(),
        through: *through,
    };
    gateway.bus.publish(&OutgoingEvent::new(&USER_FORGOTTEN, user, envelope, body)).await?;
    tracing::info!(%user, order = %order_id, "a user is forgotten");
    Ok(())
}
