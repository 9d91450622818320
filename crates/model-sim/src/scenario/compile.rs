//! From the scenario file to the compiled scenario. Goes on after a mistake to find the others.

use std::collections::HashSet;

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::format::{
    AnswerFile, ConditionsFile, DefaultsFile, ErrorFile, Fault, OneOrMany, ResultFile, RuleFile, ScenarioFile,
    ToolCallFile, read_section,
};
use super::{
    AnswerContent, AnswerPlan, Arguments, Conditions, ErrorPlan, MessagePlan, Pace, ResultConditions, Scenario,
    ScenarioRule, Script, Times, ToolCallPlan, expand, wire_tool_name,
};
use crate::raw::RawReply;
use crate::templates::{Argument, TemplateText, Templates};

/// A delay longer than this is a mistyped number rather than a slow model.
const LONGEST_DELAY_MS: u64 = 600_000;

pub(super) fn scenario(yaml: &str) -> Result<Scenario, Vec<String>> {
    let file: ScenarioFile = serde_saphyr::from_str(yaml).map_err(|error| vec![error.to_string()])?;
    let mut compiler = Compiler::default();
    let (defaults, _) = compiler.section::<DefaultsFile>("defaults", file.defaults);
    compiler.defaults = compiler.pace("defaults", (defaults.delay_ms, defaults.chunk_delay_ms, defaults.chunk_chars));
    if file.rules.is_empty() {
        compiler.add_mistake("rules: there must be at least one rule");
    }
    let mut rules = Vec::new();
    for rule in file.rules {
        let line = rule.referenced.line();
        match expand::expand_rule(rule.value) {
            Ok(given) => rules.extend(given.into_iter().filter_map(|rule| compiler.rule(line, rule))),
            Err(mistake) => compiler.add_mistake(format!("rule at line {line}: {mistake}")),
        }
    }
    if !compiler.mistakes.is_empty() {
        return Err(compiler.mistakes);
    }
    let models = match file.models.0 {
        none if none.is_empty() => vec!["kairo-sim".to_owned()],
        models => models,
    };
    Ok(Scenario { models, rules, pace: compiler.defaults, templates: compiler.templates })
}

#[derive(Default)]
struct Compiler {
    defaults: Pace,
    names: HashSet<String>,
    templates: Templates,
    mistakes: Vec<String>,
}

impl Compiler {
    fn add_mistake(&mut self, mistake: impl Into<String>) {
        self.mistakes.push(mistake.into());
    }

    /// The value, or none after having noted the mistake.
    fn ok_or_note<T>(&mut self, result: Result<T, String>) -> Option<T> {
        result.map_err(|mistake| self.mistakes.push(mistake)).ok()
    }

    /// Returns what could be read of a section, and whether that is all of it: if not, what seems to be missing may
    /// just be misspelt.
    fn section<T>(&mut self, path: &str, section: Value) -> (T, bool)
    where
        T: serde::de::DeserializeOwned + Default,
    {
        let (read, mistakes) = read_section(path, section);
        let complete = mistakes.is_empty();
        self.mistakes.extend(mistakes);
        (read, complete)
    }

    fn rule(&mut self, line: u64, value: Value) -> Option<ScenarioRule> {
        let name = value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let path = if name.is_empty() {
            let path = format!("rule at line {line}");
            self.add_mistake(format!("{path}: give it a name"));
            path
        } else {
            format!("rule '{name}' (line {line})")
        };
        if !name.is_empty() && !self.names.insert(name.clone()) {
            self.add_mistake(format!("{path}: an earlier rule has the same name"));
        }
        let (file, complete): (RuleFile, _) = self.section(&path, value);
        if file.times == Some(0) {
            self.add_mistake(format!("{path}.times: must be at least 1"));
        }
        if complete && file.times_per.is_some() && file.times.is_none() && file.for_ms.is_none() {
            self.add_mistake(format!("{path}.times_per: says nothing without times"));
        }
        let limited = file.times.is_some() || file.for_ms.is_some();
        let times = limited.then(|| Times {
            limit: file.times.unwrap_or(u32::MAX),
            per: file.times_per.unwrap_or_default(),
            within_ms: file.for_ms,
        });
        if complete && file.reply.is_some() == file.turn.is_some() {
            self.add_mistake(format!("{path}: give it either a reply or a turn of replies"));
        }
        let when = self.conditions(&format!("{path}.when"), file.when);
        let script = self.script(&path, file.reply, file.turn)?;
        Some(ScenarioRule { name, when, times, script })
    }

