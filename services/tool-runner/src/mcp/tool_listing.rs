//! The list of a server's tools, page by page. Wherever it ends, what there is by then is offered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rmcp::model::{ClientRequest, ListToolsRequest, ListToolsResult, PaginatedRequestParams, ServerResult, Tool};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};

use super::failure::innermost_cause;
use super::health::HealthNotes;
use super::oauth;

/// Asks for all pages, up to the number of tools that a catalogue can hold. `timeout` is that of one page.
///
/// # Errors
/// When the server does not give the first page, or is gone.
pub async fn list_tools(
    peer: &Peer<RoleClient>,
    timeout: Duration,
    max_tools: usize,
    notes: &HealthNotes,
) -> Result<Vec<Tool>, String> {
    notes.begin_list();
    let mut pages = ToolPages::new(max_tools);
    let mut cursor = None;
    loop {
        let is_first = cursor.is_none();
        match request_page(peer, timeout, cursor).await {
            Ok(page) => cursor = pages.add_page(page, notes),
            Err(error) if is_first || peer.is_transport_closed() => return Err(listing_error(&error)),
            Err(error) => {
                notes.add_note(&format!("a page of its list of tools is missing: {}", innermost_cause(&error)));
                cursor = None;
            }
        }
        if cursor.is_none() {
            return Ok(pages.tools);
        }
    }
}

/// Returns the reason there is no list. The library hides the error of its transport.
fn listing_error(error: &ServiceError) -> String {
    let refusal = match error {
        ServiceError::TransportSend(error) => oauth::refusal_reason(error),
        _ => None,
    };
    refusal.unwrap_or_else(|| innermost_cause(error))
}

async fn request_page(
    peer: &Peer<RoleClient>,
    timeout: Duration,
    cursor: Option<String>,
) -> Result<ListToolsResult, ServiceError> {
    // Not `Peer::list_tools`: its cache would answer for a server that is dead.
    let request = ClientRequest::ListToolsRequest(ListToolsRequest {
        method: Default::default(),
        params: Some(PaginatedRequestParams::default().with_cursor(cursor)),
        extensions: Default::default(),
    });
    let options = PeerRequestOptions::with_timeout(timeout);
    match peer.send_cancellable_request(request, options).await?.await_response().await? {
        ServerResult::ListToolsResult(page) => Ok(page),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// The pages so far.
struct ToolPages {
    max_tools: usize,
    tools: Vec<Tool>,
    /// Index in `tools`, by name.
    places: BTreeMap<String, usize>,
    cursors: BTreeSet<String>,
}

impl ToolPages {
    fn new(max_tools: usize) -> Self {
        Self { max_tools, tools: Vec::new(), places: BTreeMap::new(), cursors: BTreeSet::new() }
    }

    /// Takes a page up; gives the cursor of the next, unless it was the last that is asked for.
    fn add_page(&mut self, page: ListToolsResult, notes: &HealthNotes) -> Option<String> {
        page.tools.into_iter().for_each(|tool| self.add_tool(tool, notes));
        let cursor = page.next_cursor.filter(|cursor| !cursor.is_empty())?;
        // An empty page is allowed, an endless number of them is not.
        if self.cursors.len() >= self.max_tools || self.tools.len() > self.max_tools {
            notes.add_note(&format!("its list of tools goes on after {} pages", self.cursors.len() + 1));
            return None;
        }
        if !self.cursors.insert(cursor.clone()) {
            notes.add_note(&format!("its list of tools repeats the cursor {cursor:?}"));
            return None;
        }
        Some(cursor)
    }

    fn add_tool(&mut self, tool: Tool, notes: &HealthNotes) {
        let name = tool.name.to_string();
        match self.places.get(&name).and_then(|place| self.tools.get(*place)) {
            None => {
                self.places.insert(name, self.tools.len());
                self.tools.push(tool);
            }
            Some(same) if *same == tool => notes.add_note(&format!("the tool {name} is listed twice")),
            Some(_) => notes.leave_out(&name, "another tool of this server has this name"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::health::HealthState;
    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        serde_json::from_value(json!({"name": name, "description": description, "inputSchema": {"type": "object"}}))
            .unwrap()
    }

    fn page(names: &[&str], next: Option<&str>) -> ListToolsResult {
        let mut page = ListToolsResult::with_all_items(names.iter().map(|name| tool(name, "")).collect());
        page.next_cursor = next.map(str::to_owned);
        page
    }

    #[test]
    fn a_list_ends_wherever_it_repeats_itself() {
        let notes = HealthNotes::default();
        let mut pages = ToolPages::new(10);
        assert_eq!(pages.add_page(page(&["a", "b"], Some("1")), &notes).as_deref(), Some("1"));
        assert_eq!(pages.add_page(page(&["c"], Some("2")), &notes).as_deref(), Some("2"));
        assert_eq!(pages.add_page(page(&["d", "a"], Some("1")), &notes), None);
        assert_eq!(pages.tools.len(), 4);
        assert_eq!(notes.to_health(HealthState::Up, None).notes.len(), 2);
        assert_eq!(ToolPages::new(10).add_page(page(&[], Some("")), &notes), None);
    }

    #[test]
    fn a_list_without_an_end_is_cut() {
        let notes = HealthNotes::default();
        let mut pages = ToolPages::new(3);
        let mut asked = 0;
        while pages.add_page(page(&[], Some(&asked.to_string())), &notes).is_some() {
            asked += 1;
        }
        assert_eq!(asked, 3);
        assert_eq!(ToolPages::new(1).add_page(page(&["a", "b"], Some("1")), &notes), None);
    }

    #[test]
    fn of_two_tools_with_one_name_the_second_is_left_out() {
        let notes = HealthNotes::default();
        let mut pages = ToolPages::new(10);
        let list = ListToolsResult::with_all_items(vec![tool("a", "one"), tool("a", "two"), tool("b", "")]);
        assert_eq!(pages.add_page(list, &notes), None);
        assert_eq!(pages.tools.len(), 2);
        assert_eq!(notes.to_health(HealthState::Up, None).left_out[0].0, "a");
    }
}
