//! `kairo usage`

use std::process::ExitCode;

use clap::Args;
use jiff::civil::Date;
use kairo_core::ids::Name;
use kairo_proto::v1::{CapRow, GetUsageResponse, UsageRow, UsageSum};

use super::{GatewaySession, name};
use crate::{Error, event_lines::printable, rows, table::table, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo usage
  kairo usage --by day,agent --from 2026-11-01
  kairo usage --agent default --by thread,model
  kairo usage --agent council --by module";

/// Show the tokens that agents' models took, and what they cost at the gateway's prices (gateway.prices)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct UsageArgs {
    /// Breakdown: one or more of day, agent, user, thread, model and module (the submodule), with commas between
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

pub(super) async fn run(arguments: UsageArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    if let Some(answer) = session.get_or_print_json("v1/usage", &build_query(arguments)).await? {
        format_usage(&answer).into_iter().try_for_each(terminal::row)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn build_query(arguments: UsageArgs) -> Vec<(&'static str, String)> {
    let UsageArgs { by, agent, user, thread, model, module, from, to, limit, after } = arguments;
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

fn format_usage(answer: &GetUsageResponse) -> Vec<String> {
    let text = |part: &Option<String>| printable(part.as_deref().unwrap_or_default());
    let row = |row: &UsageRow| {
        let of = [&row.day, &row.agent, &row.user, &row.thread_id, &row.model, &row.module].map(text);
        let numbers =
            [row.calls, row.failed, row.input_tokens, row.cached_tokens, row.output_tokens, row.estimated_tokens];
        usage_cells(of, numbers, row.cost.as_deref())
    };
    let total = |sum: &UsageSum| {
        let of = ["total", "", "", "", "", ""].map(str::to_owned);
        let numbers =
            [sum.calls, sum.failed, sum.input_tokens, sum.cached_tokens, sum.output_tokens, sum.estimated_tokens];
        usage_cells(of, numbers, sum.cost.as_deref())
    };
    let cost = format!("cost {}", printable(&answer.currency));
    let of = ["day", "agent", "user", "thread", "model", "module", "calls", "failed"];
    let numbers = ["input", "cached", "output", "estimated", cost.as_str()];
    let mut heads = [""; 13];
    of.iter().chain(&numbers).zip(&mut heads).for_each(|(name, head)| *head = name);
    let mut lines = table(heads, answer.usage.iter().map(row).chain(answer.total.as_ref().map(total)));
    if answer.total.as_ref().is_some_and(|total| total.estimated_calls > 0) {
        lines.push(
            "estimated: tokens of calls whose model server told none; they are among input and output".to_owned(),
        );
    }
    lines.extend(answer.caps.iter().map(describe_cap));
    if !answer.unpriced.is_empty() {
        let models = printable(&answer.unpriced.join(", "));
        lines.push(format!("without a price: {models}; gateway.prices says what models cost"));
    }
    lines.extend(answer.next_after.iter().map(|next| format!("more: --after {}", printable(next))));
    lines
}

/// A cap, and what is left of it.
fn describe_cap(row: &CapRow) -> String {
    let whose = [Some(row.of.as_str()), row.name.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "an unknown amount".to_owned());
    let spent = or_unknown(&row.spent);
    let left = or_unknown(&row.left);
    let anew = rows::time(row.resets_at).map(|at| format!(", begins anew at {at:.0}")).unwrap_or_default();
    printable(&format!("cap of {whose}: {} {}: {spent} spent, {left} left{anew}", row.cap, row.limit))
}

fn usage_cells(
    [day, agent, user, thread, model, module]: [String; 6],
    numbers: [u64; 6],
    cost: Option<&str>,
) -> [String; 13] {
    let [calls, failed, input, cached, output, estimated] = numbers.map(|number| number.to_string());
    let cost = cost.map_or_else(|| "?".to_owned(), printable);
    [day, agent, user, thread, model, module, calls, failed, input, cached, output, estimated, cost]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_is_a_table_with_its_total_and_what_has_no_price() {
        let sum = |cost: Option<&str>| {
            json!({"calls": 2, "failed": 1, "input_tokens": 70, "output_tokens": 9, "cost": cost, "cached_tokens": 60,
            "estimated_calls": 1, "estimated_tokens": 5})
        };
        let mut row = sum(Some("0.125"));
        row.as_object_mut().unwrap().extend(
            json!({"day": null, "agent": "bob", "user": null, "thread_id": null, "model": "large"})
                .as_object()
                .unwrap()
                .clone(),
        );
        let answer: GetUsageResponse = serde_json::from_value(json!({
            "usage": [row], "total": sum(None), "currency": "EUR", "unpriced": ["odd\u{1b}"], "next_after": "abc",
            "caps": [{"of": "agent", "name": "bob", "cap": "cost_per_day", "limit": "2.5", "spent": null, "left": null},
                {"of": "installation", "name": null, "cap": "tokens_in_total", "limit": "100", "spent": "60", "left": "40"}],
        }))
        .unwrap();
        let text = format_usage(&answer).join("\n");
        for part in [
            "COST EUR",
            "bob                  large          2      1       70     60      9       5          0.125",
            "total",
            "9       5          ?",
            "estimated: tokens of calls whose model server told none",
            "cap of agent bob: cost_per_day 2.5: an unknown amount spent, an unknown amount left",
            "cap of installation: tokens_in_total 100: 60 spent, 40 left",
            "without a price: odd;",
            "more: --after abc",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
