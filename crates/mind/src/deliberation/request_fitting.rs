//! Requests that their models take: what is oldest is left out first, then the middle of what is longest, then the oldest calls of the
//! turn. The system prompt and the tools stay as they are.

use serde_json::json;

use super::Deliberation;
use crate::{
    model_health::reported_context,
    request::{ModelRequest, PromptMessage, blocks_offset},
    tokens,
    truncation::without_range,
};

/// Shortest length to which a text is cut for a request, in tokens.
const LEAST_TOKENS: usize = 32;
/// Rounds of cutting: what a text takes in tokens is known only once it is cut.
const ROUNDS: usize = 6;

/// Returns the tokens that a request may take if its endpoint says that the model takes `told`: three quarters, since a
/// model's own counts differ and its answer takes some. Where `fixed`, which is never left out, takes nearly all, the
/// request may take `fixed` and half of the rest.
fn usable_tokens(told: usize, fixed: usize) -> usize {
    (told / 4 * 3).max(fixed + told.saturating_sub(fixed) / 2)
}

/// Shortens a request that was too much for its model: to what the endpoint says or, where it does not say or that was too much, to
/// half of what can be left out. False where nothing is left to shorten.
pub(super) fn shorten(request: &mut ModelRequest, told: Option<usize>) -> bool {
    let all = tokens::of_request(request);
    let fixed = fixed_tokens(request);
    let told = told.map(|told| usable_tokens(told, fixed)).filter(|most| *most < all);
    fit(request, told.unwrap_or_else(|| fixed + all.saturating_sub(fixed) / 2))
}

/// Tokens of what is never left out: the system prompt and the tools.
pub(super) fn fixed_tokens(request: &ModelRequest) -> usize {
    let system = request.messages.iter().take(system_message_count(request)).map(tokens::of_message);
    system.chain(request.tools.iter().map(tokens::of_tool)).sum()
}

/// Makes a request take at most so many tokens, as far as that can be done. False where it was not made smaller.
pub(super) fn fit(request: &mut ModelRequest, most: usize) -> bool {
    fit_with_mode(request, most, CutMode::AsLittleAsNeeded)
}

/// The amount of the oldest messages to leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutMode {
    AsLittleAsNeeded,
    /// Up to half of what there is room for, so that the next requests begin at the same place, and what stands before an answer is
    /// the same for as long as possible.
    InLargeSteps,
}

/// Makes a request take at most `most` tokens where possible, leaving out the oldest messages as `cut` says. Returns
/// false if it was not made smaller.
pub(super) fn fit_with_mode(request: &mut ModelRequest, most: usize, cut: CutMode) -> bool {
    let before = tokens::of_request(request);
    if before <= most {
        return false;
    }
    leave_out_exchanges(request, before, most, cut);
    if tokens::of_request(request) > most {
        request.replace_media_with_words("left out: the request was too long");
    }
    cut_texts(request, most);
    leave_out_calls(request, most);
    tokens::of_request(request) < before
}

impl Deliberation<'_> {
    /// Tokens that the models of a tier take at once: as configured or, where that is less, as an endpoint has said.
    pub(super) fn context_tokens_of(&self, tier: &str) -> Option<usize> {
        let configured = self.limits.context_tokens.get(tier).copied().filter(|most| *most > 0);
        configured.into_iter().chain(self.reported_context_of(tier)).min()
    }

    fn reported_context_of(&self, tier: &str) -> Option<usize> {
        let of_tier = self.decision.completions.iter().rev().filter(|completion| completion.tier == tier);
        let here = of_tier.filter_map(reported_context).next();
        let told = here.or_else(|| self.mind.models.context_tokens(tier, &self.limits.basis))?;
        usize::try_from(told).ok()
    }

    /// Shortens a request before it is sent, where it is known that its model does not take it. Nothing is kept back for the answer
    /// of what is configured: it may be generous.
    pub(super) fn fit_to_model(&self, request: &mut ModelRequest) {
        if self.limits.is_of_old_build() {
            return;
        }
        let configured = self.limits.context_tokens.get(request.tier).copied().filter(|most| *most > 0);
        let told = self.reported_context_of(request.tier).map(|told| usable_tokens(told, fixed_tokens(request)));
        if let Some(most) = configured.into_iter().chain(told).min()
            && tokens::count_over(request, most).is_some()
        {
            let cut = if self.limits.memory_rules > 0 { CutMode::InLargeSteps } else { CutMode::AsLittleAsNeeded };
            fit_with_mode(request, most, cut);
        }
    }
}

/// Returns the number of messages in the system prompt: 0 or 1.
fn system_message_count(request: &ModelRequest) -> usize {
    usize::from(matches!(request.messages.first(), Some(PromptMessage::System { .. })))
}

