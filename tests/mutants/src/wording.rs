//! Other words for a text: without one of its sentences, or with another word in one.

/// A text that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reworded {
    pub kind: &'static str,
    /// The sentence that is left out, or that has another word.
    pub original: String,
    /// The whole text.
    pub text: String,
    /// The part of that sentence in the text as it is shown, without the values filled in.
    pub piece: String,
}

/// The word that replaces another.
const INSTEAD: &str = "otherwise";
/// Words that a piece has at least, so that it is found by chance nowhere else.
const FEW: usize = 2;

/// Returns true if the text is written for readers.
pub fn is_prose(text: &str) -> bool {
    text.split_whitespace().filter(|word| is_word(word)).count() > FEW && !text.starts_with("(?")
}

fn is_word(word: &str) -> bool {
    word.len() > 1 && word.chars().all(|sign| sign.is_alphabetic() || ".,:;'-".contains(sign))
}

/// Every change of a text; where it is a format, what is filled in stays.
pub fn changes(text: &str, is_format: bool) -> Vec<Reworded> {
    let sentences = sentences(text);
    let mut changes = Vec::new();
    let mut before = 0;
    for sentence in &sentences {
        let (start, behind) = (before, before + sentence.len());
        before = behind;
        let parts = (text.get(..start).unwrap_or_default(), text.get(behind..).unwrap_or_default());
        let original = sentence.trim().to_owned();
        let is_filled = is_format && sentence.contains(['{', '}']);
        if sentences.len() > 1 && !is_filled && words(sentence) >= FEW {
            let text = format!("{}{}", parts.0, parts.1);
            changes.push(Reworded { kind: "sentence", piece: original.clone(), original: original.clone(), text });
        }
        if let Some((sentence, piece)) = with_another_word(sentence, is_format) {
            let text = format!("{}{sentence}{}", parts.0, parts.1);
            changes.push(Reworded { kind: "word", original, text, piece });
        }
    }
    changes
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// The sentences and lines of a text, each with what separates it from the next.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let ends = [". ", "! ", "? ", ": ", "; ", "\n"].iter().filter_map(|sign| Some(rest.find(sign)? + sign.len()));
        let (sentence, behind) = rest.split_at(ends.min().unwrap_or(rest.len()));
        sentences.push(sentence);
        rest = behind;
    }
    sentences
}

/// The sentence with another word in its middle, and what stands around that.
fn with_another_word(sentence: &str, is_format: bool) -> Option<(String, String)> {
    let fragments: Vec<&str> = match is_format {
        true => sentence.split_inclusive(['{', '}']).collect(),
        false => vec![sentence],
    };
    // What is within braces is a name.
    let (mut at, mut depth) = (0, 0_usize);
    let mut best: Option<(usize, &str)> = None;
    for fragment in fragments {
        let words = fragment.trim_end_matches(['{', '}']);
        if depth == 0 && best.is_none_or(|(_, longest)| words.len() > longest.len()) {
            best = Some((at, words));
        }
        at += fragment.len();
        depth = match is_format.then(|| fragment.chars().last()).flatten() {
            Some('{') => depth + 1,
            Some('}') => depth.saturating_sub(1),
            _ => depth,
        };
    }
    let (start, fragment) = best?;
    let of_letters = |word: &&str| word.len() > 2 && word.chars().all(char::is_alphabetic) && *word != INSTEAD;
    let candidates: Vec<&str> = fragment.split(' ').filter(of_letters).collect();
    let word = candidates.get(candidates.len() / 2)?;
    if words(fragment) < FEW {
        return None;
    }
    let place = start + fragment.find(&format!(" {word} ")).map_or_else(|| fragment.find(word), |at| Some(at + 1))?;
    let (before, rest) = sentence.split_at(place);
    Some((format!("{before}{INSTEAD}{}", rest.get(word.len()..)?), fragment.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_left_out_and_words_are_others() {
        let all = changes("Look at the results. Then answer.", false);
        let told: Vec<_> = all.iter().map(|it| (it.kind, it.text.as_str(), it.piece.as_str())).collect();
        assert_eq!(
            told,
            [
                ("sentence", "Then answer.", "Look at the results."),
                ("word", "Look at otherwise results. Then answer.", "Look at the results."),
                ("sentence", "Look at the results. ", "Then answer."),
                ("word", "Look at the results. otherwise answer.", "Then answer."),
            ]
        );
    }

    #[test]
    fn what_is_filled_in_stays() {
        let all = changes("Go on from this, {name}, and say {it}.", true);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].text.contains("{name}") && all[0].text.contains("{it}") && all[0].text.contains(INSTEAD));
        assert!(!all[0].piece.contains('{'));
        assert!(!is_prose("agent.think") && !is_prose("a b") && is_prose("What was done before:"));
    }
}
