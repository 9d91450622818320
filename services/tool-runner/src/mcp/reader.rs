//! Reads what a server sends, message by message, and mends each by what it answers: the library reads whole messages
//! strictly, so that one block of a later version of the protocol would lose an answer, and with it what a call has done.
//!
//! Pure: no IO, no clock. An answer that cannot be read still ends its request, at once.

mod call_answer;
mod content_block;
mod error_answer;
mod handshake;
mod json_text;
mod resource_contents;
mod tool_page;
mod wording;

use std::collections::VecDeque;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use serde_json::{Map, Value};

pub use self::call_answer::UnreadableAnswer;
use self::error_answer::ErrorAnswer;
use self::wording::{json_kind, text_of};
pub use self::wording::{page_text, shorten_text};

/// Requests whose answers are waited for, and canceled ones whose answers may still come; the oldest are forgotten.
const MAX_REQUESTS: usize = 1024;
/// Longest part of an odd message that a note repeats, in characters.
const MAX_QUOTE_CHARS: usize = 160;

/// The kind of request that an answer belongs to, as far as reading it depends on that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestMethod {
    Discover,
    Initialize,
    ListTools,
    CallTool,
    ReadResource,
    /// Answered only when it ends, which may be never.
    Listen,
    Other,
}

impl RequestMethod {
    fn of_request(request: &ClientRequest) -> Self {
        match request {
            ClientRequest::DiscoverRequest(_) => Self::Discover,
            ClientRequest::InitializeRequest(_) => Self::Initialize,
            ClientRequest::ListToolsRequest(_) => Self::ListTools,
            ClientRequest::CallToolRequest(_) => Self::CallTool,
            ClientRequest::ReadResourceRequest(_) => Self::ReadResource,
            ClientRequest::SubscriptionsListenRequest(_) => Self::Listen,
            _ => Self::Other,
        }
    }
}

/// The messages read from a piece of output.
#[derive(Debug, Default)]
pub struct OutputReading {
    pub messages: Vec<ServerJsonRpcMessage>,
    /// Oddities of the output.
    pub notes: Vec<String>,
    /// Tools of a list that cannot be used: the name and the reason.
    pub left_out: Vec<(String, String)>,
}

/// Knows which requests are open on one connection, and reads what comes in.
#[derive(Debug, Default)]
pub struct MessageReader {
    open: VecDeque<(RequestId, RequestMethod)>,
    /// Their answers may still come, and are no one else's.
    canceled: VecDeque<RequestId>,
}

impl MessageReader {
    /// Notes a message that goes out.
    pub fn track_sent(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(sent) => {
                self.open.push_back((sent.id.clone(), RequestMethod::of_request(&sent.request)));
                if self.open.len() > MAX_REQUESTS {
                    self.open.pop_front();
                }
            }
            ClientJsonRpcMessage::Notification(sent) => {
                if let ClientNotification::CancelledNotification(canceled) = &sent.notification
                    && let Some(id) = &canceled.params.request_id
                {
                    self.mark_canceled(id);
                }
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
        }
    }

    fn mark_canceled(&mut self, id: &RequestId) {
        if self.forget_request(id).is_some() {
            self.canceled.push_back(id.clone());
            if self.canceled.len() > MAX_REQUESTS {
                self.canceled.pop_front();
            }
        }
    }

    /// Waits for the answer to a request no longer; says which it was, if it was open.
    pub fn forget_request(&mut self, id: &RequestId) -> Option<RequestMethod> {
        let place = self.open.iter().position(|(open, _)| open == id)?;
        self.open.remove(place).map(|(_, method)| method)
    }

    /// Reads a line, a body or the data of an event. `expected` is the request that it is known to answer: over HTTP an
    /// answer comes on the connection of its request.
    pub fn read(&mut self, bytes: &[u8], expected: Option<&RequestId>) -> OutputReading {
        let mut reading = OutputReading::default();
        let json_text::JsonPieces { values, rest, broken } = json_text::find_json(bytes);
        for value in values {
            match value {
                Value::Array(batch) => {
                    batch.into_iter().for_each(|value| self.take_message(value, expected, &mut reading))
                }
                value => self.take_message(value, expected, &mut reading),
            }
        }
        if !rest.is_empty() {
            self.take_rest(&rest, broken.as_ref(), expected, &mut reading);
        }
        reading
    }

