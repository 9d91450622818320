//! Storage of the images, audio and video that models are shown.

use std::error::Error;

use futures::{FutureExt, future::BoxFuture};
use kairo_core::bus::objects::MediaStore;

/// The bytes of a part, and what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPart {
    pub media_type: String,
    pub bytes: Vec<u8>,
}

/// The result of looking up a part: none if it is not, or no longer, stored. Errors are transient: the call may be
/// retried.
pub type PartLookup = Result<Option<StoredPart>, Box<dyn Error + Send + Sync>>;

/// A store of the parts that messages name.
pub trait PartStore: Send + Sync {
    /// The bytes that have this digest, no more than `longest` of them.
    fn get<'a>(&'a self, digest: &'a str, longest: u64) -> BoxFuture<'a, PartLookup>;
}

/// For those who have none: the model is told that they are not stored any more.
#[derive(Clone, Copy, Debug)]
pub struct EmptyPartStore;

impl PartStore for EmptyPartStore {
    fn get<'a>(&'a self, _: &'a str, _: u64) -> BoxFuture<'a, PartLookup> {
        async { Ok(None) }.boxed()
    }
}

impl PartStore for MediaStore {
    fn get<'a>(&'a self, digest: &'a str, longest: u64) -> BoxFuture<'a, PartLookup> {
        async move {
            let found = Self::get(self, digest, longest).await?;
            Ok(found.map(|(part, bytes)| StoredPart { media_type: part.media_type, bytes }))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kairo_mind::{
        chat_completions::ShownPart,
        request::{ModelRequest, PromptMessage},
    };
    use kairo_proto::v1::Part;

    use super::{super::Models, *};
    use crate::config::ModelsConfig;

    /// The same bytes under whatever digest.
    struct Always(Vec<u8>);

    impl PartStore for Always {
        fn get<'a>(&'a self, _: &'a str, _: u64) -> BoxFuture<'a, PartLookup> {
            async { Ok(Some(StoredPart { media_type: "image/png".to_owned(), bytes: self.0.clone() })) }.boxed()
        }
    }

    async fn load_shown_part(parts: impl PartStore + 'static) -> ShownPart {
        let config = ModelsConfig::default();
        let models = Models::new(&config, Arc::new(parts), 1024);
        let part = Part { media_type: "image/png".to_owned(), digest: "d".to_owned(), size: 3, ..Part::default() };
        let user = PromptMessage::User { text: "look".to_owned(), parts: vec![part] };
        let (shown, _room) =
            models.load(&ModelRequest::from_messages("heavy", vec![user]), &config.heavy, true).await.unwrap();
        shown.into_iter().next().unwrap()
    }

    #[tokio::test]
    async fn a_part_is_shown_as_it_is_stored_and_told_of_where_there_are_none() {
        assert!(matches!(load_shown_part(EmptyPartStore).await, ShownPart::Told("it is no longer stored")));
        let ShownPart::Data { media_type, base64 } = load_shown_part(Always(vec![1, 2, 3])).await else {
            panic!("it is told of")
        };
        assert_eq!((media_type.as_str(), base64.as_str()), ("image/png", "AQID"));
    }
}
