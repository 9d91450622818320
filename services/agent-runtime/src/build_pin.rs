//! Writing into the log what decisions here rest on, before the first of them is made.

use std::time::Duration;

use kairo_core::{
    bus::{Bus, BusError, append::OutgoingEvent, consume::backoff_delay},
    envelope::{Envelope, Origin},
    ids::Name,
    prices::ModelPrice,
    subjects::{BASIS, Service},
    vocabulary::{ANSWERS, TEAMS},
};
use kairo_mind::{
    build_pin,
    deliberation::{DecisionLimits, MEMORY_RULES},
    prices::PriceList,
};
use kairo_proto::{
    Body,
    v1::{BasisModel, DecisionBasis},
};

use crate::config::{Config, ModelConfig};

/// Replicas may write at the same time; whoever comes later looks again.
const RACES: u32 = 16;

/// The basis of decisions under this configuration, in this epoch: from before it is known that threads are summed up, none
/// is.
pub fn from_config(config: &Config, epoch: u32) -> DecisionBasis {
    let models = config.models.tiers().map(|(tier, model)| basis_model(tier, model, epoch)).to_vec();
    // Builds of older epochs take all answers of a tier to cost what its first model does.
    let prices = if epoch >= ANSWERS { config.models.prices() } else { PriceList::default() };
    // Memories whose keywords are found later are none that older builds know.
    let memory_rules = if epoch >= ANSWERS { MEMORY_RULES } else { 0 };
    build_pin::for_build(
        &DecisionLimits { prices, memory_rules, ..config.agent_runtime.limits() },
        models,
        env!("KAIRO_COMMIT"),
    )
}

fn basis_model(tier: &str, config: &ModelConfig, epoch: u32) -> BasisModel {
    BasisModel {
        tier: tier.to_owned(),
        model: config.model.clone(),
        max_output_tokens: config.max_output_tokens,
        images: config.images,
        audio: config.audio,
        video: config.video,
        max_parts: u32::try_from(config.max_parts).unwrap_or(u32::MAX),
        max_parts_bytes: config.max_parts_bytes,
        price: config.price.map(ModelPrice::to_basis_price),
        context_tokens: if epoch >= TEAMS { config.counted_context() } else { 0 },
        fallbacks: config.fallbacks.iter().map(|fallback| fallback.model.clone()).collect(),
    }
}

/// Writes it, unless it stands in the log already, as soon as the server takes it.
pub async fn write_with_retry(bus: &Bus, config: &Config) -> DecisionBasis {
    let mut attempt = 0;
    loop {
        let error = match try_write(bus, config).await {
            Ok(basis) => return basis,
            Err(error) => error,
        };
        attempt += 1;
        tracing::warn!(%error, attempt, "what decisions rest on is not written yet, nothing is decided before");
        let pause: Duration = backoff_delay(&bus.limits, attempt);
        tokio::time::sleep(pause).await;
    }
}

async fn try_write(bus: &Bus, config: &Config) -> Result<DecisionBasis, BusError> {
    let basis = from_config(config, bus.current_epoch().await?);
    write(bus, &basis).await.map(|()| basis)
}

async fn write(bus: &Bus, basis: &DecisionBasis) -> Result<(), BusError> {
    let Ok(owner) = Name::parse(Service::AgentRuntime.name()) else { return Ok(()) };
    let subject = BASIS.of_owner(&owner);
    let mut conflict = Ok(());
    for _ in 0..RACES {
        // All that were ever written, which are few: builds side by side take turns in being the newest.
        // What bounds of money rest on is what the newest one says, so one that was in force before is written again.
        let mut last = 0;
        let mut known = false;
        bus.read_all(&subject, 0, |raw| {
            last = raw.sequence;
            let body = raw.without_carried_mark().read(bus.limits.max_body_bytes).map(|record| record.body);
            known = matches!(body, Ok(Body::DecisionBasis(written)) if written.digest == basis.digest);
        })
        .await?;
        if known {
            return Ok(());
        }
        let envelope = Envelope::from_outside(bus.new_id(), Service::AgentRuntime, Origin::System, bus.now());
        match bus.append(&OutgoingEvent::new(&BASIS, &owner, envelope, basis.clone()), last).await {
            Ok(_) => {
                tracing::info!(digest = basis.digest, version = basis.version, "what decisions rest on is written");
                return Ok(());
            }
            Err(error @ BusError::Conflict { .. }) => conflict = Err(error),
            Err(error) => return Err(error),
        }
    }
    conflict
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::BasisPrice;
    use serde_json::{Value, json};

    use super::*;

    fn prices(models: Value) -> Vec<Option<BasisPrice>> {
        let config = Config { models: serde_json::from_value(models).unwrap(), ..Config::default() };
        from_config(&config, TEAMS).models.into_iter().map(|model| model.price).collect()
    }

    #[test]
    fn from_epoch_10_on_it_says_what_every_model_costs_that_may_be_asked() {
        let other = json!({ "model": "b", "price": { "input": 3, "output": 4, "cached": 1 } });
        let heavy =
            json!({ "model": "a", "price": { "input": 1, "output": 2 }, "fallbacks": [other, { "model": "c" }] });
        let models = json!({ "heavy": heavy, "fallback_price": { "input": 9, "output": 9 } });
        let config = Config { models: serde_json::from_value(models).unwrap(), ..Config::default() };
        let basis = from_config(&config, ANSWERS);
        let told = basis.prices.iter().map(|it| (it.tier.as_str(), it.model.as_str(), it.price.is_some()));
        let each = [("a", true), ("b", true), ("c", false)];
        let expected = ["heavy", "fast", "light"].map(|tier| each.map(|(model, priced)| (tier, model, priced)));
        assert_eq!(told.collect::<Vec<_>>(), expected.concat());
        assert_eq!(basis.prices[1].price.unwrap().cached, Some(1_000_000));
        assert_eq!(basis.fallback_price.unwrap().input, 9_000_000);
        let before = from_config(&config, ANSWERS - 1);
        assert!(before.prices.is_empty() && before.fallback_price.is_none());
        assert_eq!((before.memory_rules, basis.memory_rules), (0, MEMORY_RULES));
    }

    #[test]
    fn it_names_the_commit_of_the_build() {
        let commit = from_config(&Config::default(), TEAMS).commit;
        // Nobody knows it where there is no repository.
        assert!(commit.is_empty() || commit.len() == 40, "{commit}");
    }

    #[test]
    fn it_says_the_price_of_each_tier_or_of_the_one_that_stands_for_it() {
        let price = |input, output| Some(BasisPrice { input, output, ..Default::default() });
        let dear = json!({ "input": 1.25, "output": "10" });
        let cheap = json!({ "input": 0.000001, "output": 0 });
        assert_eq!(prices(json!({})), [None, None, None]);
        assert_eq!(prices(json!({ "heavy": { "price": dear } })), [price(1_250_000, 10_000_000); 3]);
        let tiers = json!({ "heavy": { "price": dear }, "fast": { "price": cheap }, "light": {} });
        assert_eq!(prices(tiers), [price(1_250_000, 10_000_000), price(1, 0), None]);
    }
}
