//! Images and audio of results, until whoever called takes them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::tool::Attachment;

/// Calls whose attachments are kept at most: of a call that was dropped nobody takes them.
const MAX_CALLS: usize = 32;

/// The attachments of the results of one tool, by the actions of its calls.
#[derive(Debug, Default)]
pub struct AttachmentStore(Mutex<VecDeque<(String, Vec<Attachment>)>>);

impl AttachmentStore {
    pub fn keep(&self, action_id: &str, attachments: Vec<Attachment>) {
        if attachments.is_empty() {
            return;
        }
        let mut calls = self.lock();
        calls.push_back((action_id.to_owned(), attachments));
        if calls.len() > MAX_CALLS {
            calls.pop_front();
        }
    }

    pub fn take(&self, action_id: &str) -> Vec<Attachment> {
        let mut calls = self.lock();
        let place = calls.iter().position(|(action, _)| action == action_id);
        place.and_then(|place| calls.remove(place)).map(|(_, attachments)| attachments).unwrap_or_default()
    }

    // Nothing panics while it is held.
    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, Vec<Attachment>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_its_own_and_none_stay_for_ever() {
        let attached = AttachmentStore::default();
        let image = |byte| vec![Attachment { media_type: "image/png", bytes: vec![byte] }];
        for byte in 0..100 {
            attached.keep(&byte.to_string(), image(byte));
        }
        attached.keep("none", Vec::new());
        assert_eq!(attached.take("99"), image(99));
        assert_eq!(attached.take("99"), []);
        assert_eq!(attached.take("0"), []);
        assert_eq!(attached.lock().len(), MAX_CALLS - 1);
    }
}
