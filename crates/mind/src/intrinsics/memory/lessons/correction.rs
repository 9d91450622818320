//! Lessons beside known memories: the model sees both texts and says which lesson corrects which memory. Lessons
//! without a correction are kept apart, however alike they are, unless the sentence is identical.

use std::collections::BTreeSet;

use kairo_events::ids;
use kairo_proto::v1::MemoryAppended;
use serde_json::{Map, Value};

use super::{LessonItem, MOST, SealedText, distinct_sources, memory_day, normalize_keywords, read_item, recall_known};
use crate::{intrinsics::IntrinsicContext, memories::KnownMemory};

/// The memories that an answer lists. An item that cannot be read is left out, where others can.
pub fn read(context: &IntrinsicContext<'_>, thread_id: &str, items: &[Value]) -> Result<Vec<MemoryAppended>, String> {
    // In the order in which the model was shown them.
    let shown = recall_known(context.state, thread_id).map(|(_, known)| known).unwrap_or_default();
    let mut taken = BTreeSet::new();
    let mut read = Vec::new();
    let mut flaws = Vec::new();
    for (at, item) in items.iter().take(MOST).enumerate() {
        match read_memory(context, thread_id, (at, item), &shown, &mut taken) {
            Ok(memory) => read.push(memory),
            Err(flaw) => flaws.push(format!("memory {}: {flaw}", at + 1)),
        }
    }
    match flaws.into_iter().next().filter(|_| read.is_empty()) {
        Some(flaw) => Err(flaw),
        None => Ok(read),
    }
}

fn read_memory(
    context: &IntrinsicContext<'_>,
    thread_id: &str,
    (at, item): (usize, &Value),
    shown: &[&KnownMemory],
    taken: &mut BTreeSet<String>,
) -> Result<MemoryAppended, String> {
    let item = item.as_object().ok_or("expected an object")?;
    let LessonItem { kind, subject, content } = read_item(item)?;
    let user = &context.turn.user;
    let is_free = |known: &&KnownMemory| !taken.contains(&known.memory_id);
    let same = context.state.memories.find_identical(&kind, user, &content.text).filter(is_free);
    let replaced = same.or_else(|| replaced_memory(item, shown, user).filter(is_free));
    let own_id = ids::derive(context.id, &format!("memory/{at}"));
    let id = replaced.and_then(|known| known.memory_id.parse().ok()).unwrap_or(own_id);
    taken.insert(id.to_string());
    let kept = SealedText::seal(context.secret_key, id, content)?;
    let fresh = context.state.threads.get(thread_id).into_iter().flat_map(|thread| &thread.fresh);
    // The same again has both sources; what corrects something has its own.
    let known_sources = same.into_iter().flat_map(|known| &known.sources).map(String::as_str);
    let mut outside = context.state.provenance_of(context.turn);
    outside.add_marks(replaced.into_iter().flat_map(|known| known.outside.marks()));
    Ok(MemoryAppended {
        memory_id: id.to_string(),
        keywords: normalize_keywords(subject.split_whitespace().chain([subject.as_str(), kind.as_str()])),
        kind,
        subject,
        content: same.map_or(kept.text, |known| known.content.clone()),
        day: memory_day(context, &Map::new())?.to_string(),
        source_event_ids: distinct_sources(known_sources.chain(fresh.map(|event| &**event))),
        secrets: kept.sealed,
        user: user.clone(),
        outside: outside.marks(),
        lacks_keywords: false,
    })
}

/// Returns the memory that an item replaces: of the same user, and without a secret, which would be lost.
fn replaced_memory<'k>(item: &Map<String, Value>, shown: &[&'k KnownMemory], user: &str) -> Option<&'k KnownMemory> {
    let number = usize::try_from(item.get("replaces")?.as_u64()?).ok()?;
    let known = *shown.get(number.checked_sub(1)?)?;
    (known.user == user && !known.content.contains("[secret ")).then_some(known)
}
