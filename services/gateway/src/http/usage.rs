//! `GET /v1/usage`: the tokens that models' calls took, and what they cost at the configured prices.

use std::collections::BTreeSet;

use axum::{Extension, extract::State};
use data_encoding::BASE64URL_NOPAD;
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use kairo_core::prices::{ModelPrice, ModelPrices, TokenCost, TokenCounts};
use kairo_proto::{
    v1::{CapRow, GetUsageResponse, UsageRow, UsageSum},
    words::CapOwner,
};
use kairo_read_model::{ModelUsage, ReadSnapshot, UsageGrouping, UsageKey, UsageQuery};
use serde_json::json;

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{
    auth::Caller,
    caps::{CapHolder, Caps, PricedUsage, SpendingTotals, applicable_caps, build_cap_rows as rows_of_caps},
    config::GatewayConfig,
    fields::{NAME, RequestFields, bounded_text, parse_name, parse_text, query_value},
    problem::Problem,
};

/// The dimensions by which usage can be grouped.
const PARTS: [&str; 6] = ["day", "agent", "user", "thread", "model", "module"];
const DAY: &str = "a day such as 2026-11-21";
/// Longest name of a model that is asked for, in bytes.
const MAX_MODEL_BYTES: usize = 200;
/// Longest name of a submodule that is asked for, in bytes.
const MAX_MODULE_BYTES: usize = 32;

/// The total usage of several calls, with the cost as a number.
#[derive(Clone, Copy)]
struct UsageTotal {
    calls: u64,
    failed: u64,
    input_tokens: u64,
    output_tokens: u64,
    latency_ms: u64,
    cached_tokens: u64,
    estimated_calls: u64,
    estimated_tokens: u64,
    /// None as soon as one of their models has no price, or tokens of a call are not known.
    cost: Option<TokenCost>,
}

impl Default for UsageTotal {
    fn default() -> Self {
        Self {
            calls: 0,
            failed: 0,
            input_tokens: 0,
            output_tokens: 0,
            latency_ms: 0,
            cached_tokens: 0,
            estimated_calls: 0,
            estimated_tokens: 0,
            cost: Some(TokenCost::default()),
        }
    }
}

