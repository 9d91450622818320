//! Conversations that were had elsewhere, on their way into the log. Pure.
//!
//! A document becomes one or more messages of the log ([`split_document`]), each of which stands for itself: it names the threads that
//! its messages are in. Every id follows from the agent, the user and the document, so that the same document again is the
//! same messages, which whoever has taken them in passes over.

use std::collections::{BTreeMap, BTreeSet};

use kairo_proto::v1::{AgentImported, ConversationDocument, DocumentMessage, ImportedMessage, ImportedThread, Part};
use uuid::Uuid;

use crate::{
    ids::{self, Name},
    media,
    outside::{self, OutsideSource},
    threads,
};

/// The format that a document says it has.
pub const FORMAT: &str = "kairo.conversation.v1";
/// Largest request with a document, in bytes.
pub const DOCUMENT_BYTES: usize = 8 * 1024 * 1024;
/// Threads of a document.
pub const THREADS: usize = 500;
/// Messages of a document.
pub const MESSAGES: usize = 20_000;
/// Longest text of a message, in bytes.
pub const TEXT_BYTES: usize = 128 * 1024;
/// Longest title and summary of a thread, in bytes.
pub const TITLE_BYTES: usize = 4 * 1024;
pub const SUMMARY_BYTES: usize = 32 * 1024;
/// Images, audio and video of one message, and of all of a document.
pub const PARTS: usize = 64;
pub const ALL_PARTS: usize = 1_000;
/// Size of a document's part in one message of the log, in bytes: well below the payload that a server takes. Never
/// change it: the part that a message of a document is in, and so the ids of parts, depend on it.
const PART_BYTES: usize = 256 * 1024;
/// Overhead of a message, a thread or an image besides its texts, in bytes.
const AROUND_BYTES: usize = 256;

/// The import of a document for a user of an agent, from which all ids follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationImport {
    agent: Name,
    user: Name,
    digest: String,
    /// The namespace from which its ids are derived.
    key: Uuid,
}

impl ConversationImport {
    /// A document of the same words is the same one, whenever it was written.
    pub fn new(agent: &Name, user: &Name, document: &ConversationDocument) -> Self {
        let canonical = ConversationDocument { exported_at: String::new(), ..document.clone() };
        let digest = media::digest(&serde_json::to_vec(&canonical).unwrap_or_default());
        let key = ids::from_parts("import", &[agent.as_str(), user.as_str(), &digest]);
        Self { agent: agent.clone(), user: user.clone(), digest, key }
    }

    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The event that a part of it is.
    pub fn event_id(&self, part: u32) -> Uuid {
        ids::derive(self.key, &format!("part/{part}"))
    }

    /// Returns the id of one of its threads in the log, which shows that it is the user's.
    pub fn thread_id(&self, named: &str) -> String {
        let called = ids::derive(self.key, &format!("thread/{named}"));
        threads::id_for_name(self.agent.as_str(), self.user.as_str(), &called.to_string())
    }

    fn message_id(&self, place: usize) -> String {
        ids::derive(self.key, &format!("message/{place}")).to_string()
    }
}

/// Returns the messages of the log for a document. Its images, audio and video are kept if they are stored here, by
/// their digests; words stand for the others.
pub fn split_document(
    import: &ConversationImport,
    document: &ConversationDocument,
    stored: &BTreeMap<String, Part>,
) -> Vec<AgentImported> {
    let threads: BTreeMap<&str, ImportedThread> = document
        .threads
        .iter()
        .map(|thread| {
            let title = thread.title.clone();
            let summary = thread.summary.clone();
            let thread_id = import.thread_id(&thread.thread_id);
            (thread.thread_id.as_str(), ImportedThread { thread_id, title, summary })
        })
        .collect();
    let mut splitting =
        DocumentSplitter { whole: Vec::new(), part: AgentImported::default(), bytes: 0, named: BTreeSet::new() };
    for (place, message) in document.messages.iter().enumerate() {
        let Some(thread) = threads.get(message.thread_id.as_str()) else { continue };
        splitting.add_message(thread, Some(imported_message(import, place, thread, message, stored)));
    }
    let said: BTreeSet<&str> = document.messages.iter().map(|message| message.thread_id.as_str()).collect();
    for thread in document.threads.iter().filter(|thread| !said.contains(thread.thread_id.as_str())) {
        threads.get(thread.thread_id.as_str()).into_iter().for_each(|thread| splitting.add_message(thread, None));
    }
    let whole = splitting.finish();
    let parts = u32::try_from(whole.len()).unwrap_or(u32::MAX);
    let numbered = whole.into_iter().zip(1..).map(|(content, part)| AgentImported {
        import_id: import.digest.clone(),
        user: import.user.to_string(),
        part,
        parts,
        outside: vec![outside::source_mark(OutsideSource::Import, &document.agent)],
        ..content
    });
    numbered.collect()
}