/// Leaves out the oldest of what was said, each time a user's words with all that followed, but for the last.
fn leave_out_exchanges(request: &mut ModelRequest, tokens: usize, most: usize, cut: CutMode) {
    let first = system_message_count(request);
    let begins = |(at, message): (usize, &PromptMessage)| {
        (at > first && matches!(message, PromptMessage::User { .. })).then_some(at)
    };
    let mut left = tokens;
    let mut end = first;
    let mut from = first;
    let mut best: Option<u64> = None;
    for begin in request.messages.iter().enumerate().filter_map(begins) {
        let is_enough = left <= most;
        if is_enough && cut == CutMode::AsLittleAsNeeded {
            break;
        }
        let exchange = request.messages.get(from..begin).unwrap_or_default();
        left = left.saturating_sub(exchange.iter().map(tokens::of_message).sum());
        from = begin;
        if is_enough && left < most / 2 {
            break;
        }
        // Of all places at which it may begin, the one that is the least by what is said there: it is the same for the next
        // requests, until it has to go itself.
        let place = request.messages.get(begin).map(message_hash);
        if left > most || best.is_none_or(|best| place.is_some_and(|place| place < best)) {
            end = begin;
            best = place.filter(|_| left <= most);
        }
    }
    request.messages.drain(first..end);
}

/// Cuts the longest texts in the middle, all to the same length.
fn cut_texts(request: &mut ModelRequest, most: usize) {
    for round in 0..ROUNDS {
        let all = tokens::of_request(request);
        if all <= most {
            return;
        }
        let first = system_message_count(request);
        let sizes: Vec<usize> = request
            .messages
            .iter()
            .skip(first)
            .flat_map(message_texts)
            .map(|text| tokens::of_text(words_without_blocks(text)))
            .collect();
        let room = most.saturating_sub(all - sizes.iter().sum::<usize>());
        // Each round takes a little more off: the note of what is missing takes some, too.
        let length = (common_length(&sizes, room) >> (round / 2)).max(LEAST_TOKENS);
        request.messages.iter_mut().skip(first).for_each(|message| cut_message(message, length));
    }
}

/// The length to which texts of these sizes are cut so that they take this room together.
fn common_length(sizes: &[usize], room: usize) -> usize {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    let mut left = room;
    let mut number = sizes.len();
    for size in sizes {
        if size * number >= left {
            break;
        }
        left -= size;
        number -= 1;
    }
    left / number.max(1)
}

