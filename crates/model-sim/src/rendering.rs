//! From the rule that matched to its answer, with all templates rendered.

use std::collections::BTreeMap;

use minijinja::value::Serde;
use minijinja::{Value as TemplateValue, context};

use crate::answer::{ErrorReply, Reply, ReplyMessage, ReplyToolCall, SimulatedAnswer};
use crate::conversation::{Conversation, ToolResult};
use crate::raw::RawReply;
use crate::scenario::{
    AnswerContent, AnswerPlan, Arguments, ErrorPlan, MessagePlan, ReasoningForm, ResultStatus, Scenario, ScenarioRule,
    ToolCallPlan, dotted_tool_name,
};

/// Matches of the named groups of a rule's patterns.
pub type Captures<'c> = BTreeMap<&'c str, &'c str>;

/// The answer of a rule. A template that cannot be rendered is told in the answer itself, since
/// whoever wrote the rule is likely to be looking there.
pub fn render_answer<'s>(
    scenario: &'s Scenario,
    rule: &'s ScenarioRule,
    plan: &'s AnswerPlan,
    conversation: &Conversation<'_>,
    captures: &Captures<'_>,
) -> SimulatedAnswer<'s> {
    let context = variables(rule, conversation, captures);
    let reply = match &plan.content {
        AnswerContent::Error(error) => render_error(scenario, error, &context).map(Reply::Error),
        AnswerContent::Raw(raw) => {
            scenario.templates.render_argument(raw, &context).and_then(RawReply::parse).map(Reply::Raw)
        }
        AnswerContent::Message(message) => {
            render_message(scenario, message, conversation, &context).map(Reply::Message)
        }
    };
    let (fault, forms, reply) = match reply {
        Ok(reply) => (plan.fault, plan.forms.clone(), reply),
        Err(error) => {
            let text = format!("(model simulator) rule '{}' cannot be rendered: {error}", rule.name);
            (None, Vec::new(), plain_text(conversation, text))
        }
    };
    SimulatedAnswer { rule: Some(&rule.name), pace: plan.pace, fault, forms, reply }
}

/// The variables of templates. Documented in the README.
fn variables(rule: &ScenarioRule, conversation: &Conversation<'_>, captures: &Captures<'_>) -> TemplateValue {
    let last = conversation.last_result().map(result_variables).unwrap_or_default();
    let part = |key| last.get_attr(key).unwrap_or_default();
    let captures = captures.iter().map(|(name, text)| (*name, TemplateValue::from(*text)));
    context! {
        user => conversation.user,
        user_json => user_json(conversation),
        model => conversation.model,
        captures => captures.collect::<BTreeMap<_, _>>(),
        last_result => part("value"),
        last_result_text => part("text"),
        last_tool => part("tool"),
        step => conversation.results().len(),
        round => conversation.round,
        tokens => conversation.tokens(),
        violation => violation(rule, conversation),
        tools => conversation.offered.iter().map(|name| dotted_tool_name(name)).collect::<Vec<_>>(),
        results => conversation.results().iter().map(result_variables).collect::<Vec<_>>(),
        latest => latest_results(conversation),
        parts => conversation.parts.iter().map(Serde).map(TemplateValue::from).collect::<Vec<_>>(),
        all_parts => conversation.all_parts().map(Serde).map(TemplateValue::from).collect::<Vec<_>>(),
    }
}

/// In which words a provider would refuse the request, where the rule is about that.
fn violation(rule: &ScenarioRule, conversation: &Conversation<'_>) -> Option<String> {
    let demands = &rule.when.violates;
    let request = if demands.is_empty() { serde_json::Value::Null } else { conversation.request_json() };
    demands.iter().find_map(|demand| demand.violation(&request))
}

/// The last user message, where it is JSON.
fn user_json(conversation: &Conversation<'_>) -> Option<TemplateValue> {
    let value: serde_json::Value = serde_json::from_str(conversation.user).ok()?;
    Some(TemplateValue::from(Serde(value)))
}