impl UsageTotal {
    fn add_calls(&mut self, calls: &ModelUsage, prices: &ModelPrices) {
        for (sum, more) in [
            (&mut self.calls, calls.calls),
            (&mut self.failed, calls.failed),
            (&mut self.input_tokens, calls.input_tokens),
            (&mut self.output_tokens, calls.output_tokens),
            (&mut self.latency_ms, calls.latency_ms),
            (&mut self.cached_tokens, calls.cached_tokens),
            (&mut self.estimated_calls, calls.estimated_calls),
            (&mut self.estimated_tokens, calls.estimated_tokens),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.cost = self.cost.zip(cost_of_calls(calls, prices)).map(|(sum, cost)| sum.saturating_add(cost));
    }

    fn into_usage_sum(self) -> UsageSum {
        let Self { calls, failed, input_tokens, output_tokens, latency_ms, cost, .. } = self;
        let Self { cached_tokens, estimated_calls, estimated_tokens, .. } = self;
        UsageSum {
            calls,
            failed,
            input_tokens,
            output_tokens,
            latency_ms,
            cost: cost.map(|cost| cost.to_string()),
            cached_tokens,
            estimated_calls,
            estimated_tokens,
        }
    }
}

/// Calls that failed before they took anything cost nothing, whatever their model. What one took that was answered, and of which
/// nobody counted the tokens, is not known.
fn cost_of_calls(calls: &ModelUsage, prices: &ModelPrices) -> Option<TokenCost> {
    let &ModelUsage { input_tokens, cached_tokens, output_tokens, uncounted, .. } = calls;
    match (input_tokens, output_tokens) {
        _ if uncounted > 0 => None,
        (0, 0) => Some(TokenCost::default()),
        _ => {
            let usage = TokenCounts { input_tokens, cached_tokens, output_tokens };
            ModelPrice::of_model(prices, &calls.model).map(|price| price.cost_of(usage))
        }
    }
}

pub async fn get_usage(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetUsageResponse>>, Problem> {
    let wanted = asked.parse_with(|query| parse_query(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    // Of all that is selected, whatever the page is.
    let all = UsageQuery { by: UsageGrouping::default(), after: None, ..wanted.clone() };
    let calls = async { Ok((snapshot.model_usage(&wanted).await?, snapshot.model_usage(&all).await?)) };
    let (calls, all) = query::await_answer(&gateway, calls).await?;
    let prices = &gateway.config.prices;
    let (usage, last) = usage_rows(&calls, prices);
    let next_after = last.filter(|_| query::is_full_page(&usage, wanted.limit)).map(|last| encode_cursor(&last));
    let mut total = UsageTotal::default();
    all.iter().for_each(|calls| total.add_calls(calls, prices));
    let answer = GetUsageResponse {
        usage,
        total: Some(total.into_usage_sum()),
        currency: gateway.config.currency.clone(),
        unpriced: unpriced_models(&all, prices).into_iter().map(str::to_owned).collect(),
        next_after,
        caps: cap_rows(&gateway, &caller, &snapshot, &wanted).await?,
        ..Default::default()
    };
    Ok(PositionedResponse::from_snapshot(&snapshot, SortedJson(answer)))
}

/// The caps that hold for what is asked for, as far as the caller may know of them.
async fn cap_rows(
    gateway: &Gateway,
    caller: &Caller,
    snapshot: &ReadSnapshot,
    wanted: &UsageQuery,
) -> Result<Vec<CapRow>, Problem> {
    let now = Timestamp::now();
    let mut rows = Vec::new();
    if let Some(agent) = &wanted.agent {
        rows.extend(agent_cap_rows(gateway, snapshot, agent, now).await?);
    }
    let user = wanted.user.as_deref().or_else(|| caller.user());
    for (owner, caps) in applicable_caps(&gateway.config, caller, user) {
        // What all others spend is nothing for whoever is limited.
        if owner == CapHolder::Installation && (caller.user().is_some() || caller.agents().is_some()) {
            continue;
        }
        let spent = gateway.spending.spending_of(gateway, &owner, &caps, now).await?;
        rows.extend(caps.to_rows(&owner, &spent, now));
    }
    Ok(rows)
}

/// The caps of an agent, as the read model knows what it took. The agent itself, which keeps them, may know more.
async fn agent_cap_rows(
    gateway: &Gateway,
    snapshot: &ReadSnapshot,
    agent: &str,
    now: Timestamp,
) -> Result<Vec<CapRow>, Problem> {
    let row = query::await_answer(gateway, snapshot.find_agent(agent)).await?;
    let Some(profile) = row.and_then(|row| row.profile) else { return Ok(Vec::new()) };
    let Some(caps) = &profile.caps else { return Ok(Vec::new()) };
    let zone = TimeZone::get(&profile.time_zone).unwrap_or(TimeZone::UTC);
    let day = now.to_zoned(zone.clone()).date();
    let start = |day: Date| day.to_zoned(zone.clone()).ok().map(|start| start.timestamp());
    let since = caps.since.parse::<Timestamp>().ok();
    let of = |since| UsageQuery { agent: Some(agent.to_owned()), since, limit: 1, ..UsageQuery::default() };
    let today = of(start(day).max(since));
    let all = of(since);
    let usage = async { Ok((snapshot.model_usage(&today).await?, snapshot.model_usage(&all).await?)) };
    let (today, in_total) = query::await_answer(gateway, usage).await?;
    let taken =
        |usage: &[ModelUsage]| PricedUsage::from_usage(usage, &gateway.config.prices, gateway.config.fallback_price);
    let spent = SpendingTotals { today: taken(&today), in_total: taken(&in_total) };
    let next = day.tomorrow().ok().and_then(start);
    Ok(rows_of_caps(&CapOwner::Agent, Some(agent), &Caps::from(caps), &spent, next))
}

/// A row for each key, and the last key.
fn usage_rows(calls: &[ModelUsage], prices: &ModelPrices) -> (Vec<UsageRow>, Option<UsageKey>) {
    let of_keys = calls.chunk_by(|one, next| one.usage_key() == next.usage_key());
    let rows = of_keys.filter_map(|calls| {
        let mut sum = UsageTotal::default();
        calls.iter().for_each(|calls| sum.add_calls(calls, prices));
        Some(usage_row(calls.first()?.usage_key(), sum.into_usage_sum()))
    });
    (rows.collect(), calls.last().map(ModelUsage::usage_key))
}

/// None of what is not told apart, or where there is none.
fn usage_row(key: UsageKey, sum: UsageSum) -> UsageRow {
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let UsageSum { calls, failed, input_tokens, output_tokens, latency_ms, cost, .. } = sum;
    let UsageSum { cached_tokens, estimated_calls, estimated_tokens, .. } = sum;
    let UsageKey { day, agent, user, thread, model, module } = key;
    let day = some(day);
    let agent = some(agent);
    let user = some(user);
    let thread_id = some(thread);
    let model = some(model);
    let module = some(module);
    UsageRow {
        day,
        agent,
        user,
        thread_id,
        model,
        module,
        calls,
        failed,
        input_tokens,
        output_tokens,
        latency_ms,
        cost,
        cached_tokens,
        estimated_calls,
        estimated_tokens,
    }
}

/// The models of which tokens were used, and that have no price.
fn unpriced_models<'c>(calls: &'c [ModelUsage], prices: &ModelPrices) -> BTreeSet<&'c str> {
    let took = |calls: &&ModelUsage| calls.input_tokens > 0 || calls.output_tokens > 0;
    let unpriced = calls.iter().filter(took).filter(|calls| ModelPrice::of_model(prices, &calls.model).is_none());
    unpriced.map(|calls| calls.model.as_str()).collect()
}

fn parse_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<UsageQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let expected = format!("one or more of {}, with commas between", PARTS.join(", "));
    let by = fields.optional("by", expected, query_value(parse_grouping));
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, query_value(parse_name)).map(|user| user.to_string());
    let thread = fields.optional("thread", NAME, query_value(parse_name)).map(|thread| thread.to_string());
    let model =
        fields.optional("model", format!("1 to {MAX_MODEL_BYTES} bytes"), query_value(bounded_text(MAX_MODEL_BYTES)));
    let module = fields.optional(
        "module",
        format!("1 to {MAX_MODULE_BYTES} bytes"),
        query_value(bounded_text(MAX_MODULE_BYTES)),
    );
    let from = fields.optional("from", DAY, query_value(parse_text::<Date>));
    let to = fields.optional("to", DAY, query_value(parse_text::<Date>));
    let after = fields.optional("after", "next_after of the page before", query_value(decode_cursor));
    let limit = query::parse_limit(&mut fields, config);
    // Who says nothing wants to know what is paid for.
    let by = by.unwrap_or(UsageGrouping { model: true, ..UsageGrouping::default() });
    fields.complete(|| {
        Some(UsageQuery { by, agent, user, thread, model, module, from, to, after, limit, ..UsageQuery::default() })
    })
}

