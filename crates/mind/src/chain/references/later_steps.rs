//! Steps within the parameters of a step, which run later: the `action` of a task.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::chain::format::chain_items;

/// The parameter that holds steps.
const ACTION: &str = "action";
/// The parameter beside it that says that something triggers them.
const TRIGGER: &str = "trigger";

/// The steps that a value is part of and that run later than the step it is a parameter of.
#[derive(Clone, Default)]
pub struct LaterSteps<'v> {
    events: BTreeSet<&'v str>,
    within: bool,
    triggered: bool,
}

impl<'v> LaterSteps<'v> {
    /// For the value of this key.
    pub fn within_field(&self, fields: &'v Map<String, Value>, key: &str) -> Cow<'_, Self> {
        let items =
            fields.get(key).filter(|_| key == ACTION).and_then(|action| chain_items(action).ok()).unwrap_or_default();
        let steps = || items.iter().flat_map(|item| item.as_array().map_or(std::slice::from_ref(item), Vec::as_slice));
        if !steps().any(|step| step.get("event").is_some_and(Value::is_string)) {
            return Cow::Borrowed(self);
        }
        let mut later = self.clone();
        later.within = true;
        later.triggered |= fields.contains_key(TRIGGER);
        later.events.extend(steps().filter_map(|step| step.as_str().or_else(|| step.get("event")?.as_str())));
        Cow::Owned(later)
    }

    /// Returns true if the value is part of no later steps.
    pub fn is_empty(&self) -> bool {
        !self.within
    }

    /// Returns true if one of the later steps is of this event.
    pub fn runs_event(&self, event: &str) -> bool {
        self.events.contains(event)
    }

    /// Returns true if an event triggers the later steps.
    pub fn is_triggered(&self) -> bool {
        self.triggered
    }
}