fn imported_message(
    import: &ConversationImport,
    place: usize,
    thread: &ImportedThread,
    message: &DocumentMessage,
    stored: &BTreeMap<String, Part>,
) -> ImportedMessage {
    let mut parts = Vec::new();
    let mut missing = Vec::new();
    for part in &message.parts {
        match stored.get(&part.digest) {
            Some(kept) => parts.push(Part { name: part.name.clone(), ..kept.clone() }),
            None => {
                let media_type = part.media_type.clone();
                let digest = part.digest.clone();
                missing.push(Part { media_type, digest, size: part.size, name: part.name.clone() });
            }
        }
    }
    ImportedMessage {
        message_id: import.message_id(place),
        thread_id: thread.thread_id.clone(),
        role: message.role.clone(),
        text: media::text_with_parts(&message.text, &missing),
        time: message.time.clone(),
        parts,
    }
}

/// Messages on their way into parts.
struct DocumentSplitter {
    whole: Vec<AgentImported>,
    part: AgentImported,
    /// Of the part at hand.
    bytes: usize,
    /// Threads of the part at hand.
    named: BTreeSet<String>,
}

impl DocumentSplitter {
    fn add_message(&mut self, thread: &ImportedThread, message: Option<ImportedMessage>) {
        let of_message = message.as_ref().map_or(0, |message| {
            let part = |part: &Part| part.media_type.len() + part.digest.len() + part.name.len() + AROUND_BYTES;
            message.text.len() + AROUND_BYTES + message.parts.iter().map(part).sum::<usize>()
        });
        let of_thread = thread.title.len() + thread.summary.len() + AROUND_BYTES;
        let is_named = self.named.contains(&thread.thread_id);
        let more = of_message + if is_named { 0 } else { of_thread };
        if self.bytes + more > PART_BYTES && self.bytes > 0 {
            self.whole.push(std::mem::take(&mut self.part));
            self.named.clear();
            self.bytes = 0;
        }
        if self.named.insert(thread.thread_id.clone()) {
            self.part.threads.push(thread.clone());
            self.bytes += of_thread;
        }
        self.bytes += of_message;
        self.part.messages.extend(message);
    }

