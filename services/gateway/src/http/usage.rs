//! `GET /v1/usage`: the tokens that models' calls took, and what they cost at the configured prices.

use std::collections::BTreeSet;

use axum::{Extension, extract::State};
use data_encoding::BASE64URL_NOPAD;
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use kairo_core::prices::{Cost, Price, Prices, Usage};
use kairo_proto::{
    v1::{CapRow, GetUsageResponse, UsageRow, UsageSum},
    words::CapOwner,
};
use kairo_read_model::{ModelUsage, Snapshot, UsageBy, UsageKey, UsageQuery};
use serde_json::json;

use super::{
    Gateway,
    answer::Told,
    query,
    read_consistency::{Answer, Asked},
};
use crate::{
    auth::Caller,
    caps::{Caps, Owner, Spent, Taken, holding, rows as rows_of_caps},
    config::GatewayConfig,
    fields::{Fields, NAME, at_most, name, parsed, value},
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
struct Sum {
    calls: u64,
    failed: u64,
    input_tokens: u64,
    output_tokens: u64,
    latency_ms: u64,
    cached_tokens: u64,
    estimated_calls: u64,
    estimated_tokens: u64,
    /// None as soon as one of their models has no price, or tokens of a call are not known.
    cost: Option<Cost>,
}

impl Default for Sum {
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
            cost: Some(Cost::default()),
        }
    }
}

impl Sum {
    fn add(&mut self, calls: &ModelUsage, prices: &Prices) {
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
        self.cost = self.cost.zip(cost(calls, prices)).map(|(sum, cost)| sum.plus(cost));
    }

