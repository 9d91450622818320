//! Output of verifying a log, for people and for programs.

use kairo_core::{ids::Name, vocabulary::HASH_CHAINS};
use kairo_replay::{
    checkpoint::CheckpointComparison,
    proof::{AgentProof, Proof},
};
use serde_json::{Value, json};

use super::{
    super::replay::decision_lines,
    LogVerification,
    checkpoint_check::{CheckpointResult, SignatureCheck},
};
use crate::event_lines::printable;

/// Agents that are named of those that a file lacks.
const NAMED: usize = 20;

pub(super) fn verification_json(verified: &LogVerification) -> Value {
    let LogVerification { proof, missing, broken, is_redacted, is_opened, checkpoint: held } = verified;
    json!({
        "report": "kairo.verify.v1",
        "fits": verified.fits(),
        "agents": proof.agents,
        "read": proof.read,
        "stopped": proof.stopped,
        "gaps": proof.gaps,
        "missing": missing,
        "broken": broken,
        "redacted": is_redacted,
        "opened": is_opened,
        "checkpoint": held,
    })
}

pub(super) fn format_verification(verified: &LogVerification) -> Vec<String> {
    let LogVerification { proof, broken, is_redacted, is_opened, checkpoint: held, .. } = verified;
    let mut lines: Vec<String> = Vec::new();
    if *is_redacted {
        lines.push(
            "the file is redacted: its decisions carry no digests, so that no guess can be held to them. It is as it was exported \
             if nothing else is said; that the log was so, the file shows that is not redacted"
                .to_owned(),
        );
    } else if *is_opened {
        lines.push(
            "what users said is open in the file, and digests are of what is stored: verify the log itself, or export with --sealed"
                .to_owned(),
        );
    } else {
        lines.extend(proof.agents.iter().flat_map(format_agent_proof));
    }
    lines.extend(describe_gaps(&proof.gaps));
    lines.extend(broken.iter().map(|why| printable(why)));
    lines.extend(proof.stopped.iter().map(decision_lines::describe_stop));
    lines.extend(held.iter().flat_map(format_checkpoint_result));
    lines.push(match proof.first_misfit() {
        Some((agent, misfit)) => {
            format!("does NOT fit: message {} of {agent} is {} first", misfit.sequence, misfit.kind)
        }
        None if !verified.fits() => "does NOT fit".to_owned(),
        None if *is_redacted || *is_opened => "nothing is proven".to_owned(),
        None => "verified".to_owned(),
    });
    lines
}

/// Returns lines on what is proven of a log, and what is not.
pub(in super::super) fn format_proof(proof: &Proof) -> Vec<String> {
    let lines = proof.agents.iter().flat_map(format_agent_proof).chain(describe_gaps(&proof.gaps));
    lines.chain(proof.stopped.iter().map(decision_lines::describe_stop)).collect()
}

/// Describes the sequences at which no message stands; `None` if there are none.
fn describe_gaps(gaps: &[u64]) -> Option<String> {
    let (first, more) = gaps.split_first()?;
    let more =
        if more.is_empty() { String::new() } else { format!(", nor at {} more sequences behind it", more.len()) };
    Some(format!("no message stands at {first}{more}"))
}

fn format_agent_proof(proven: &AgentProof) -> Vec<String> {
    let AgentProof { agent, decisions, covered, uncovered, before_epoch, copies, from, misfit } = proven;
    let from = from.map(|from| format!(" from {from} on; what stands before is taken at its word")).unwrap_or_default();
    let fit = if misfit.is_some() { "fit" } else { "verified" };
    let mut lines = vec![format!(
        "{agent}: {} {fit}, with the {} that they rest on{from}",
        pluralize(*decisions, "decision"),
        pluralize(*covered, "message")
    )];
    let mut add = |count: u64, told: String| lines.extend((count > 0).then_some(format!("  not covered: {told}")));
    add(*uncovered, format!("{} from the last decision on", pluralize(*uncovered, "message")));
    add(*before_epoch, format!("{} from before epoch {HASH_CHAINS}", pluralize(*before_epoch, "decision")));
    lines.extend((*copies > 0).then(|| format!("  copies of decisions, counted once: {copies}")));
    lines.extend(misfit.as_ref().map(|it| format!("  message {} is {}: {}", it.sequence, it.kind, it.why)));
    lines
}

/// Formats a number of something for people, in the singular or the plural.
pub fn pluralize(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn format_checkpoint_result(held: &CheckpointResult) -> Vec<String> {
    let CheckpointResult { sequence, signature, difference, not_compared, agents, .. } = held;
    let signature = match signature {
        SignatureCheck::Good => "signed with the key that is named",
        SignatureCheck::OfItsOwnKey => {
            "signed with the key in it, which anybody may have made: name yours with --public-key"
        }
        SignatureCheck::Bad => "NOT signed with that key, or changed since",
        SignatureCheck::None => "not signed: it proves no more than the place where it was kept",
    };
    let came = match (difference, not_compared, agents) {
        (Some(difference), ..) => difference.to_string(),
        (None, Some(why), _) => format!("not compared: {why}"),
        (None, None, Some(agents)) => {
            let agents = pluralize(*agents as u64, "agent");
            format!(
                "the messages of {agents} up to there are those that it covers; nothing else that it covers was looked at"
            )
        }
        (None, None, None) => "the log up to there is what it says".to_owned(),
    };
    let mut lines = vec![format!("the checkpoint at {sequence} is {signature}"), format!("  {came}")];
    lines.extend(format_missing_parts(held));
    lines
}

/// Returns lines on what a checkpoint covers and the log lacks or has differently.
fn format_missing_parts(held: &CheckpointResult) -> Vec<String> {
    let CheckpointResult { difference: Some(_), compared: Some(compared), lacking, .. } = held else {
        return Vec::new();
    };
    let CheckpointComparison { sections, other_sections, messages, found, .. } = compared;
    let mut lines = Vec::new();
    if found < messages {
        let lost = pluralize(messages - found, "message");
        lines.push(format!("  it covers {}, of which {lost} are lacking", pluralize(*messages, "message")));
    }
    lines.push(format!("  {other_sections} of its {} are not as they were", pluralize(*sections, "section")));
    if !lacking.is_empty() {
        let named: Vec<&str> = lacking.iter().take(NAMED).map(Name::as_str).collect();
        let more = lacking.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("  it covers agents of which nothing is there: {}{more}", named.join(", ")));
    }
    lines.push("  what it says of an agent alone is compared with --agent".to_owned());
    lines
}