    /// Ends a request whose answer cannot be read.
    pub fn give_up(&mut self, id: &RequestId, unreadable: UnreadableAnswer) -> Option<ServerJsonRpcMessage> {
        self.forget_request(id).map(|method| end_request(method, id.clone(), unreadable))
    }

    fn take_message(&mut self, value: Value, expected: Option<&RequestId>, reading: &mut OutputReading) {
        let Value::Object(message) = value else {
            reading.notes.push(format!("{} that is no message: {}", json_kind(&value), short_quote(&text_of(&value))));
            return;
        };
        if message.get("method").is_some_and(Value::is_string) {
            reading.take_request(message);
        } else if ["result", "error", "id"].iter().any(|field| message.contains_key(*field)) {
            self.take_answer(message, expected, reading);
        } else {
            reading
                .notes
                .push(format!("an object that is no message: {}", short_quote(&text_of(&Value::Object(message)))));
        }
    }

    fn take_answer(&mut self, message: Map<String, Value>, expected: Option<&RequestId>, reading: &mut OutputReading) {
        let said = message.get("id");
        let Some((id, method)) = self.match_request(said, expected) else {
            let said = said.map_or_else(|| "no id".to_owned(), |id| format!("id {}", short_quote(&id.to_string())));
            reading.notes.push(format!("an answer with {said}, to no request that is open"));
            return;
        };
        if said != Some(&id.clone().into_json_value()) {
            reading.notes.push("an answer whose id is missing or not the one of its request".to_owned());
        }
        reading.add_answer(method, id, message);
    }

    /// The request that an answer with this id is to. It is guessed only where nothing else is possible.
    fn match_request(
        &mut self,
        said: Option<&Value>,
        expected: Option<&RequestId>,
    ) -> Option<(RequestId, RequestMethod)> {
        let said = said.filter(|said| !said.is_null());
        let number = |said: &Value| said.as_str().and_then(|said| said.trim().parse().ok()).map(RequestId::Number);
        let exact = said.and_then(|said| serde_json::from_value::<RequestId>(said.clone()).ok());
        let candidates = [exact, said.and_then(number)];
        for id in candidates.iter().flatten() {
            if let Some(method) = self.forget_request(id) {
                return Some((id.clone(), method));
            }
            if let Some(place) = self.canceled.iter().position(|canceled| canceled == id) {
                self.canceled.remove(place);
                return None;
            }
        }
        if let Some(id) = expected {
            return self.forget_request(id).map(|method| (id.clone(), method));
        }
        // A number may be that of a request that was answered already.
        let is_ours = candidates.iter().flatten().any(|id| matches!(id, RequestId::Number(_)));
        let mut open = self.open.iter().filter(|(_, method)| *method != RequestMethod::Listen);
        let only = open.next().filter(|_| open.next().is_none())?.clone();
        if is_ours || !self.canceled.is_empty() {
            return None;
        }
        self.forget_request(&only.0);
        Some(only)
    }

    /// Handles text that is not JSON: an answer that was cut off or nests too deep, or stray text.
    fn take_rest(
        &mut self,
        rest: &str,
        broken: Option<&Value>,
        expected: Option<&RequestId>,
        reading: &mut OutputReading,
    ) {
        match broken.and_then(|said| self.match_request(Some(said), expected)) {
            Some((id, method)) => {
                reading.notes.push(format!("an answer that is no JSON: {}", short_quote(rest)));
                reading.messages.push(end_request(method, id, UnreadableAnswer::new("with what is no JSON", rest)));
            }
            None => reading.notes.push(format!("text that is no message: {}", short_quote(rest))),
        }
    }
}

