//! Chains as trees: which steps ran, which run, and which are still to come. Pure.

use console::truncate_str;
use jiff::Timestamp;
use kairo_proto::v1::{ChainRow, ChainStepRow};
use kairo_proto::words::{ChainOrigin, StepState};

use crate::{event_lines::printable, rows, watch::short_id};

/// Columns of what a step was given and of what came of it; lines are cut to the screen besides.
const PARAMS: usize = 60;
const SAYS: usize = 100;
/// Lines of a plan.
const PLAN: usize = 20;

/// The chain's head, its plan, and a line for each step; those of a group stand on a branch of their own.
pub fn format_chain(chain: &ChainRow, now: Timestamp) -> Vec<String> {
    let mut lines = vec![head(chain, now)];
    let plan = printable(&chain.plan);
    let plan: Vec<&str> = plan.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines.extend(plan.iter().take(PLAN).map(|line| format!("│  {line}")));
    if plan.len() > PLAN {
        lines.push(format!("│  … and {} more lines", plan.len() - PLAN));
    }
    let groups: Vec<&[ChainStepRow]> = chain.steps.chunk_by(|one, other| one.group == other.group).collect();
    for (index, group) in groups.iter().enumerate() {
        let (branch, trunk) = if index + 1 == groups.len() { ("└─", "   ") } else { ("├─", "│  ") };
        match group {
            [step] => lines.push(format!("{branch} {}", line(step, now))),
            steps => {
                lines.push(format!("{branch} at once"));
                for (index, step) in steps.iter().enumerate() {
                    let twig = if index + 1 == steps.len() { "└─" } else { "├─" };
                    lines.push(format!("{trunk}{twig} {}", line(step, now)));
                }
            }
        }
    }
    lines
}

fn head(chain: &ChainRow, now: Timestamp) -> String {
    let took = rows::format_elapsed(chain.started_at, chain.ended_at, now).unwrap_or_default();
    let how = match (&chain.outcome, chain.reason.as_deref().unwrap_or_default()) {
        (None, _) => format!("runs for {took}"),
        (Some(outcome), "") => format!("{outcome} after {took}"),
        (Some(outcome), reason) => format!("{outcome} after {took}: {}", one_line(reason)),
    };
    format!("chain {} (of a {}) {how}", short_id(&chain.chain_id), describe_origin(chain))
}

/// Returns the origin of a chain, in words.
fn describe_origin(chain: &ChainRow) -> &str {
    match chain.origin_word() {
        ChainOrigin::Calls => "model's calls",
        _ => &chain.origin,
    }
}

fn line(step: &ChainStepRow, now: Timestamp) -> String {
    let took = rows::format_elapsed(step.begun_at, step.ended_at, now).map(|took| format!(" {took}"));
    let params = match rows::text(step.filled.as_ref().or(step.params.as_ref())) {
        "{}" | "null" => String::new(),
        params => format!(" {}", truncate_str(&one_line(params), PARAMS, "…")),
    };
    let decide = step.decide.as_deref().map(|decide| format!(" if {:?}", one_line(decide))).unwrap_or_default();
    let says = step.reason.as_deref().or(step.result.as_deref()).map(one_line).unwrap_or_default();
    let says = if says.is_empty() { says } else { format!(": {}", truncate_str(&says, SAYS, "…")) };
    format!(
        "{} {}. {}{params}{decide}  [{}{}]{says}",
        mark(&step.state_word()),
        step.step + 1,
        one_line(&step.event),
        step.state,
        took.unwrap_or_default(),
    )
}

/// Returns the symbol of a step's state; steps that are not over stand out.
fn mark(state: &StepState) -> &'static str {
    match state {
        StepState::Done => "✓",
        StepState::Failed | StepState::Stopped => "✗",
        StepState::Skipped => "-",
        StepState::Running => "▶",
        StepState::Asked => "?",
        StepState::Pending | StepState::Unknown(_) => "○",
    }
}

/// The text on one line, without what could steer a terminal.
pub fn one_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chain() -> ChainRow {
        let step = |step: u32, group: u32, event: &str, state: &str| json!({"step": step, "group": group, "event": event, "params": {}, "state": state});
        let mut steps = vec![
            step(0, 0, "tools.now", "done"),
            step(1, 1, "calendar.search", "running"),
            step(2, 1, "email.search", "asked"),
            step(3, 2, "agent.think", "pending"),
        ];
        steps[0]["result"] = json!("{\"date\":\n\"2026-01-01\"}");
        steps[1]["params"] = json!({"date": "{tools.now.date}"});
        steps[2]["params"] = json!({"from": "{tools.now.date}"});
        steps[2]["filled"] = json!({"from": "2026-01-01"});
        steps[1]["begun_at"] = json!("2026-01-01T00:00:02Z");
        steps[2]["decide"] = json!("if urgent");
        serde_json::from_value(json!({
            "chain_id": "1f0c2ab4-0000-0000-0000-000000000001", "origin": "plan", "plan": "1. Look\n\n2. Search\u{1b}",
            "started_at": "2026-01-01T00:00:00Z", "steps": steps,
        }))
        .unwrap()
    }

    #[test]
    fn a_chain_is_a_tree_in_which_parallel_steps_are_a_branch() {
        let now = "2026-01-01T00:01:05Z".parse().unwrap();
        assert_eq!(
            format_chain(&chain(), now),
            [
                "chain 1f0c2ab4 (of a plan) runs for 1m 5s",
                "│  1. Look",
                "│  2. Search",
                "├─ ✓ 1. tools.now  [done]: {\"date\": \"2026-01-01\"}",
                "├─ at once",
                "│  ├─ ▶ 2. calendar.search {\"date\":\"{tools.now.date}\"}  [running 1m 3s]",
                "│  └─ ? 3. email.search {\"from\":\"2026-01-01\"} if \"if urgent\"  [asked]",
                "└─ ○ 4. agent.think  [pending]",
            ]
        );
    }

    #[test]
    fn a_chain_that_is_over_says_how_it_ended() {
        let mut chain = chain();
        chain.ended_at = chain.started_at.map(|time| prost_types::Timestamp { seconds: time.seconds + 9, ..time });
        (chain.outcome, chain.reason) = (Some("broken".into()), Some("nothing\nis urgent".into()));
        chain.plan = "x\n".repeat(30);
        let lines = format_chain(&chain, "2026-01-01T00:01:05Z".parse().unwrap());
        assert_eq!(lines[0], "chain 1f0c2ab4 (of a plan) broken after 9s: nothing is urgent");
        assert_eq!(lines[PLAN + 1], "│  … and 10 more lines");
    }
}