/// Returns the last result of each tool in the whole conversation.
fn latest_results(conversation: &Conversation<'_>) -> BTreeMap<String, TemplateValue> {
    let results = conversation.all_results().iter();
    results.map(|result| (dotted_tool_name(result.tool), TemplateValue::from(Serde(result.value())))).collect()
}

fn result_variables(result: &ToolResult<'_>) -> TemplateValue {
    context! {
        tool => dotted_tool_name(result.tool),
        ok => result.status() == ResultStatus::Ok,
        text => result.content,
        value => TemplateValue::from(Serde(result.value())),
    }
}

fn render_message(
    scenario: &Scenario,
    plan: &MessagePlan,
    conversation: &Conversation<'_>,
    context: &TemplateValue,
) -> Result<ReplyMessage, String> {
    let text = |text| scenario.templates.render_text(text, context);
    let json = plan.json.as_ref().map(|json| scenario.templates.render_argument(json, context)).transpose()?;
    let mut message = ReplyMessage {
        text: json.map(|json| Ok(json.to_string())).or_else(|| plan.text.as_ref().map(text)).transpose()?,
        reasoning: plan.reasoning.as_ref().map(text).transpose()?,
        tool_calls: plan
            .tool_calls
            .iter()
            .map(|call| render_call(scenario, call, context))
            .collect::<Result<_, _>>()?,
        reasoning_form: plan.reasoning_form,
        reasoning_details: plan.reasoning_details.clone(),
        chunk_ends: plan.chunk_ends.clone(),
        ..ReplyMessage::default()
    };
    think_aloud(&mut message);
    let usual_reason = if message.tool_calls.is_empty() { "stop" } else { "tool_calls" };
    message.finish_reason = plan.finish_reason.as_deref().unwrap_or(usual_reason).to_owned();
    (message.prompt_tokens, message.completion_tokens) =
        plan.usage.unwrap_or_else(|| estimated_usage(conversation, &message));
    Ok(message)
}

/// Puts reasoning into the text, where that is its form.
fn think_aloud(message: &mut ReplyMessage) {
    let tag = match message.reasoning_form {
        ReasoningForm::ReasoningContent | ReasoningForm::Reasoning | ReasoningForm::Both => return,
        ReasoningForm::Think => "think",
        ReasoningForm::Thinking => "thinking",
    };
    if let Some(reasoning) = message.reasoning.take() {
        let text = message.text.take().unwrap_or_default();
        message.text = Some(format!("<{tag}>{reasoning}</{tag}>\n\n{text}"));
    }
}

fn render_call(scenario: &Scenario, plan: &ToolCallPlan, context: &TemplateValue) -> Result<ReplyToolCall, String> {
    let arguments = match &plan.arguments {
        Arguments::Json(argument) => scenario.templates.render_argument(argument, context)?.to_string(),
        Arguments::Raw(text) => scenario.templates.render_text(text, context)?,
    };
    Ok(ReplyToolCall { id: plan.id.clone(), name: plan.tool.clone(), arguments })
}

fn render_error(scenario: &Scenario, plan: &ErrorPlan, context: &TemplateValue) -> Result<ErrorReply, String> {
    let usual_kind = match plan.status {
        401 | 403 => "authentication_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    Ok(ErrorReply {
        status: plan.status,
        message: scenario.templates.render_text(&plan.message, context)?,
        kind: plan.kind.as_deref().unwrap_or(usual_kind).to_owned(),
        code: plan.code.clone(),
        retry_after: plan.retry_after,
    })
}

/// An answer that only says something.
pub fn plain_text(conversation: &Conversation<'_>, text: String) -> Reply {
    let mut message = ReplyMessage { text: Some(text), finish_reason: "stop".to_owned(), ..ReplyMessage::default() };
    (message.prompt_tokens, message.completion_tokens) = estimated_usage(conversation, &message);
    Reply::Message(message)
}

/// Four bytes to a token, the usual rule of thumb for English.
fn estimated_usage(conversation: &Conversation<'_>, message: &ReplyMessage) -> (u32, u32) {
    let tokens = |bytes: usize| u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX);
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let calls: usize = message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
    let said = length(&message.text) + length(&message.reasoning) + calls;
    (tokens(conversation.bytes()), tokens(said))
}
