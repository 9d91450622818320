//! Tools that are requests to web APIs: those that the configuration describes one by one ([`config::HttpToolConfig`]),
//! and the operations of OpenAPI documents ([`openapi`]).
//!
//! A pure function builds the request of a call from its arguments ([`request`]); [`tool`] sends it.

pub mod config;
pub mod openapi;
pub mod request;
mod secrets;
pub mod template;
pub mod tool;

use std::sync::Arc;

use crate::allow_list::AllowList;
use crate::config::ToolsConfig;
use crate::tool::Tool;
use crate::toolbox::ToolboxError;
use crate::web::{self, SystemResolver};
use tool::{ApiTool, ApiToolLimits};

/// All tools that the configuration makes of web APIs.
///
/// # Errors
/// Every mistake in it and in the documents it names.
pub fn tools(config: &ToolsConfig) -> Result<Vec<Arc<dyn Tool>>, ToolboxError> {
    let custom = &config.tools;
    let documented = openapi::read_documents(config).map_err(ToolboxError::Configuration)?;
    let described = custom.http.iter().map(|tool| tool.to_definition(config.call_timeout()));
    let described: Vec<_> =
        described.collect::<Result<_, _>>().map_err(|mistake| ToolboxError::Configuration(vec![mistake]))?;
    let all: Vec<_> = described.into_iter().chain(documented).collect();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    // The operator wrote these hosts down, so they are listed; where they lead to is checked like everywhere.
    let hosts: Vec<String> = all.iter().map(|tool| tool.operation.template.host().to_owned()).collect();
    let allowed = AllowList::parse(&hosts, &config.http.allow_private).map_err(ToolboxError::Configuration)?;
    let allowed = Arc::new(allowed);
    let client = web::client(&allowed, Arc::new(SystemResolver))?;
    let limits = ApiToolLimits { redirects: config.http.max_redirects };
    let made = all.into_iter().map(|tool| ApiTool::new(tool, client.clone(), Arc::clone(&allowed), limits));
    Ok(made.map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect())
}
