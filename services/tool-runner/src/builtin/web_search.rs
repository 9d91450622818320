//! `web.search`: asks a search service of the SearXNG kind. Not offered unless one is configured.

mod config;

use std::num::NonZeroUsize;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use kairo_core::outside;
use reqwest::{Client, Response, StatusCode, redirect};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

pub use self::config::WebSearchConfig;
use super::parse_args;
use super::workspace::{set_field, truncate_text};
use crate::tool::{CallContext, CallResult, Executor, Tool, ToolError, ToolSpec};

/// The tool's name.
pub const NAME: &str = "web.search";

/// Results returned when a call does not say how many.
const DEFAULT_RESULTS: usize = 10;
/// Longest title, address or snippet of a result, in bytes.
const MAX_TITLE_BYTES: usize = 300;
const MAX_URL_BYTES: usize = 2048;
const MAX_SNIPPET_BYTES: usize = 1000;
/// Redirects followed, such as from http to https.
const MAX_REDIRECTS: usize = 3;

/// The tool with its client.
#[derive(Debug)]
pub struct WebSearch {
    spec: ToolSpec,
    client: Client,
    endpoint: Url,
    max_results: usize,
    max_body_bytes: usize,
}

#[derive(Deserialize)]
struct WebSearchArgs {
    query: String,
    limit: Option<NonZeroUsize>,
    language: Option<String>,
}

impl WebSearch {
    /// None when no service is configured.
    ///
    /// # Errors
    /// When the TLS library cannot be set up.
    pub fn new(config: &WebSearchConfig) -> Result<Option<Self>, reqwest::Error> {
        let Some(endpoint) = config.endpoint() else {
            return Ok(None);
        };
        let client = Client::builder()
            .user_agent(concat!("kairo/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::limited(MAX_REDIRECTS))
            .no_proxy()
            .build()?;
        Ok(Some(Self {
            spec: ToolSpec {
                name: NAME.to_owned(),
                description: "Searches the web. Returns results (title, url, snippet, published where known), best first, and direct answers where the search service has any.".to_owned(),
                schema: schema(),
                idempotent: true,
                timeout: Duration::from_millis(config.timeout_ms),
                executor: Executor::ToolRunner,
                needs_approval: false,
                needs_approval_with: Vec::new(),
                acts_outside: false,
                definition: None,
            },
            client,
            endpoint,
            max_results: config.max_results,
            max_body_bytes: config.max_body_bytes,
        }))
    }

    async fn search(&self, args: WebSearchArgs) -> CallResult {
        let mut url = self.endpoint.clone();
        url.query_pairs_mut().append_pair("q", &args.query).append_pair("format", "json");
        if let Some(language) = &args.language {
            url.query_pairs_mut().append_pair("language", language);
        }
        let response = self.client.get(url).send().await.map_err(unreachable_error)?;
        check_status(response.status())?;
        let body = self.read_body(response).await?;
        let most = args.limit.map_or(DEFAULT_RESULTS, NonZeroUsize::get).min(self.max_results);
        parse_results(&body, most)
            .map(|found| json!({"query": args.query, "results": found.results, "answers": found.answers}))
    }

    async fn read_body(&self, response: Response) -> Result<Vec<u8>, ToolError> {
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(unreachable_error)?);
            if body.len() > self.max_body_bytes {
                return Err(ToolError::failed(format!(
                    "the search service's answer is longer than {} bytes; ask for something narrower",
                    self.max_body_bytes
                )));
            }
        }
        Ok(body)
    }
}

impl Tool for WebSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn outside_sources(&self, _: &Value, outcome: &CallResult) -> Vec<String> {
        let results = outcome.as_ref().ok().and_then(|found| found.get("results")?.as_array());
        let urls = results.into_iter().flatten().filter_map(|result| result.get("url")?.as_str());
        let search = outcome.as_ref().ok().map(|_| self.endpoint.host_str().unwrap_or_default());
        search.into_iter().chain(urls).map(|url| outside::source_mark(outside::OutsideSource::Web, url)).collect()
    }

    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            let args = parse_args(args)?;
            ctx.cancel
                .run_until_cancelled(self.search(args))
                .await
                .unwrap_or_else(|| Err(ToolError::canceled("the search was given up")))
        })
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["query"],
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": 500, "description": "What to search for"},
            "limit": {"type": "integer", "minimum": 1, "description": "Results returned, default 10"},
            "language": {
                "type": "string",
                "pattern": "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$",
                "description": "Such as en, de or zh-CN. Default that of the search service",
            },
        },
        "additionalProperties": false,
    })
}