impl OutputReading {
    /// A request or a notification of the server's own.
    fn take_request(&mut self, mut message: Map<String, Value>) {
        message.insert("jsonrpc".to_owned(), "2.0".into());
        for field in ["result", "error"] {
            message.remove(field);
        }
        if message.get("id").is_some_and(Value::is_null) {
            message.remove("id");
        }
        if message.get("params").is_some_and(|params| params.is_null()) {
            message.remove("params");
        }
        let shown = short_quote(&text_of(&Value::Object(message.clone())));
        match serde_json::from_value(Value::Object(message)) {
            Ok(message @ (ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_))) => {
                self.messages.push(message);
            }
            Ok(_) | Err(_) => self.notes.push(format!("a message that cannot be read: {shown}")),
        }
    }

    fn add_answer(&mut self, method: RequestMethod, id: RequestId, mut message: Map<String, Value>) {
        let error = message.remove("error").filter(|error| !error_answer::is_absent(error));
        let result = message.remove("result");
        let answer = match (error, result) {
            (Some(error), None | Some(Value::Null)) => self.read_error(method, id, error),
            (Some(error), Some(result)) => {
                let text = format!("{}\n{}", text_of(&error), text_of(&result));
                end_request(method, id, UnreadableAnswer::new("with an error and a result", &text))
            }
            (None, Some(result)) => self.read_result(method, id, result),
            (None, None) => {
                message.retain(|name, _| name != "jsonrpc" && name != "id");
                let text = text_of(&Value::Object(message));
                end_request(method, id, UnreadableAnswer::new("with neither a result nor an error", &text))
            }
        };
        self.messages.push(answer);
    }

    fn read_error(&mut self, method: RequestMethod, id: RequestId, error: Value) -> ServerJsonRpcMessage {
        match error_answer::read(error) {
            ErrorAnswer::Error(error) => ServerJsonRpcMessage::error(error, Some(id)),
            ErrorAnswer::Words(words) => {
                self.notes.push("an error without a code".to_owned());
                end_request(method, id, UnreadableAnswer::new("with an error without a code", &words))
            }
        }
    }

    fn read_result(&mut self, method: RequestMethod, id: RequestId, result: Value) -> ServerJsonRpcMessage {
        let read = match method {
            RequestMethod::CallTool => {
                let (read, notes) = call_answer::read(result);
                self.notes.extend(notes);
                read
            }
            RequestMethod::ReadResource => {
                let (read, notes) = resource_contents::read(result);
                self.notes.extend(notes);
                read.ok_or_else(|| UnreadableAnswer::new("without the contents of the resource", ""))
            }
            RequestMethod::ListTools => {
                tool_page::read(result).map_err(|reason| UnreadableAnswer::new(reason, "")).map(|page| {
                    self.notes.extend(page.notes.iter().cloned());
                    self.left_out.extend(page.left_out.iter().cloned());
                    page.into_result()
                })
            }
            RequestMethod::Initialize => {
                handshake::read(result).map_err(|reason| UnreadableAnswer::new(reason, "")).map(|read| {
                    self.notes.extend(read.1);
                    read.0
                })
            }
            RequestMethod::Discover => match serde_json::from_value(result) {
                Ok(result @ ServerResult::DiscoverResult(_)) => Ok(result),
                Ok(_) | Err(_) => Err(UnreadableAnswer::new("to server/discover with another result", "")),
            },
            RequestMethod::Listen | RequestMethod::Other => {
                serde_json::from_value(result).map_err(|error| UnreadableAnswer::new(error.to_string(), ""))
            }
        };
        match read {
            Ok(result) => ServerJsonRpcMessage::response(result, id),
            Err(unreadable) => end_request(method, id, unreadable),
        }
    }
}

/// The end of a request whose answer cannot be read. Of a call nobody knows what it did; that a server does not know how to
/// be discovered only says that it is of the older protocol.
fn end_request(method: RequestMethod, id: RequestId, unreadable: UnreadableAnswer) -> ServerJsonRpcMessage {
    let code = match method {
        RequestMethod::CallTool => return ServerJsonRpcMessage::response(unreadable.into_result(), id),
        RequestMethod::Discover => ErrorCode::METHOD_NOT_FOUND,
        RequestMethod::Initialize
        | RequestMethod::ListTools
        | RequestMethod::ReadResource
        | RequestMethod::Listen
        | RequestMethod::Other => ErrorCode::INTERNAL_ERROR,
    };
    let UnreadableAnswer { reason, text } = unreadable;
    let message =
        if text.is_empty() { format!("it answered {reason}") } else { format!("it answered {reason}: {text}") };
    ServerJsonRpcMessage::error(ErrorData::new(code, message, None), Some(id))
}

fn short_quote(text: &str) -> String {
    shorten_text(text, MAX_QUOTE_CHARS)
}

#[cfg(test)]
mod tests;