    fn script(&mut self, path: &str, reply: Option<Value>, turn: Option<Vec<Value>>) -> Option<Script> {
        if let Some(reply) = reply {
            return self.answer(&format!("{path}.reply"), reply).map(|plan| Script::Always(Box::new(plan)));
        }
        let rounds = turn?;
        if rounds.is_empty() {
            self.add_mistake(format!("{path}.turn: there must be at least one reply"));
        }
        let answers: Vec<_> = rounds
            .into_iter()
            .enumerate()
            .map(|(round, answer)| self.answer(&format!("{path}.turn[{round}]"), answer))
            .collect();
        answers.into_iter().collect::<Option<Vec<_>>>().map(Script::Rounds)
    }

    fn conditions(&mut self, path: &str, value: Value) -> Conditions {
        let (file, _): (ConditionsFile, _) = self.section(path, value);
        Conditions {
            user: self.patterns(path, "user_", file.user_contains, file.user_matches),
            conversation: self.patterns(path, "conversation_", file.conversation_contains, file.conversation_matches),
            system: self
                .patterns(path, "system_", file.system_contains, file.system_matches)
                .into_iter()
                .chain(self.starts_with(&format!("{path}.system_starts_with"), &file.system_starts_with.0))
                .collect(),
            models: file.model.0,
            tools_offered: wire_names(file.tools_offered),
            has_image: file.has_image,
            has_audio: file.has_audio,
            has_video: file.has_video,
            part_sha256: file.part_sha256.0,
            part_media_type: file.part_media_type.0,
            step: file.step,
            step_at_least: file.step_at_least,
            round: file.round,
            result: file.result.map(|result| self.result(path, result)),
            any_user: self.patterns(path, "any_user_", file.any_user_contains, file.any_user_matches),
            violates: file.violates.into_vec(),
            larger_than_tokens: file.larger_than_tokens,
            may_call: file.may_call,
        }
    }

    fn result(&mut self, path: &str, file: ResultFile) -> ResultConditions {
        let path = format!("{path}.result");
        ResultConditions {
            tools: wire_names(file.tool),
            status: file.status,
            content: self.patterns(&path, "", file.contains, file.matches),
        }
    }

    /// The patterns of the keys `{prefix}contains` and `{prefix}matches`, as far as they are there.
    fn patterns(&mut self, path: &str, prefix: &str, contains: OneOrMany, matches: Option<String>) -> Vec<Regex> {
        let contains = self.contains(&format!("{path}.{prefix}contains"), &contains.0);
        let matches = matches.and_then(|pattern| self.pattern(&format!("{path}.{prefix}matches"), &pattern));
        contains.into_iter().chain(matches).collect()
    }

    /// One pattern for "contains any of these, in whatever case".
    fn contains(&mut self, path: &str, needles: &[String]) -> Option<Regex> {
        if needles.is_empty() {
            return None;
        }
        if needles.iter().any(String::is_empty) {
            self.add_mistake(format!("{path}: an empty text is contained in everything"));
        }
        self.pattern(path, &alternatives(needles))
    }

    /// One pattern for "starts with one of these, in whatever case".
    fn starts_with(&mut self, path: &str, starts: &[String]) -> Option<Regex> {
        if starts.is_empty() {
            return None;
        }
        if starts.iter().any(String::is_empty) {
            self.add_mistake(format!("{path}: everything starts with an empty text"));
        }
        self.pattern(path, &format!(r"\A\s*(?:{})", alternatives(starts)))
    }

