//! From a request to the answer the scenario has for it. Pure: the only state, how often rules
//! with `times` have answered, is asked for through a function.

use regex::Regex;

use crate::answer::SimulatedAnswer;
use crate::conversation::Conversation;
use crate::rendering::{Captures, plain_text, render_answer};
use crate::scenario::{AnswerPlan, Conditions, Scenario, Script, Times, TimesPer};
use crate::wire::part::ReceivedPart;

/// One use of a rule with `times`: which rule, counted for what, and how often it may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub rule: usize,
    pub counted_for: u64,
    pub limit: u32,
    /// And how long since it was first used, in milliseconds.
    pub within_ms: Option<u64>,
}

/// The answer of the first rule that matches. `claim` counts one use of a rule with `times` and
/// says whether it was still to be had; it is called only for a rule that matches otherwise.
pub fn answer<'s>(
    scenario: &'s Scenario,
    conversation: &Conversation<'_>,
    mut claim: impl FnMut(Claim) -> bool,
) -> SimulatedAnswer<'s> {
    let found = scenario.rules.iter().enumerate().find_map(|(index, rule)| {
        let plan = plan_of_round(&rule.script, conversation.round)?;
        let captures = match_conditions(&rule.when, conversation)?;
        let free = rule.times.is_none_or(|times| claim(claim_of(index, times, conversation)));
        free.then_some((rule, plan, captures))
    });
    match found {
        Some((rule, plan, captures)) => render_answer(scenario, rule, plan, conversation, &captures),
        None => SimulatedAnswer {
            rule: None,
            pace: scenario.pace,
            fault: None,
            forms: Vec::new(),
            reply: plain_text(
                conversation,
                format!(
                    "(model simulator) no rule of the scenario matches this request; \
                     the last user message is: {}",
                    conversation.user
                ),
            ),
        },
    }
}

fn plan_of_round(script: &Script, round: usize) -> Option<&AnswerPlan> {
    match script {
        Script::Always(plan) => Some(plan),
        Script::Rounds(plans) => plans.get(round),
    }
}

fn claim_of(rule: usize, times: Times, conversation: &Conversation<'_>) -> Claim {
    let counted_for = match times.per {
        TimesPer::Server => 0,
        TimesPer::Conversation => conversation.key(),
        TimesPer::Turn => conversation.turn_key(),
    };
    Claim { rule, counted_for, limit: times.limit, within_ms: times.within_ms }
}

/// None if a condition does not hold. The cheap ones are asked first.
fn match_conditions<'c>(when: &'c Conditions, conversation: &Conversation<'c>) -> Option<Captures<'c>> {
    let listed = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
    let holds = when.step.is_none_or(|step| conversation.results().len() == step)
        && when.step_at_least.is_none_or(|least| conversation.results().len() >= least)
        && when.round.is_none_or(|round| conversation.round == round)
        && listed(&when.models, conversation.model)
        && when.larger_than_tokens.is_none_or(|least| conversation.tokens() > least)
        && parts_match(when, conversation)
        && when.tools_offered.iter().all(|tool| conversation.offered.contains(&tool.as_str()));
    if !holds || !demands_match(when, conversation) {
        return None;
    }
    let mut captures = Captures::new();
    let texts_match = patterns_match(&when.user, || std::iter::once(conversation.user), &mut captures)
        && patterns_match(&when.system, || conversation.system_texts(), &mut captures)
        && patterns_match(&when.any_user, || conversation.user_texts(), &mut captures)
        && patterns_match(&when.conversation, || conversation.texts(), &mut captures);
    if !texts_match {
        return None;
    }
    if let Some(wanted) = &when.result {
        let fresh = conversation.results().iter().rev().take(conversation.fresh_results);
        let found = fresh.filter(|result| listed(&wanted.tools, result.tool)).find(|result| {
            wanted.status.is_none_or(|status| result.status() == status)
                && patterns_match(&wanted.content, || std::iter::once(result.content), &mut captures)
        });
        found?;
    }
    Some(captures)
}

/// Returns true if one of the demands is violated, and a call would be taken or not, as the conditions ask.
fn demands_match(when: &Conditions, conversation: &Conversation<'_>) -> bool {
    if when.violates.is_empty() && when.may_call.is_none() {
        return true;
    }
    let request = conversation.request_json();
    let may_call = !conversation.offered.is_empty() && request.get("tool_choice").is_none_or(|choice| choice != "none");
    when.may_call.is_none_or(|wanted| wanted == may_call)
        && (when.violates.is_empty() || when.violates.iter().any(|demand| demand.violation(&request).is_some()))
}

/// Returns true if the images and audio of the last user message are as the conditions ask.
fn parts_match(when: &Conditions, conversation: &Conversation<'_>) -> bool {
    let any = |fits: &dyn Fn(&ReceivedPart) -> bool| conversation.parts.iter().any(fits);
    let one_of = |list: &[String], said: fn(&ReceivedPart) -> &str| {
        list.is_empty() || any(&|part| list.iter().any(|one| one == said(part)))
    };
    when.has_image.is_none_or(|wanted| any(&|part| part.kind == "image") == wanted)
        && when.has_audio.is_none_or(|wanted| any(&|part| part.kind == "audio") == wanted)
        && when.has_video.is_none_or(|wanted| any(&|part| part.kind == "video") == wanted)
        && one_of(&when.part_sha256, |part| &part.sha256)
        && one_of(&when.part_media_type, |part| &part.media_type)
}

/// Returns true if each pattern is found in one of the texts; notes what its named groups matched there.
fn patterns_match<'c, Texts: Iterator<Item = &'c str>>(
    patterns: &'c [Regex],
    texts: impl Fn() -> Texts,
    captures: &mut Captures<'c>,
) -> bool {
    patterns.iter().all(|pattern| {
        // One group is the whole match: nothing to capture, so the cheaper question will do.
        if pattern.captures_len() == 1 {
            return texts().any(|text| pattern.is_match(text));
        }
        let Some(groups) = texts().find_map(|text| pattern.captures(text)) else { return false };
        for name in pattern.capture_names().flatten() {
            captures.insert(name, groups.name(name).map_or("", |group| group.as_str()));
        }
        true
    })
}

#[cfg(test)]
mod tests;
