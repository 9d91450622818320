//! A user's message: words, and the images, audio and video that belong to them. Only the names of media are known
//! here.

use kairo_events::media;
use kairo_proto::v1::{AgentMessage, Part};
use serde::{Deserialize, Serialize};

use super::thread::cut_to_entry;

/// Parts of one message that are kept; the gateway takes fewer.
const PARTS: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageContent {
    pub text: String,
    pub parts: Vec<Part>,
}

impl MessageContent {
    /// As much of a message as is kept for the model.
    pub(super) fn from_message(message: &AgentMessage) -> Self {
        // A state is told with the words, so it is known wherever they are.
        Self::from_parts(&media::with_state(&message.text, &message.state), &message.parts)
    }

    /// As much as is kept of words that somebody said.
    pub(super) fn from_parts(text: &str, parts: &[Part]) -> Self {
        Self { text: cut_to_entry(text), parts: parts.iter().take(PARTS).cloned().collect() }
    }

    /// For whom only words will do: each part is named in its place, as in `[image photo.png, 120 kB]`.
    pub fn in_words(&self) -> String {
        media::text_with_parts(&self.text, &self.parts)
    }

    /// Returns the size of the words and the names of their parts, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.parts.iter().map(part_bytes).sum::<usize>()
    }
}

/// Returns the size of a part's type, digest and name, in bytes.
pub(super) fn part_bytes(part: &Part) -> usize {
    part.media_type.len() + part.digest.len() + part.name.len()
}

impl From<&str> for MessageContent {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), parts: Vec::new() }
    }
}