    fn pattern(&mut self, path: &str, pattern: &str) -> Option<Regex> {
        let compiled = RegexBuilder::new(pattern).case_insensitive(true).build();
        // The regex crate draws its syntax errors over several lines; the last says what is wrong.
        self.ok_or_note(compiled.map_err(|error| {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("{path}: {reason}")
        }))
    }

    fn answer(&mut self, path: &str, value: Value) -> Option<AnswerPlan> {
        let value = match value {
            Value::String(text) => serde_json::json!({ "text": text }),
            section => section,
        };
        let (mut file, complete): (AnswerFile, _) = self.section(path, value);
        let pace = self.pace(path, (file.delay_ms, file.chunk_delay_ms, file.chunk_chars));
        let says_something =
            file.text.is_some() || file.json.is_some() || file.reasoning.is_some() || !file.tool_calls.is_empty();
        if file.text.is_some() && file.json.is_some() {
            self.add_mistake(format!("{path}: give it a text or json, not both"));
        }
        if complete && file.reasoning_as.is_some() && file.reasoning.is_none() {
            self.add_mistake(format!("{path}.reasoning_as: says nothing without reasoning"));
        }
        let forms = std::mem::take(&mut file.form).into_vec();
        let content = match file.error.take() {
            _ if file.raw.is_some() => {
                if complete && (says_something || file.fault.is_some() || !forms.is_empty()) {
                    self.add_mistake(format!("{path}: a raw answer stands alone"));
                }
                AnswerContent::Raw(self.raw(path, file.raw.take().unwrap_or_default())?)
            }
            Some(_) if says_something || file.fault.is_some() => {
                self.add_mistake(format!(
                    "{path}: an error stands alone, without text, json, reasoning, tool_calls or fault"
                ));
                return None;
            }
            Some(error) => AnswerContent::Error(self.error(path, error)?),
            None => {
                if complete && !says_something && file.fault != Some(Fault::Hang) {
                    self.add_mistake(format!(
                        "{path}: give it a text, json, reasoning, tool_calls, an error or `fault: hang`"
                    ));
                }
                AnswerContent::Message(self.message(path, &mut file)?)
            }
        };
        Some(AnswerPlan { pace, fault: file.fault, forms, content })
    }

    /// Compiles an answer that is written out: it is read once before its templates are rendered, for the mistakes in
    /// it.
    fn raw(&mut self, path: &str, value: Value) -> Option<Argument> {
        let path = format!("{path}.raw");
        let read = RawReply::parse(value.clone()).map_err(|mistake| format!("{path}: {mistake}"));
        self.ok_or_note(read)?;
        self.argument(&path, value)
    }

    fn message(&mut self, path: &str, file: &mut AnswerFile) -> Option<MessagePlan> {
        let text = self.text(path, "text", file.text.take());
        let json = file.json.take().map(|value| self.argument(&format!("{path}.json"), value));
        let reasoning = self.text(path, "reasoning", file.reasoning.take());
        let calls: Vec<_> = std::mem::take(&mut file.tool_calls)
            .into_iter()
            .enumerate()
            .map(|(index, call)| self.tool_call(&format!("{path}.tool_calls[{index}]"), call))
            .collect();
        Some(MessagePlan {
            text: text?,
            json: match json {
                Some(compiled) => Some(compiled?),
                None => None,
            },
            reasoning: reasoning?,
            reasoning_form: file.reasoning_as.unwrap_or_default(),
            reasoning_details: std::mem::take(&mut file.reasoning_details),
            chunk_ends: self.chunk_ends(path, file.chunk_ends.take())?,
            tool_calls: calls.into_iter().collect::<Option<_>>()?,
            finish_reason: file.finish_reason.take(),
            usage: file.usage.map(|usage| (usage.prompt_tokens, usage.completion_tokens)),
        })
    }