/// Converts an unsuccessful status into an error with advice for the agent.
fn check_status(status: StatusCode) -> Result<(), ToolError> {
    let advice = match status.as_u16() {
        200..=299 => return Ok(()),
        403 => "it does not allow the JSON format; the operator has to add json to search.formats of its settings",
        404 => "there is no search at the configured address; the operator has to correct tool_runner.web_search.url",
        429 => "it limits the rate; wait before the next search",
        500..=599 => "it has a problem of its own; try again later",
        _ => "try other words, or tell the operator",
    };
    Err(ToolError::failed(format!("the search service answered {}: {advice}", status.as_u16())))
}

fn unreachable_error(error: reqwest::Error) -> ToolError {
    // Without the address, which is not the agent's business.
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    ToolError::failed(format!("the search service cannot be reached: {cause}; try again later"))
}

/// The parts of an answer that are returned, already as JSON.
#[derive(Debug, PartialEq)]
struct WebSearchResults {
    results: Vec<Value>,
    answers: Vec<Value>,
}

#[derive(Deserialize)]
struct SearxngAnswer {
    results: Vec<Value>,
    #[serde(default)]
    answers: Vec<Value>,
}

fn parse_results(body: &[u8], most: usize) -> Result<WebSearchResults, ToolError> {
    let answer: SearxngAnswer = serde_json::from_slice(body).map_err(|_| {
        ToolError::failed(
            "the search service's answer is not the JSON of a SearXNG search; the operator has to check tool_runner.web_search.url",
        )
    })?;
    // Older services answer with a text, newer ones with an object around it.
    let text =
        |value: &Value| value.get("answer").unwrap_or(value).as_str().map(|text| cut_text(text, MAX_SNIPPET_BYTES));
    Ok(WebSearchResults {
        results: answer.results.iter().filter_map(parse_result).take(most).collect(),
        answers: answer.answers.iter().filter_map(text).take(most).map(Value::from).collect(),
    })
}

/// One result; none for what leads nowhere.
fn parse_result(value: &Value) -> Option<Value> {
    let text = |key: &str, max| value.get(key).and_then(Value::as_str).map(|text| cut_text(text, max));
    let url = value.get("url")?.as_str().filter(|url| url.len() <= MAX_URL_BYTES)?;
    let mut result = json!({
        "title": text("title", MAX_TITLE_BYTES).unwrap_or_default(),
        "url": url,
        "snippet": text("content", MAX_SNIPPET_BYTES).unwrap_or_default(),
    });
    if let Some(published) = text("publishedDate", MAX_TITLE_BYTES) {
        set_field(&mut result, "published", published);
    }
    Some(result)
}

fn cut_text(text: &str, max: usize) -> String {
    truncate_text(text.trim(), max).0.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_older_and_newer_services() {
        let body = json!({
            "query": "x", "number_of_results": 0,
            "results": [
                {"title": "One", "url": "https://one.example/", "content": " first ", "engine": "e", "publishedDate": "2024-01-15T00:00:00"},
                {"title": "No address"},
                {"url": "https://two.example/", "title": null},
                {"url": "https://three.example/"},
            ],
            "answers": ["42", {"answer": "also 42", "url": null}, {"weather": 1}],
        });
        let found = parse_results(body.to_string().as_bytes(), 2).unwrap();
        assert_eq!(
            found.results,
            [
                json!({"title": "One", "url": "https://one.example/", "snippet": "first", "published": "2024-01-15T00:00:00"}),
                json!({"title": "", "url": "https://two.example/", "snippet": ""}),
            ]
        );
        assert_eq!(found.answers, [json!("42"), json!("also 42")]);
    }

    #[test]
    fn what_is_no_answer_says_whom_to_ask() {
        for body in ["<html>", "{}", "[]", "{\"results\": 3}"] {
            assert!(parse_results(body.as_bytes(), 2).unwrap_err().message.contains("web_search.url"), "{body}");
        }
        assert!(check_status(StatusCode::OK).is_ok());
        assert!(check_status(StatusCode::FORBIDDEN).unwrap_err().message.contains("json"));
    }
}
