//! `kairo usage`

use std::process::ExitCode;

use clap::Args;
use jiff::civil::Date;
use kairo_core::ids::Name;
use kairo_proto::v1::{GetUsageResponse, UsageRow, UsageSum};

use super::{Session, name};
use crate::{Error, event_lines::printable, table::table, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo usage
  kairo usage --by day,agent --from 2026-11-01
  kairo usage --agent default --by thread,model
  kairo usage --agent council --by module";

/// Show the tokens that agents' models took, and what they cost at the gateway's prices (gateway.prices)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// What is told apart: one or more of day, agent, user, thread, model and module (the submodule), with commas between
    #[arg(long, default_value = "agent,model", value_name = "PARTS")]
    by: String,
    /// Only of this agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
    /// Only for this user
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
    /// Only in this thread
    #[arg(long, value_parser = name, value_name = "NAME")]
    thread: Option<Name>,
    /// Only of this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Only of this submodule
    #[arg(long, value_name = "MODULE")]
    module: Option<String>,
    /// The first day, in UTC
    #[arg(long, value_name = "DAY")]
    from: Option<Date>,
    /// The last day, in UTC
    #[arg(long, value_name = "DAY")]
    to: Option<Date>,
    /// At most so many rows
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: u32,
    /// Rows behind these, as the end of a page says
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    if let Some(answer) = session.ask("v1/usage", &query(arguments)).await? {
        lines(&answer).into_iter().try_for_each(terminal::row)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn query(arguments: Arguments) -> Vec<(&'static str, String)> {
    let Arguments { by, agent, user, thread, model, module, from, to, limit, after } = arguments;
    let optional = [
        ("agent", agent.map(|agent| agent.to_string())),
        ("user", user.map(|user| user.to_string())),
        ("thread", thread.map(|thread| thread.to_string())),
        ("model", model),
        ("module", module),
        ("from", from.map(|day| day.to_string())),
        ("to", to.map(|day| day.to_string())),
        ("after", after),
    ];
    let given = optional.into_iter().filter_map(|(field, value)| Some((field, value?)));
    [("by", by), ("limit", limit.to_string())].into_iter().chain(given).collect()
}

fn lines(answer: &GetUsageResponse) -> Vec<String> {
    let text = |part: &Option<String>| printable(part.as_deref().unwrap_or_default());
    let row = |row: &UsageRow| {
        let of = [&row.day, &row.agent, &row.user, &row.thread_id, &row.model, &row.module].map(text);
        cells(of, [row.calls, row.failed, row.input_tokens, row.output_tokens], row.cost.as_deref())
    };
    let total = |sum: &UsageSum| {
        let of = ["total", "", "", "", "", ""].map(str::to_owned);
        cells(of, [sum.calls, sum.failed, sum.input_tokens, sum.output_tokens], sum.cost.as_deref())
    };
    let cost = format!("cost {}", printable(&answer.currency));
    let heads =
        ["day", "agent", "user", "thread", "model", "module", "calls", "failed", "input", "output", cost.as_str()];
    let mut lines = table(heads, answer.usage.iter().map(row).chain(answer.total.as_ref().map(total)));
    if !answer.unpriced.is_empty() {
        let models = printable(&answer.unpriced.join(", "));
        lines.push(format!("without a price: {models}; gateway.prices says what models cost"));
    }
    lines.extend(answer.next_after.iter().map(|next| format!("more: --after {}", printable(next))));
    lines
}

fn cells(
    [day, agent, user, thread, model, module]: [String; 6],
    numbers: [u64; 4],
    cost: Option<&str>,
) -> [String; 11] {
    let [calls, failed, input, output] = numbers.map(|number| number.to_string());
    let cost = cost.map_or_else(|| "?".to_owned(), printable);
    [day, agent, user, thread, model, module, calls, failed, input, output, cost]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_is_a_table_with_its_total_and_what_has_no_price() {
        let sum =
            |cost: Option<&str>| json!({"calls": 2, "failed": 1, "input_tokens": 70, "output_tokens": 9, "cost": cost});
        let mut row = sum(Some("0.125"));
        row.as_object_mut().unwrap().extend(
            json!({"day": null, "agent": "bob", "user": null, "thread_id": null, "model": "large"})
                .as_object()
                .unwrap()
                .clone(),
        );
        let answer: GetUsageResponse = serde_json::from_value(json!({
            "usage": [row], "total": sum(None), "currency": "EUR", "unpriced": ["odd\u{1b}"], "next_after": "abc",
        }))
        .unwrap();
        let text = lines(&answer).join("\n");
        for part in [
            "COST EUR",
            "bob                  large          2      1       70     9       0.125",
            "total",
            "9       ?",
            "without a price: odd;",
            "more: --after abc",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
