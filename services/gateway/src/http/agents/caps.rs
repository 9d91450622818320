//! Caps of a profile or an API key, as a client gives them, and whether money can be counted.

use jiff::Timestamp;
use kairo_core::{
    ids::Name,
    prices::{ModelPrice, ModelPrices},
    subjects::{BASIS, Service},
};
use kairo_mind::prices::PriceList;
use kairo_proto::v1::{AgentProfile, Caps, DecisionBasis};
use serde_json::Value;

use super::sessions::{COST, parse_cost, parse_tokens};
use crate::{
    config::GatewayConfig,
    fields::{RequestFields, json_text},
    http::Gateway,
    problem::{FieldError, Problem},
};

/// The field `caps`; none where it bounds nothing.
pub fn parse(fields: &mut RequestFields<Value>) -> Option<Caps> {
    let given = fields.optional("caps", "a JSON object", |it: &Value| it.is_object().then(|| it.clone()))?;
    let caps = RequestFields::from_nested(&given).and_then(parse_caps_fields);
    let caps = caps.map_err(|problem| fields.add_nested_errors("caps", problem)).ok();
    caps.filter(|caps| *caps != Caps::default())
}

fn parse_caps_fields(mut fields: RequestFields<Value>) -> Result<Caps, Problem> {
    let caps = Caps {
        tokens_per_day: parse_tokens(&mut fields, "tokens_per_day"),
        tokens_in_total: parse_tokens(&mut fields, "tokens_in_total"),
        cost_per_day: fields.optional("cost_per_day", COST, json_text(parse_cost)).unwrap_or_default(),
        cost_in_total: fields.optional("cost_in_total", COST, json_text(parse_cost)).unwrap_or_default(),
        since: String::new(),
    };
    fields.complete(|| Some(caps))
}

/// The profile with the time from which its caps are counted: that of the one in force, or now.
pub fn set_count_start(profile: AgentProfile, in_force: Option<&AgentProfile>) -> AgentProfile {
    let before = in_force.and_then(|before| before.caps.as_ref()).map(|caps| caps.since.clone());
    let since = before.unwrap_or_else(|| Timestamp::now().to_string());
    AgentProfile { caps: profile.caps.map(|caps| Caps { since, ..caps }), ..profile }
}

/// Refuses bounds in money that agent-runtime cannot keep, since a model that may be asked has no price. While it has not said which
/// models there are, nothing is refused: an agent stops where what it spends is not known.
pub async fn require_prices(gateway: &Gateway, profile: &AgentProfile) -> Result<(), Problem> {
    let bounds = cost_bounds(profile);
    if bounds.is_empty() {
        return Ok(());
    }
    let Some(basis) = load_build_pin(gateway).await? else { return Ok(()) };
    let Some((tier, model)) = find_unpriced_model(&basis) else { return Ok(()) };
    let expected = format!(
        "no bound in money, as the model {model} has no price: set models.{tier}.price (of a fallback, in models.{tier}.fallbacks) or \
         models.fallback_price of agent-runtime"
    );
    let wrong = bounds.into_iter().map(|(field, found)| FieldError {
        field: field.to_owned(),
        expected: expected.clone(),
        found: Some(found.to_owned()),
    });
    Err(Problem::invalid_fields(wrong.collect()))
}

fn cost_bounds(profile: &AgentProfile) -> Vec<(&'static str, &str)> {
    let caps = profile.caps.as_ref();
    let bounds = [
        ("caps.cost_per_day", caps.map(|it| it.cost_per_day.as_str())),
        ("caps.cost_in_total", caps.map(|it| it.cost_in_total.as_str())),
        ("session.cost", profile.session.as_ref().map(|it| it.cost.as_str())),
        ("task.cost", profile.task.as_ref().map(|it| it.cost.as_str())),
        ("cost_per_day", profile.team.as_ref().map(|it| it.cost_per_day.as_str())),
    ];
    let given = bounds.into_iter().filter_map(|(field, cost)| Some((field, cost.filter(|cost| !cost.is_empty())?)));
    given.collect()
}

/// A model that has no price, with its tier, where nothing counts instead.
fn find_unpriced_model(basis: &DecisionBasis) -> Option<(String, String)> {
    let list = PriceList::from_basis(basis);
    let listed = list.unpriced_models().next().map(|(tier, model)| (tier.to_owned(), model.to_owned()));
    // Before epoch 10 the basis says what the first model of each tier costs, and nothing of others.
    let first = || basis.models.iter().find(|it| it.price.is_none()).map(|it| (it.tier.clone(), it.model.clone()));
    if basis.prices.is_empty() { first() } else { listed }
}

/// Refuses caps in money of an API key that the gateway cannot keep.
pub async fn require_key_prices(gateway: &Gateway, caps: Option<&Caps>) -> Result<(), Problem> {
    let Some(caps) = caps else { return Ok(()) };
    let bounds = [("caps.cost_per_day", &caps.cost_per_day), ("caps.cost_in_total", &caps.cost_in_total)];
    let bounds: Vec<_> = bounds.into_iter().filter(|(_, cost)| !cost.is_empty()).collect();
    if bounds.is_empty() {
        return Ok(());
    }
    let GatewayConfig { prices, fallback_price, .. } = &*gateway.config;
    let basis = load_build_pin(gateway).await?;
    let Some(what) = uncountable_reason(basis.as_ref(), prices, *fallback_price) else { return Ok(()) };
    let wrong = bounds.into_iter().map(|(field, cost)| FieldError {
        field: field.to_owned(),
        expected: format!("no cap in money, as {what}: set gateway.prices or gateway.fallback_price"),
        found: Some(cost.clone()),
    });
    Err(Problem::invalid_fields(wrong.collect()))
}

