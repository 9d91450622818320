//! Groups documents into requests.

use kairo_read_model::search::document::SearchDocument;

/// Groups of no more than so many bytes, in order; a larger document is a group of its own.
pub fn group_by_size(documents: Vec<SearchDocument>, bytes: usize) -> Vec<Vec<SearchDocument>> {
    let mut groups: Vec<Vec<SearchDocument>> = Vec::new();
    let mut left = 0;
    for document in documents {
        let length = document.encoded_len();
        match groups.last_mut() {
            Some(group) if length <= left => group.push(document),
            _ => {
                groups.push(vec![document]);
                left = bytes;
            }
        }
        left = left.saturating_sub(length);
    }
    groups
}

/// The halves of a group that was refused, or all of it where it cannot be halved.
pub fn split_in_half(mut group: Vec<SearchDocument>) -> Result<[Vec<SearchDocument>; 2], Vec<SearchDocument>> {
    if group.len() < 2 {
        return Err(group);
    }
    let second = group.split_off(group.len() / 2);
    Ok([group, second])
}

#[cfg(test)]
mod tests {
    use kairo_read_model::search::DocumentKind;

    use super::*;

    fn document(id: usize, letters: usize) -> SearchDocument {
        SearchDocument {
            uid: SearchDocument::uid_of(DocumentKind::Task, "bob", &id.to_string()),
            kind: DocumentKind::Task,
            id: id.to_string(),
            agent: "bob".into(),
            user: None,
            title: "x".repeat(letters),
            text: String::new(),
            keywords: Vec::new(),
            kind_of: "hook".into(),
            status: None,
            day: 20_261_121,
            updated: 0,
            sequence: 1,
            thread: None,
        }
    }

    #[test]
    fn groups_are_as_large_as_they_may_be_and_keep_the_order() {
        let length = document(1, 0).encoded_len();
        let documents = [0, 0, 0, 9_000, 0].into_iter().enumerate().map(|(id, letters)| document(id, letters));
        let groups = group_by_size(documents.collect(), 2 * length);
        let ids: Vec<Vec<&str>> =
            groups.iter().map(|group| group.iter().map(|one| one.id.as_str()).collect()).collect();
        assert_eq!(ids, [vec!["0", "1"], vec!["2"], vec!["3"], vec!["4"]]);
        assert!(group_by_size(Vec::new(), 1).is_empty());
    }

    #[test]
    fn the_refused_one_is_found_by_halving() {
        let mut waiting = vec![(0..9).map(|id| document(id, 0)).collect::<Vec<_>>()];
        let mut refused = Vec::new();
        let mut tries = 0;
        while let Some(group) = waiting.pop() {
            tries += 1;
            if group.iter().any(|one| one.id == "6") {
                match split_in_half(group) {
                    Ok([one, other]) => waiting.extend([other, one]),
                    Err(alone) => refused.extend(alone),
                }
            }
        }
        assert_eq!(refused.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["6"]);
        assert!(tries <= 9, "{tries}");
        assert_eq!(split_in_half(Vec::new()), Err(Vec::new()));
    }
}
