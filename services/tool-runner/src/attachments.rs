//! Images and audio that come with results: kept in the object store, where those of users' messages are, and named in events by
//! their digests.

use std::time::Duration;

use kairo_core::{
    bus::{
        Bus,
        objects::{MediaStore, PutError, StoredFor},
    },
    media,
};
use kairo_proto::v1::Part;

use crate::tool::Attachment;

/// Images and pieces of audio of one result that are kept.
pub const MAX_ATTACHMENTS: usize = 8;
/// Largest of them, in bytes.
pub const MAX_BYTES: usize = 5 * 1024 * 1024;
/// One that was stored longer ago is made young again, so that nobody removes it before the event names it.
const YOUNG: Duration = Duration::from_secs(600);

/// Keeps them.
pub struct Attachments {
    objects: MediaStore,
}

impl Attachments {
    pub fn new(bus: &Bus) -> Self {
        Self { objects: MediaStore::new(bus) }
    }

    /// Keeps what came with a result, on behalf of a user; empty for nobody's. What cannot be kept is left out: the result
    /// names it in words, and an effect is never worth less than a picture of it.
    pub async fn store(&self, attachments: &[Attachment], user: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        for attachment in attachments.iter().take(MAX_ATTACHMENTS) {
            match self.store_one(attachment, user).await {
                Ok(part) => parts.push(part),
                Err(error) => tracing::warn!(%error, "an image or audio of a result could not be kept"),
            }
        }
        parts
    }

    async fn store_one(&self, attachment: &Attachment, user: &str) -> Result<Part, PutError> {
        let digest = media::digest(&attachment.bytes);
        if let Some(part) = self.objects.find_and_renew(&digest, YOUNG).await? {
            return Ok(part);
        }
        let user = Some(user).filter(|user| !user.is_empty()).map(str::to_owned);
        let stored_for = StoredFor { key: None, user };
        self.objects.store_object(&digest, attachment.media_type, &attachment.bytes, &stored_for).await
    }
}