/// Returns the reason why the gateway cannot count money, if there is one.
fn uncountable_reason(
    basis: Option<&DecisionBasis>,
    prices: &ModelPrices,
    fallback: Option<ModelPrice>,
) -> Option<String> {
    if fallback.is_some() {
        return None;
    }
    if prices.is_empty() {
        return Some("no model has a price".to_owned());
    }
    let models = basis.into_iter().flat_map(|basis| &basis.models);
    let mut models = models.flat_map(|it| std::iter::once(&it.model).chain(&it.fallbacks));
    let unpriced = models.find(|model| ModelPrice::of_model(prices, model).is_none())?;
    Some(format!("the model {unpriced} has no price"))
}

/// Returns the basis of current decisions, if any was made yet.
async fn load_build_pin(gateway: &Gateway) -> Result<Option<DecisionBasis>, Problem> {
    let Ok(runtime) = Name::parse(Service::AgentRuntime.name()) else { return Ok(None) };
    let last = gateway.bus.last_message(&BASIS.of_owner(&runtime)).await?;
    let read = last.and_then(|last| last.read(gateway.bus.limits.max_body_bytes).ok());
    Ok(read.and_then(|record| DecisionBasis::try_from(record.body).ok()))
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{BasisModel, BasisPrice, NamedPrice, SessionBounds};

    use super::*;

    #[test]
    fn what_the_runtime_asks_without_a_price_is_named() {
        let price = Some(BasisPrice { input: 1, output: 1, cached: None });
        let first = |price| BasisModel { tier: "heavy".into(), model: "a".into(), price, ..Default::default() };
        let named = |model: &str, price| NamedPrice { tier: "heavy".into(), model: model.into(), price };
        let basis = |first_price, prices: Vec<NamedPrice>, fallback_price| DecisionBasis {
            models: vec![first(first_price)],
            prices,
            fallback_price,
            ..Default::default()
        };
        let told = |basis: &DecisionBasis| find_unpriced_model(basis).map(|(_, model)| model);
        assert_eq!(told(&basis(None, Vec::new(), None)).as_deref(), Some("a"));
        assert_eq!(told(&basis(price, Vec::new(), None)), None);
        let both = vec![named("a", price), named("b", None)];
        assert_eq!(told(&basis(price, both.clone(), None)).as_deref(), Some("b"), "a fallback may be asked, too");
        assert_eq!(told(&basis(price, both, price)), None);
    }

    #[test]
    fn every_bound_in_money_is_found() {
        let profile = AgentProfile {
            caps: Some(Caps { cost_in_total: "5".into(), ..Default::default() }),
            session: Some(SessionBounds { cost: "1".into(), tokens: 3, ..Default::default() }),
            ..Default::default()
        };
        assert_eq!(cost_bounds(&profile), [("caps.cost_in_total", "5"), ("session.cost", "1")]);
        assert!(cost_bounds(&AgentProfile::default()).is_empty());
    }

    #[test]
    fn caps_are_counted_from_when_they_were_set() {
        let capped = |since: &str| AgentProfile {
            caps: Some(Caps { tokens_per_day: 5, since: since.into(), ..Default::default() }),
            ..Default::default()
        };
        let since = |profile: AgentProfile| profile.caps.unwrap().since;
        assert_eq!(since(set_count_start(capped(""), Some(&capped("t")))), "t");
        assert!(since(set_count_start(capped(""), None)).parse::<Timestamp>().is_ok());
        assert!(since(set_count_start(capped(""), Some(&AgentProfile::default()))).parse::<Timestamp>().is_ok());
        assert_eq!(set_count_start(AgentProfile::default(), Some(&capped("t"))).caps, None);
    }

    #[test]
    fn a_key_is_bounded_in_money_where_the_gateway_knows_prices() {
        let models = vec![BasisModel { model: "gpt-5".into(), fallbacks: vec!["odd".into()], ..Default::default() }];
        let basis = DecisionBasis { models, ..Default::default() };
        let prices = |text: &str| serde_json::from_str::<ModelPrices>(text).unwrap();
        let some = prices(r#"{ "gpt-*": { "input": 1, "output": 1 } }"#);
        let all = prices(r#"{ "*": { "input": 1, "output": 1 } }"#);
        assert_eq!(uncountable_reason(Some(&basis), &some, None).as_deref(), Some("the model odd has no price"));
        assert_eq!(uncountable_reason(Some(&basis), &all, None), None);
        assert_eq!(uncountable_reason(None, &ModelPrices::new(), None).as_deref(), Some("no model has a price"));
        assert_eq!(uncountable_reason(Some(&basis), &some, all.get("*").copied()), None);
    }
}