/// A number that follows from what is said in a message, and from nothing else (FNV-1a).
fn message_hash(message: &PromptMessage) -> u64 {
    let bytes = message_texts(message).into_iter().flat_map(|text| words_without_blocks(text).bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn message_texts(message: &PromptMessage) -> Vec<&str> {
    match message {
        PromptMessage::System { text } | PromptMessage::User { text, .. } | PromptMessage::Tool { text, .. } => {
            vec![text]
        }
        PromptMessage::Assistant { text, calls, .. } => {
            std::iter::once(text.as_str()).chain(calls.iter().map(|call| call.arguments.as_str())).collect()
        }
    }
}

fn cut_message(message: &mut PromptMessage, length: usize) {
    match message {
        PromptMessage::System { text } | PromptMessage::User { text, .. } | PromptMessage::Tool { text, .. } => {
            cut_middle(text, length)
        }
        PromptMessage::Assistant { text, calls, .. } => {
            cut_middle(text, length);
            for call in calls.iter_mut().filter(|call| tokens::of_text(&call.arguments) > length) {
                call.arguments = json!({ "left_out": format!("{} bytes", call.arguments.len()) }).to_string();
            }
        }
    }
}

/// A text without the blocks of context behind it, which stay whole.
fn words_without_blocks(text: &str) -> &str {
    text.get(..blocks_offset(text)).unwrap_or(text)
}

/// Cuts the middle out of a text that takes more than so many tokens, and says so. What was cut before counts, too.
fn cut_middle(text: &mut String, length: usize) {
    let said = words_without_blocks(text);
    let tokens = tokens::of_text(said);
    if tokens <= length {
        return;
    }
    let bytes = said.len() / tokens.max(1) * length;
    let head = said.floor_char_boundary(bytes / 3 * 2);
    let tail = said.ceil_char_boundary(said.len().saturating_sub(bytes / 3)).max(head);
    let cut = without_range(said, head..tail) + text.get(said.len()..).unwrap_or_default();
    if cut.len() < text.len() {
        *text = cut;
    }
}

/// Leaves out the oldest calls of the last exchange with their results, but for the last ones.
fn leave_out_calls(request: &mut ModelRequest, most: usize) {
    while tokens::of_request(request) > most {
        let is_answer = |message: &PromptMessage| matches!(message, PromptMessage::Assistant { .. });
        let answers: Vec<usize> =
            request.messages.iter().enumerate().filter(|(_, message)| is_answer(message)).map(|(at, _)| at).collect();
        let [first, next, ..] = answers.as_slice() else { return };
        // What stands between an answer and the next are its results, and words that another exchange began with.
        let results = request.messages.get(first + 1..*next).unwrap_or_default();
        let results = results.iter().take_while(|message| matches!(message, PromptMessage::Tool { .. })).count();
        request.messages.drain(*first..first + 1 + results);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request::ToolCall;

    fn message() -> impl Strategy<Value = Vec<PromptMessage>> {
        let words = || (0..400usize, "[a-z é]{1,8}").prop_map(|(times, word)| word.repeat(times));
        let called = (words(), prop::collection::vec((words(), words()), 1..4)).prop_map(|(text, calls)| {
            let call = |(at, (arguments, _)): (usize, &(String, String))| ToolCall {
                id: format!("c{at}"),
                tool: "http.get".into(),
                arguments: json!({ "url": arguments }).to_string(),
                ..Default::default()
            };
            let results = calls
                .iter()
                .enumerate()
                .map(|(at, (_, result))| PromptMessage::Tool { call_id: format!("c{at}"), text: result.clone() });
            let made = calls.iter().enumerate().map(call).collect();
            std::iter::once(PromptMessage::assistant_with_calls(text, made)).chain(results).collect()
        });
        prop_oneof![
            words().prop_map(|text| vec![PromptMessage::user(text)]),
            words().prop_map(|text| vec![PromptMessage::assistant(text)]),
            called,
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
        /// Whatever was said, a request is made to fit, keeps its system prompt and the user's last words, and each result its call.
        #[test]
        fn a_request_fits_any_model_that_takes_its_prompt(
            messages in prop::collection::vec(message(), 0..12), last in "[a-z ]{1,2000}", room in 200..2_000usize,
        ) {
            let system = PromptMessage::System { text: "be brief ".repeat(50) };
            let all = std::iter::once(system.clone()).chain(messages.into_iter().flatten()).chain([PromptMessage::user(last)]);
            let mut request = ModelRequest::from_messages("heavy", all.collect());
            let most = fixed_tokens(&request) + room;
            let was = tokens::of_request(&request);
            prop_assert_eq!(fit(&mut request, most), was > most);
            prop_assert!(tokens::of_request(&request) <= most, "{} > {most}", tokens::of_request(&request));
            prop_assert_eq!(request.messages.first(), Some(&system));
            let is_last = matches!(request.messages.last(), Some(PromptMessage::User { .. }));
            prop_assert!(is_last);
            let mut calls: Vec<&str> = Vec::new();
            for message in &request.messages {
                match message {
                    PromptMessage::Assistant { calls: made, .. } => calls = made.iter().map(|call| &*call.id).collect(),
                    PromptMessage::Tool { call_id, .. } => prop_assert!(calls.contains(&call_id.as_str())),
                    PromptMessage::System { .. } | PromptMessage::User { .. } => calls.clear(),
                }
            }
        }
    }

    #[test]
    fn a_window_moves_in_large_steps() {
        let exchange =
            |at: usize| [format!("question {at} {}", "x ".repeat(50)), format!("answer {at} {}", "y ".repeat(50))];
        let mut first = String::new();
        let mut moves = 0;
        for asked in 20..220 {
            let said = (0..asked).flat_map(exchange).collect::<Vec<_>>();
            let message = |(at, text): (usize, String)| {
                if at % 2 == 0 { PromptMessage::user(text) } else { PromptMessage::assistant(text) }
            };
            let system = PromptMessage::System { text: "be brief".into() };
            let last = PromptMessage::user(format!("question {asked}"));
            let messages = std::iter::once(system).chain(said.into_iter().enumerate().map(message)).chain([last]);
            let mut request = ModelRequest::from_messages("heavy", messages.collect());
            fit_with_mode(&mut request, 2_000, CutMode::InLargeSteps);
            let tokens = tokens::of_request(&request);
            assert!((900..=2_000).contains(&tokens), "{tokens}");
            let Some(PromptMessage::User { text, .. }) = request.messages.get(1) else { panic!("no words") };
            moves += usize::from(*text != first);
            first.clone_from(text);
        }
        assert!(moves < 70, "{moves} of 200 requests begin elsewhere");
    }

    #[test]
    fn one_huge_message_is_cut_in_the_middle_and_keeps_its_context() {
        let text = format!("begin {} end", "word ".repeat(5_000));
        let mut request = ModelRequest::from_prompt("heavy", "be brief", text);
        request.conversation().push_context("now");
        assert!(fit(&mut request, 500));
        let Some(PromptMessage::User { text, .. }) = request.messages.last() else { panic!("no words") };
        assert!(text.starts_with("begin word") && text.contains("bytes left out"), "{text}");
        assert!(text.ends_with("end\n\n<kairo:context>\nnow\n</kairo:context>"), "{text}");
        assert!(!fit(&mut request, 500));
    }

    #[test]
    fn what_is_cut_again_says_all_that_is_missing() {
        let whole = "word ".repeat(20_000);
        let mut request = ModelRequest::from_prompt("heavy", "be brief", whole.clone());
        for most in [10_000, 4_000, 1_000, 300] {
            assert!(fit(&mut request, most));
            let Some(PromptMessage::User { text, .. }) = request.messages.last() else { panic!("no words") };
            let (before, rest) = text.split_once("… (").unwrap();
            let (missing, after) = rest.split_once(" bytes left out) …").unwrap();
            assert_eq!(before.len() + missing.parse::<usize>().unwrap() + after.len(), whole.len(), "{text}");
        }
    }
}
