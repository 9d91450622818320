//! `GET /v1/usage`: the tokens that models' calls took, and what they cost at the configured prices.

use std::collections::BTreeSet;

use axum::extract::State;
use data_encoding::BASE64URL_NOPAD;
use jiff::civil::Date;
use kairo_core::prices::{Cost, Price, Prices};
use kairo_proto::v1::{GetUsageResponse, UsageRow, UsageSum};
use kairo_read_model::{ModelUsage, UsageBy, UsageKey, UsageQuery};
use serde_json::json;

use super::{
    Gateway,
    answer::Told,
    query,
    read_consistency::{Answer, Asked},
};
use crate::{
    config::GatewayConfig,
    fields::{Fields, NAME, at_most, name, parsed, value},
    problem::Problem,
};

/// What usage can be told apart by.
const PARTS: [&str; 6] = ["day", "agent", "user", "thread", "model", "module"];
const DAY: &str = "a day such as 2026-11-21";
/// Longest name of a model that is asked for, in bytes.
const MAX_MODEL_BYTES: usize = 200;
/// Longest name of a submodule that is asked for, in bytes.
const MAX_MODULE_BYTES: usize = 32;

/// What calls took together, with the cost as a number.
#[derive(Clone, Copy)]
struct Sum {
    calls: u64,
    failed: u64,
    input_tokens: u64,
    output_tokens: u64,
    latency_ms: u64,
    /// None as soon as one of their models has no price.
    cost: Option<Cost>,
}

impl Default for Sum {
    fn default() -> Self {
        Self { calls: 0, failed: 0, input_tokens: 0, output_tokens: 0, latency_ms: 0, cost: Some(Cost::default()) }
    }
}

impl Sum {
    fn add(&mut self, calls: &ModelUsage, prices: &Prices) {
        self.calls += calls.calls;
        self.failed += calls.failed;
        self.input_tokens = self.input_tokens.saturating_add(calls.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(calls.output_tokens);
        self.latency_ms += calls.latency_ms;
        self.cost = self.cost.zip(cost(calls, prices)).map(|(sum, cost)| sum.plus(cost));
    }

    fn shown(self) -> UsageSum {
        let Self { calls, failed, input_tokens, output_tokens, latency_ms, cost } = self;
        UsageSum { calls, failed, input_tokens, output_tokens, latency_ms, cost: cost.map(|cost| cost.to_string()) }
    }
}

/// Calls that took nothing cost nothing, whatever their model.
fn cost(calls: &ModelUsage, prices: &Prices) -> Option<Cost> {
    match (calls.input_tokens, calls.output_tokens) {
        (0, 0) => Some(Cost::default()),
        (input, output) => Price::of(prices, &calls.model).map(|price| price.cost(input, output)),
    }
}

pub async fn get(State(gateway): State<Gateway>, asked: Asked) -> Result<Answer<Told<GetUsageResponse>>, Problem> {
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
        ..Default::default()
    };
    Ok(Answer::of(&snapshot, Told(answer)))
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
    let UsageSum { calls, failed, input_tokens, output_tokens, latency_ms, cost } = sum;
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
    }
}

/// The models of which tokens were used, and that have no price.
fn unpriced<'c>(calls: &'c [ModelUsage], prices: &Prices) -> BTreeSet<&'c str> {
    let unpriced = calls.iter().filter(|calls| cost(calls, prices).is_none());
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
    fields.complete(|| Some(UsageQuery { by, agent, user, thread, model, module, from, to, after, limit }))
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
        }
    }

    fn prices() -> Prices {
        serde_json::from_value(json!({ "large": { "input": 2, "output": 8 } })).unwrap()
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
