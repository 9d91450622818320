//! The registry of the tools of all owners, and the catalogue built from it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use crate::catalogue::{Catalogue, CatalogueLimits, Rejection};
use crate::tool::{Tool, ToolError};

/// The tools by their owner, and the catalogue made of them.
#[derive(Debug)]
pub(crate) struct Registry {
    limits: CatalogueLimits,
    tools: Mutex<Tools>,
    catalogue: watch::Sender<Arc<Catalogue>>,
}

#[derive(Default)]
struct Tools {
    by_owner: BTreeMap<String, Vec<Arc<dyn Tool>>>,
    by_name: BTreeMap<String, Arc<dyn Tool>>,
    rejections: Vec<Rejection>,
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

/// Owner of the built-in tools: sorts before every server, so that no server can displace them.
const BUILT_IN: &str = "";

impl Registry {
    pub(crate) fn new(builtin: Vec<Arc<dyn Tool>>, limits: CatalogueLimits) -> Self {
        let (empty, _) = Catalogue::build([], limits);
        let registry = Self { limits, tools: Mutex::default(), catalogue: watch::Sender::new(Arc::new(empty)) };
        registry.replace_tools(BUILT_IN, builtin);
        registry
    }

    /// Replaces all tools of an owner, and says which of all tools are left out.
    pub(crate) fn replace_tools(&self, owner: &str, mut replacement: Vec<Arc<dyn Tool>>) -> Vec<Rejection> {
        // In the order of their names, so that a limit cuts the same ones off on every replica.
        replacement.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        let mut tools = self.lock();
        tools.by_owner.insert(owner.to_owned(), replacement);
        let all = || tools.by_owner.values().flatten();
        let (catalogue, rejections) = Catalogue::build(all().map(|tool| tool.spec().clone()), self.limits);
        for rejection in &rejections {
            tracing::warn!(tool = rejection.name, reason = rejection.reason, "tool left out");
        }
        let mut by_name = BTreeMap::new();
        for tool in all().filter(|tool| catalogue.get(&tool.spec().name).is_some()) {
            // The first wins, as in the catalogue.
            by_name.entry(tool.spec().name.clone()).or_insert_with(|| Arc::clone(tool));
        }
        tools.by_name = by_name;
        let others_left_out = tools.rejections != rejections;
        tools.rejections.clone_from(&rejections);
        self.catalogue.send_if_modified(|current| {
            let changed = others_left_out || current.version() != catalogue.version();
            *current = Arc::new(catalogue);
            changed
        });
        rejections
    }

    /// The tools that are left out, and why.
    pub(crate) fn rejections(&self) -> Vec<Rejection> {
        self.lock().rejections.clone()
    }

    /// The tool that is called, once its arguments fit.
    pub(crate) fn find_for_call(&self, name: &str, args: &Value) -> Result<Arc<dyn Tool>, ToolError> {
        let (catalogue, tool) = {
            let tools = self.lock();
            let catalogue = Arc::clone(&self.catalogue.borrow());
            (catalogue, tools.by_name.get(name).cloned())
        };
        catalogue.validate(name, args)?;
        tool.ok_or_else(|| ToolError::not_found(format!("there is no tool named {name:?}")))
    }

    /// The tool of this name, whatever it is called with.
    pub(crate) fn find_by_name(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.lock().by_name.get(name).cloned()
    }

    /// The tools on offer, now and whenever they change.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.catalogue.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Tools> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