fn parse_grouping(text: &str) -> Option<UsageGrouping> {
    let mut by = UsageGrouping::default();
    for part in text.split(',') {
        *match part {
            "day" => &mut by.day,
            "agent" => &mut by.agent,
            "user" => &mut by.user,
            "thread" => &mut by.thread,
            "model" => &mut by.model,
            "module" => &mut by.module,
            _ => return None,
        } = true;
    }
    Some(by)
}

/// A key, as clients hand it back.
fn encode_cursor(key: &UsageKey) -> String {
    let parts = [&key.day, &key.agent, &key.user, &key.thread, &key.model, &key.module];
    BASE64URL_NOPAD.encode(json!(parts).to_string().as_bytes())
}

fn decode_cursor(text: &str) -> Option<UsageKey> {
    let json = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
    let [day, agent, user, thread, model, module] = serde_json::from_slice(&json).ok()?;
    Some(UsageKey { day, agent, user, thread, model, module })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(day: &str, model: &str, input_tokens: u64) -> ModelUsage {
        ModelUsage {
            day: day.into(),
            agent: String::new(),
            user: String::new(),
            thread: String::new(),
            model_key: String::new(),
            module: String::new(),
            model: model.into(),
            calls: 2,
            failed: 1,
            input_tokens,
            output_tokens: 0,
            latency_ms: 10,
            cached_tokens: 0,
            estimated_calls: 0,
            estimated_tokens: 0,
            uncounted: 0,
        }
    }

    fn prices() -> ModelPrices {
        serde_json::from_value(json!({ "large": { "input": 2, "output": 8, "cached": 1 } })).unwrap()
    }

    #[test]
    fn models_of_a_key_are_added_up() {
        let told =
            [calls("2026-11-20", "large", 500_000), calls("2026-11-20", "small", 0), calls("2026-11-21", "x", 1)];
        let (rows, last) = usage_rows(&told, &prices());
        let of = |row: &UsageRow| (row.day.clone().unwrap(), row.calls, row.cost.clone());
        assert_eq!(of(&rows[0]), ("2026-11-20".into(), 4, Some("1".into())));
        assert_eq!(of(&rows[1]), ("2026-11-21".into(), 2, None));
        assert_eq!((rows.len(), last.unwrap().day.as_str()), (2, "2026-11-21"));
        assert_eq!(unpriced_models(&told, &prices()), BTreeSet::from(["x"]));
    }

    #[test]
    fn what_comes_from_a_cache_has_its_price_and_what_nobody_counted_has_none() {
        let cached = ModelUsage { cached_tokens: 250_000, ..calls("2026-11-20", "large", 500_000) };
        let uncounted = ModelUsage { uncounted: 1, ..calls("2026-11-20", "large", 500_000) };
        let free = calls("2026-11-20", "x", 0);
        let told = [cached, uncounted.clone(), free]
            .map(|calls| cost_of_calls(&calls, &prices()).map(|cost| cost.to_string()));
        assert_eq!(told, [Some("0.75".to_owned()), None, Some("0".to_owned())]);
        assert!(unpriced_models(&[uncounted], &prices()).is_empty(), "its model has a price");
        let estimated = ModelUsage { estimated_calls: 1, estimated_tokens: 7, ..calls("2026-11-20", "large", 9) };
        let (rows, _) = usage_rows(&[estimated], &prices());
        assert_eq!((rows[0].estimated_calls, rows[0].estimated_tokens), (1, 7));
    }

    #[test]
    fn a_page_goes_on_where_it_ended() {
        let last = UsageKey { day: "2026-11-21".into(), agent: "bob".into(), ..UsageKey::default() };
        assert_eq!(decode_cursor(&encode_cursor(&last)), Some(last));
        for bad in ["x", "", "bnVsbA", "WyJhIl0"] {
            assert_eq!(decode_cursor(bad), None, "{bad}");
        }
    }

    #[test]
    fn everything_wrong_is_named() {
        let read = |query| parse_query(Some(query), &GatewayConfig::default());
        let query = "by=agent,hour&agent=A&user=*&thread=*&from=today&to=2026-02-30&after=x&limit=0&colour=red";
        let fields: Vec<_> = read(query).unwrap_err().errors.into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["by", "agent", "user", "thread", "from", "to", "after", "limit", "colour"]);
        let wanted = read("by=agent,day&model=gpt%2F5").unwrap();
        assert_eq!(wanted.by, UsageGrouping { day: true, agent: true, ..UsageGrouping::default() });
        assert_eq!(wanted.model.as_deref(), Some("gpt/5"));
        assert_eq!(read("").unwrap().by, UsageGrouping { model: true, ..UsageGrouping::default() });
    }
}
