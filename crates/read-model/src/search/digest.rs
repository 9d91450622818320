//! Digests of an index and of the tables, which are equal if both hold the same documents, in any order.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    DocumentKind,
    document::SearchDocument,
    meili::{EngineError, SearchEngine},
};
use crate::{ReadError, ReadSnapshot};

/// Documents that are read at once.
const PAGE: u32 = 500;

/// The digest of all documents of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KindDigest {
    pub documents: u64,
    /// The sum of the digests of all documents, in hexadecimal.
    pub digest: String,
}

/// By the name of their kind; all kinds are there.
pub type KindDigests = BTreeMap<&'static str, KindDigest>;

/// Of the documents that an index holds. It is read page by page, so it is right only while nothing is written.
pub async fn of_index(engine: &SearchEngine, index: &str) -> Result<KindDigests, EngineError> {
    let mut sums = DigestSums::default();
    let mut offset = 0;
    loop {
        let page = engine.list_documents(index, offset, PAGE as usize).await?;
        if page.is_empty() {
            return Ok(sums.into_digests());
        }
        offset += page.len();
        page.iter().for_each(|document| sums.add_document(document));
    }
}

/// Of the documents that follow from the tables.
pub async fn of_tables(snapshot: &ReadSnapshot) -> Result<KindDigests, ReadError> {
    let mut sums = DigestSums::default();
    for kind in DocumentKind::ALL {
        let mut after = 0;
        loop {
            let page = snapshot.changed_documents(kind, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.sequence;
            page.iter().for_each(|document| sums.add_document(document));
        }
    }
    Ok(sums.into_digests())
}

#[derive(Default)]
struct DigestSums(BTreeMap<DocumentKind, (u64, [u8; 32])>);

impl DigestSums {
    fn add_document(&mut self, document: &SearchDocument) {
        let (documents, sum) = self.0.entry(document.kind).or_default();
        *documents += 1;
        let mut carry = 0;
        for (digit, added) in sum.iter_mut().zip(document.digest()).rev() {
            let whole = u16::from(*digit) + u16::from(added) + carry;
            *digit = whole.to_be_bytes()[1];
            carry = whole >> 8;
        }
    }

    fn into_digests(mut self) -> KindDigests {
        let digest = |kind: DocumentKind| {
            let (documents, sum) = self.0.remove(&kind).unwrap_or_default();
            let digest = sum.iter().map(|byte| format!("{byte:02x}")).collect();
            (kind.name(), KindDigest { documents, digest })
        };
        DocumentKind::ALL.into_iter().map(digest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(id: &str, text: &str) -> SearchDocument {
        SearchDocument {
            uid: SearchDocument::uid_of(DocumentKind::Thread, "bob", id),
            kind: DocumentKind::Thread,
            id: id.into(),
            agent: "bob".into(),
            user: None,
            title: String::new(),
            text: text.into(),
            keywords: Vec::new(),
            kind_of: "topic".into(),
            status: None,
            day: 20_261_121,
            updated: 0,
            sequence: 1,
            thread: None,
        }
    }

    fn digests(documents: &[SearchDocument]) -> KindDigests {
        let mut sums = DigestSums::default();
        documents.iter().for_each(|document| sums.add_document(document));
        sums.into_digests()
    }

    #[test]
    fn a_digest_is_of_what_there_is_and_not_of_its_order() {
        let many: Vec<_> = (0..50).map(|number| document(&number.to_string(), "x")).collect();
        let mut turned = many.clone();
        turned.reverse();
        assert_eq!(digests(&many), digests(&turned));
        turned[7].text = "y".into();
        assert_ne!(digests(&many), digests(&turned));
        assert_ne!(digests(&many), digests(&many[1..]));
        let none = digests(&[]);
        assert_eq!((none.len(), none["task"].documents, none["task"].digest.len()), (5, 0, 64));
    }
}