    /// Places that may be absent; none only if they are there and wrong.
    fn chunk_ends(&mut self, path: &str, ends: Option<Vec<usize>>) -> Option<Option<Vec<usize>>> {
        let rising = |ends: &Vec<usize>| ends.first() != Some(&0) && ends.is_sorted_by(|before, next| before < next);
        if ends.as_ref().is_none_or(rising) {
            return Some(ends);
        }
        self.add_mistake(format!("{path}.chunk_ends: expected rising numbers of characters, the first at least 1"));
        None
    }

    /// A text that may be absent; none only if it is there and wrong.
    fn text(&mut self, path: &str, key: &str, source: Option<String>) -> Option<Option<TemplateText>> {
        let Some(source) = source else { return Some(None) };
        let compiled = self.templates.compile_text(&format!("{path}.{key}"), source);
        self.ok_or_note(compiled).map(Some)
    }

    fn tool_call(&mut self, path: &str, file: ToolCallFile) -> Option<ToolCallPlan> {
        let tool = wire_tool_name(&file.tool);
        if !is_wire_name(&tool) {
            self.add_mistake(format!(
                "{path}.tool: '{}' is not 1 to 64 of letters, digits, '.', '_' and '-'",
                file.tool
            ));
        }
        let arguments = match (file.arguments, file.raw_arguments) {
            (Some(_), Some(_)) => {
                self.add_mistake(format!("{path}: give it arguments or raw_arguments, not both"));
                return None;
            }
            (None, Some(raw)) => {
                let compiled = self.templates.compile_text(&format!("{path}.raw_arguments"), raw);
                Arguments::Raw(self.ok_or_note(compiled)?)
            }
            (None, None) => Arguments::Json(Argument::Map(Vec::new())),
            (Some(fields), None) => {
                Arguments::Json(self.argument(&format!("{path}.arguments"), Value::Object(fields))?)
            }
        };
        Some(ToolCallPlan { tool, id: file.id, arguments })
    }

    fn argument(&mut self, path: &str, value: Value) -> Option<Argument> {
        let compiled = self.templates.compile_argument(path, value);
        compiled.map_err(|mistakes| self.mistakes.extend(mistakes)).ok()
    }

    fn error(&mut self, path: &str, file: ErrorFile) -> Option<ErrorPlan> {
        if !(400..=599).contains(&file.status) {
            self.add_mistake(format!("{path}.error.status: must be 400 to 599, not {}", file.status));
        }
        let message = file.message.unwrap_or_else(|| "the scenario asked for this error".to_owned());
        let compiled = self.templates.compile_text(&format!("{path}.error.message"), message);
        Some(ErrorPlan {
            status: file.status,
            message: self.ok_or_note(compiled)?,
            kind: file.kind,
            code: file.code,
            retry_after: file.retry_after,
        })
    }

    fn pace(
        &mut self,
        path: &str,
        (delay_ms, chunk_delay_ms, chunk_chars): (Option<u64>, Option<u64>, Option<usize>),
    ) -> Pace {
        for (key, delay) in [("delay_ms", delay_ms), ("chunk_delay_ms", chunk_delay_ms)] {
            if delay.is_some_and(|delay| delay > LONGEST_DELAY_MS) {
                self.add_mistake(format!("{path}.{key}: must be at most {LONGEST_DELAY_MS}"));
            }
        }
        if chunk_chars == Some(0) {
            self.add_mistake(format!("{path}.chunk_chars: must be at least 1"));
        }
        Pace {
            delay_ms: delay_ms.unwrap_or(self.defaults.delay_ms),
            chunk_delay_ms: chunk_delay_ms.unwrap_or(self.defaults.chunk_delay_ms),
            chunk_chars: chunk_chars.unwrap_or(self.defaults.chunk_chars),
        }
    }
}

fn alternatives(texts: &[String]) -> String {
    texts.iter().map(|text| regex::escape(text)).collect::<Vec<_>>().join("|")
}

fn wire_names(names: OneOrMany) -> Vec<String> {
    names.0.iter().map(|name| wire_tool_name(name)).collect()
}

fn is_wire_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

#[cfg(test)]
mod tests;