    fn finish(mut self) -> Vec<AgentImported> {
        if self.bytes > 0 {
            self.whole.push(self.part);
        }
        self.whole
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::{
        Body,
        v1::{DocumentPart, DocumentThread},
    };

    use super::*;

    fn document(texts: &[(&str, &str)]) -> ConversationDocument {
        let thread =
            |id: &str| DocumentThread { thread_id: id.into(), title: id.to_uppercase(), summary: "food".into() };
        let message = |(thread, text): &(&str, &str)| DocumentMessage {
            thread_id: (*thread).into(),
            role: "user".into(),
            text: (*text).into(),
            ..Default::default()
        };
        ConversationDocument {
            format: FORMAT.into(),
            agent: "cook".into(),
            user: "ann".into(),
            threads: vec![thread("lunch"), thread("dinner"), thread("empty")],
            messages: texts.iter().map(message).collect(),
            ..Default::default()
        }
    }

    fn import(document: &ConversationDocument) -> ConversationImport {
        ConversationImport::new(&Name::parse("bob").unwrap(), &Name::parse("joe").unwrap(), document)
    }

    #[test]
    fn the_same_words_are_the_same_import_whenever_they_were_written() {
        let one = document(&[("lunch", "soup")]);
        let later = ConversationDocument { exported_at: "2026-11-21T10:00:00Z".into(), ..one.clone() };
        let other = document(&[("lunch", "stew")]);
        assert_eq!(import(&one), import(&later));
        assert_ne!(import(&one).event_id(1), import(&other).event_id(1));
        assert_ne!(import(&one).event_id(1), import(&one).event_id(2));
        let thread = import(&one).thread_id("lunch");
        assert!(threads::is_owned_by("bob", "joe", &thread) && Name::parse(&thread).is_ok());
    }

    #[test]
    fn every_message_is_in_one_part_whole_and_in_order_with_its_thread() {
        let long = "x".repeat(100 * 1024);
        let texts = [("lunch", long.as_str()), ("dinner", &long), ("lunch", &long), ("lunch", "the end")];
        let document = document(&texts);
        let parts = split_document(&import(&document), &document, &BTreeMap::new());
        assert_eq!(parts.iter().map(|part| (part.part, part.parts)).collect::<Vec<_>>(), [(1, 2), (2, 2)]);
        assert_eq!(parts.iter().map(|part| part.messages.len()).collect::<Vec<_>>(), [2, 2]);
        let ids: BTreeSet<_> = parts.iter().flat_map(|part| &part.messages).map(|it| &it.message_id).collect();
        assert_eq!(ids.len(), 4);
        let titles = |part: &AgentImported| part.threads.iter().map(|it| it.title.clone()).collect::<Vec<_>>();
        assert_eq!(
            (titles(&parts[0]), titles(&parts[1])),
            (vec!["LUNCH".into(), "DINNER".into()], vec!["LUNCH".to_owned(), "EMPTY".into()])
        );
        for part in parts {
            assert_eq!(part.outside, ["import:cook"]);
            assert!(Body::from(part).encode().len() < PART_BYTES + 1024);
        }
    }

    #[test]
    fn what_is_largest_still_fits_one_message_of_the_log() {
        let thread = DocumentThread {
            thread_id: "t".into(),
            title: "t".repeat(TITLE_BYTES),
            summary: "s".repeat(SUMMARY_BYTES),
        };
        let part = |at: usize| DocumentPart {
            media_type: format!("image/{}", "x".repeat(80)),
            digest: format!("{at:064x}"),
            size: 7,
            name: "n".repeat(media::NAME_BYTES),
        };
        let message = DocumentMessage {
            thread_id: "t".into(),
            role: "agent".into(),
            text: "x".repeat(TEXT_BYTES),
            parts: (0..PARTS).map(part).collect(),
            ..Default::default()
        };
        let document = ConversationDocument { threads: vec![thread], messages: vec![message], ..document(&[]) };
        let stored = |at: usize| {
            let DocumentPart { media_type, digest, size, name } = part(at);
            (digest.clone(), Part { media_type, digest, size, name })
        };
        for stored in [BTreeMap::new(), (0..PARTS).map(stored).collect()] {
            let [part] = split_document(&import(&document), &document, &stored).try_into().unwrap();
            assert!(Body::from(part).encode().len() < PART_BYTES);
        }
    }

    #[test]
    fn images_that_are_not_stored_here_are_told_in_words() {
        let mut document = document(&[("lunch", "look")]);
        let part = |digest: &str| DocumentPart {
            media_type: "image/png".into(),
            digest: digest.into(),
            size: 7,
            name: "a.png".into(),
        };
        document.messages[0].parts = vec![part("one"), part("two")];
        let kept = Part { media_type: "image/png".into(), digest: "two".into(), size: 7, name: String::new() };
        let parts = split_document(&import(&document), &document, &BTreeMap::from([("two".to_owned(), kept.clone())]));
        let message = &parts[0].messages[0];
        assert_eq!(message.text, "look\n[image a.png, 7 bytes]");
        assert_eq!(message.parts, [Part { name: "a.png".into(), ..kept }]);
    }
}