    fn shown(self) -> UsageSum {
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
fn cost(calls: &ModelUsage, prices: &Prices) -> Option<Cost> {
    let &ModelUsage { input_tokens, cached_tokens, output_tokens, uncounted, .. } = calls;
    match (input_tokens, output_tokens) {
        _ if uncounted > 0 => None,
        (0, 0) => Some(Cost::default()),
        _ => {
            let usage = Usage { input_tokens, cached_tokens, output_tokens };
            Price::of(prices, &calls.model).map(|price| price.cost_of(usage))
        }
    }
}

pub async fn get(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: Asked,
) -> Result<Answer<Told<GetUsageResponse>>, Problem> {
    let wanted = asked.read(|query| read(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    // Of all that is selected, whatever the page is.
    let all = UsageQuery { by: UsageBy::default(), after: None, ..wanted.clone() };
    let calls = async { Ok((snapshot.usage(&wanted).await?, snapshot.usage(&all).await?)) };
    let (calls, all) = query::answered(&gateway, calls).await?;
    let prices = &gateway.config.prices;
    let (usage, last) = rows(&calls, prices);
    let next_after = last.filter(|_| query::is_full(&usage, wanted.limit)).map(|last| cursor(&last));
    let mut total = Sum::default();
    all.iter().for_each(|calls| total.add(calls, prices));
    let answer = GetUsageResponse {
        usage,
        total: Some(total.shown()),
        currency: gateway.config.currency.clone(),
        unpriced: unpriced(&all, prices).into_iter().map(str::to_owned).collect(),
        next_after,
        caps: caps_of(&gateway, &caller, &snapshot, &wanted).await?,
        ..Default::default()
    };
    Ok(Answer::of(&snapshot, Told(answer)))
}

/// The caps that hold for what is asked for, as far as the caller may know of them.
async fn caps_of(
    gateway: &Gateway,
    caller: &Caller,
    snapshot: &Snapshot,
    wanted: &UsageQuery,
) -> Result<Vec<CapRow>, Problem> {
    let now = Timestamp::now();
    let mut rows = Vec::new();
    if let Some(agent) = &wanted.agent {
        rows.extend(caps_of_agent(gateway, snapshot, agent, now).await?);
    }
    let user = wanted.user.as_deref().or_else(|| caller.user());
    for (owner, caps) in holding(&gateway.config, caller, user) {
        // What all others spend is nothing for whoever is limited.
        if owner == Owner::Installation && (caller.user().is_some() || caller.agents().is_some()) {
            continue;
        }
        let spent = gateway.spending.of(gateway, &owner, &caps, now).await?;
        rows.extend(caps.rows(&owner, &spent, now));
    }
    Ok(rows)
}

/// The caps of an agent, as the read model knows what it took. The agent itself, which keeps them, may know more.
async fn caps_of_agent(
    gateway: &Gateway,
    snapshot: &Snapshot,
    agent: &str,
    now: Timestamp,
) -> Result<Vec<CapRow>, Problem> {
    let row = query::answered(gateway, snapshot.agent(agent)).await?;
    let Some(profile) = row.and_then(|row| row.profile) else { return Ok(Vec::new()) };
    let Some(caps) = &profile.caps else { return Ok(Vec::new()) };
    let zone = TimeZone::get(&profile.time_zone).unwrap_or(TimeZone::UTC);
    let day = now.to_zoned(zone.clone()).date();
    let start = |day: Date| day.to_zoned(zone.clone()).ok().map(|start| start.timestamp());
    let since = caps.since.parse::<Timestamp>().ok();
    let of = |since| UsageQuery { agent: Some(agent.to_owned()), since, limit: 1, ..UsageQuery::default() };
    let (today, all) = (of(start(day).max(since)), of(since));
    let usage = async { Ok((snapshot.usage(&today).await?, snapshot.usage(&all).await?)) };
    let (today, in_total) = query::answered(gateway, usage).await?;
    let taken = |usage: &[ModelUsage]| Taken::of(usage, &gateway.config.prices, gateway.config.fallback_price);
    let spent = Spent { today: taken(&today), in_total: taken(&in_total) };
    let next = day.tomorrow().ok().and_then(start);
    Ok(rows_of_caps(&CapOwner::Agent, Some(agent), &Caps::from(caps), &spent, next))
}

/// A row for each key, and the last key.
fn rows(calls: &[ModelUsage], prices: &Prices) -> (Vec<UsageRow>, Option<UsageKey>) {
    let of_keys = calls.chunk_by(|one, next| one.key() == next.key());
    let rows = of_keys.filter_map(|calls| {
        let mut sum = Sum::default();
        calls.iter().for_each(|calls| sum.add(calls, prices));
        Some(row(calls.first()?.key(), sum.shown()))
    });
    (rows.collect(), calls.last().map(ModelUsage::key))
}

/// None of what is not told apart, or where there is none.
fn row(key: UsageKey, sum: UsageSum) -> UsageRow {
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let UsageSum { calls, failed, input_tokens, output_tokens, latency_ms, cost, .. } = sum;
    let UsageSum { cached_tokens, estimated_calls, estimated_tokens, .. } = sum;
    let UsageKey { day, agent, user, thread, model, module } = key;
    let (day, agent, user, thread_id, model) = (some(day), some(agent), some(user), some(thread), some(model));
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
fn unpriced<'c>(calls: &'c [ModelUsage], prices: &Prices) -> BTreeSet<&'c str> {
    let took = |calls: &&ModelUsage| calls.input_tokens > 0 || calls.output_tokens > 0;
    let unpriced = calls.iter().filter(took).filter(|calls| Price::of(prices, &calls.model).is_none());
    unpriced.map(|calls| calls.model.as_str()).collect()
}

fn read(url_query: Option<&str>, config: &GatewayConfig) -> Result<UsageQuery, Problem> {
    let mut fields = Fields::from_query(url_query);
    let expected = format!("one or more of {}, with commas between", PARTS.join(", "));
    let by = fields.optional("by", expected, value(by));
    let agent = fields.optional("agent", NAME, value(name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, value(name)).map(|user| user.to_string());
    let thread = fields.optional("thread", NAME, value(name)).map(|thread| thread.to_string());
    let model = fields.optional("model", format!("1 to {MAX_MODEL_BYTES} bytes"), value(at_most(MAX_MODEL_BYTES)));
    let module = fields.optional("module", format!("1 to {MAX_MODULE_BYTES} bytes"), value(at_most(MAX_MODULE_BYTES)));
    let from = fields.optional("from", DAY, value(parsed::<Date>));
    let to = fields.optional("to", DAY, value(parsed::<Date>));
    let after = fields.optional("after", "next_after of the page before", value(key));
    let limit = query::limit(&mut fields, config);
    // Who says nothing wants to know what is paid for.
    let by = by.unwrap_or(UsageBy { model: true, ..UsageBy::default() });
    fields.complete(|| {
        Some(UsageQuery { by, agent, user, thread, model, module, from, to, after, limit, ..UsageQuery::default() })
    })
}

fn by(text: &str) -> Option<UsageBy> {
    let mut by = UsageBy::default();
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
fn cursor(key: &UsageKey) -> String {
    let parts = [&key.day, &key.agent, &key.user, &key.thread, &key.model, &key.module];
    BASE64URL_NOPAD.encode(json!(parts).to_string().as_bytes())
}

fn key(text: &str) -> Option<UsageKey> {
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

    fn prices() -> Prices {
        serde_json::from_value(json!({ "large": { "input": 2, "output": 8, "cached": 1 } })).unwrap()
    }

    #[test]
    fn models_of_a_key_are_added_up() {
        let told =
            [calls("2026-11-20", "large", 500_000), calls("2026-11-20", "small", 0), calls("2026-11-21", "x", 1)];
        let (rows, last) = rows(&told, &prices());
        let of = |row: &UsageRow| (row.day.clone().unwrap(), row.calls, row.cost.clone());
        assert_eq!(of(&rows[0]), ("2026-11-20".into(), 4, Some("1".into())));
        assert_eq!(of(&rows[1]), ("2026-11-21".into(), 2, None));
        assert_eq!((rows.len(), last.unwrap().day.as_str()), (2, "2026-11-21"));
        assert_eq!(unpriced(&told, &prices()), BTreeSet::from(["x"]));
    }

    #[test]
    fn what_comes_from_a_cache_has_its_price_and_what_nobody_counted_has_none() {
        let cached = ModelUsage { cached_tokens: 250_000, ..calls("2026-11-20", "large", 500_000) };
        let uncounted = ModelUsage { uncounted: 1, ..calls("2026-11-20", "large", 500_000) };
        let free = calls("2026-11-20", "x", 0);
        let told = [cached, uncounted.clone(), free].map(|calls| cost(&calls, &prices()).map(|cost| cost.to_string()));
        assert_eq!(told, [Some("0.75".to_owned()), None, Some("0".to_owned())]);
        assert!(unpriced(&[uncounted], &prices()).is_empty(), "its model has a price");
        let estimated = ModelUsage { estimated_calls: 1, estimated_tokens: 7, ..calls("2026-11-20", "large", 9) };
        let (rows, _) = rows(&[estimated], &prices());
        assert_eq!((rows[0].estimated_calls, rows[0].estimated_tokens), (1, 7));
    }

    #[test]
    fn a_page_goes_on_where_it_ended() {
        let last = UsageKey { day: "2026-11-21".into(), agent: "bob".into(), ..UsageKey::default() };
        assert_eq!(key(&cursor(&last)), Some(last));
        for bad in ["x", "", "bnVsbA", "WyJhIl0"] {
            assert_eq!(key(bad), None, "{bad}");
        }
    }

    #[test]
    fn everything_wrong_is_named() {
        let read = |query| read(Some(query), &GatewayConfig::default());
        let query = "by=agent,hour&agent=A&user=*&thread=*&from=today&to=2026-02-30&after=x&limit=0&colour=red";
        let fields: Vec<_> = read(query).unwrap_err().errors.into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["by", "agent", "user", "thread", "from", "to", "after", "limit", "colour"]);
        let wanted = read("by=agent,day&model=gpt%2F5").unwrap();
        assert_eq!(wanted.by, UsageBy { day: true, agent: true, ..UsageBy::default() });
        assert_eq!(wanted.model.as_deref(), Some("gpt/5"));
        assert_eq!(read("").unwrap().by, UsageBy { model: true, ..UsageBy::default() });
    }
}
