//! The misfits of a log with its hash chain, located as closely as possible.

use kairo_proto::v1::HashLink;
use serde::Serialize;

/// A message that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Misfit {
    /// The position in the log; for a missing message, that of the next one, unless its own is known.
    pub sequence: u64,
    pub kind: MisfitKind,
    /// The decision whose digest shows it.
    pub decision: u64,
    pub why: String,
    /// The message behind which one is missing, if its position is not known.
    #[serde(skip)]
    behind: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MisfitKind {
    /// It is another one than when the decision was made.
    Changed,
    Missing,
    /// It was put in later.
    Added,
    /// It stood elsewhere.
    Swapped,
    /// A decision that nobody made who knew what stands before it, or one whose digest was changed.
    Forged,
}

impl std::fmt::Display for MisfitKind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Added => "added",
            Self::Swapped => "swapped",
            Self::Forged => "forged",
        })
    }
}

impl Misfit {
    fn new(sequence: u64, kind: MisfitKind, decision: u64, why: impl Into<String>) -> Self {
        Self { sequence, kind, decision, why: why.into(), behind: None }
    }

    /// Of one that is missing, where it stood, if a message is missing between its neighbours.
    pub(super) fn with_gap_position(self, gaps: &[u64]) -> Self {
        let gap = self.behind.and_then(|behind| gaps.iter().find(|gap| (behind + 1..self.sequence).contains(gap)));
        gap.map_or(self.clone(), |gap| Self::missing_message(*gap, self.decision))
    }

    fn missing_message(sequence: u64, decision: u64) -> Self {
        let why = format!("the message that stood there is not there: decision {decision} rests on it");
        Self::new(sequence, MisfitKind::Missing, decision, why)
    }

    /// A decision without a link, behind one that has one.
    pub(super) fn unlinked_decision(sequence: u64) -> Self {
        Self::new(sequence, MisfitKind::Forged, sequence, "the decision carries no digest, and those before it do")
    }

    /// A decision that was not written behind `decided`, which is what stands before it; and what it would cover, with its marks.
    pub(super) fn misplaced_decision(sequence: u64, link: &HashLink, decided: u64, covered: &[(u64, u32)]) -> Self {
        let HashLink { previous, .. } = *link;
        let same = matching_prefix_len(link, covered);
        if let (Some((first, _)), Some(other)) = (covered.get(same), swapped_with(same, link, covered)) {
            return Self::swapped_messages(*first, other, sequence);
        }
        if (decided + 1..sequence).contains(&previous) {
            let why = format!("the decision that stood there is not there: decision {sequence} was made behind it");
            return Self::new(previous, MisfitKind::Missing, sequence, why);
        }
        let why = match (previous == decided, decided) {
            (true, _) => "the decision says to know what no one who stands before it can know".to_owned(),
            (_, 0) => format!("the decision was made behind one at {previous}, and none stands before it"),
            _ => format!("the decision was made behind one at {previous}, and the one before it stands at {decided}"),
        };
        Self::new(sequence, MisfitKind::Forged, sequence, why)
    }

    /// A decision whose digest is another than that of what it covers: where that stands, and its marks.
    pub(super) fn digest_mismatch(sequence: u64, link: &HashLink, covered: &[(u64, u32)]) -> Self {
        let written = link.messages as usize;
        let found = covered.len();
        let ends = (covered.first().map_or(sequence, |it| it.0), covered.last().map_or(sequence, |it| it.0));
        if link.marks.len() != written {
            let (first, last) = ends;
            let among = format!("one of the {found} messages {first} to {last} that decision {sequence} rests on");
            return match written.cmp(&found) {
                std::cmp::Ordering::Less => {
                    Self::new(first, MisfitKind::Added, sequence, format!("{among} was put in later"))
                }
                std::cmp::Ordering::Equal => {
                    Self::new(first, MisfitKind::Changed, sequence, format!("{among} is another"))
                }
                std::cmp::Ordering::Greater => {
                    let why =
                        format!("decision {sequence} rests on {written} messages, and {first} to {last} are {found}");
                    Self::new(first, MisfitKind::Missing, sequence, why)
                }
            };
        }
        let same = matching_prefix_len(link, covered);
        let at = |place: usize| covered.get(place).map(|(at, _)| *at);
        if is_unknown(link, covered) {
            let why = "the decision says to rest on other messages than those that stand before it";
            return Self::new(sequence, MisfitKind::Forged, sequence, why);
        }
        match written.cmp(&found) {
            std::cmp::Ordering::Greater => Self::missing_between(sequence, same.checked_sub(1).and_then(at), at(same)),
            std::cmp::Ordering::Less => {
                let why = format!("it was not there, or was not known, when decision {sequence} was made");
                Self::new(at(same).unwrap_or(sequence), MisfitKind::Added, sequence, why)
            }
            std::cmp::Ordering::Equal => match at(same) {
                None => {
                    let why = "the digest that the decision carries is not that of what stands before it";
                    Self::new(sequence, MisfitKind::Forged, sequence, why)
                }
                Some(first) => match swapped_with(same, link, covered) {
                    Some(other) => Self::swapped_messages(first, other, sequence),
                    None => Self::new(
                        first,
                        MisfitKind::Changed,
                        sequence,
                        format!("it is not as it was: decision {sequence} shows it"),
                    ),
                },
            },
        }
    }

    fn swapped_messages(sequence: u64, other: u64, decision: u64) -> Self {
        let why = format!("it and message {other} stand in each other's place: decision {decision} shows it");
        Self::new(sequence, MisfitKind::Swapped, decision, why)
    }

    /// A message is not there that stood between these.
    fn missing_between(decision: u64, before: Option<u64>, behind: Option<u64>) -> Self {
        let from = before.unwrap_or(0);
        let to = behind.unwrap_or(decision);
        if to == from + 2 {
            return Self::missing_message(from + 1, decision);
        }
        let place = if from == 0 { format!("before {to}") } else { format!("between {from} and {to}") };
        let why = format!("a message that stood {place} is not there: decision {decision} rests on it");
        Self { behind: Some(from), ..Self::new(to, MisfitKind::Missing, decision, why) }
    }
}

/// Returns the number of leading messages that are those the link covers.
fn matching_prefix_len(link: &HashLink, covered: &[(u64, u32)]) -> usize {
    covered.iter().zip(&link.marks).take_while(|((_, mark), written)| mark == *written).count()
}

/// The message that stands where the one at this place stood, if all of them are there in another order.
fn swapped_with(place: usize, link: &HashLink, covered: &[(u64, u32)]) -> Option<u64> {
    let sorted = |mut marks: Vec<u32>| {
        marks.sort_unstable();
        marks
    };
    let found = sorted(covered.iter().map(|(_, mark)| *mark).collect());
    let wanted = link.marks.get(place).filter(|_| found == sorted(link.marks.clone()))?;
    covered.iter().skip(place).find(|(_, mark)| mark == wanted).map(|(at, _)| *at)
}

/// Returns true if none of the messages that a decision claims to rest on is before it.
fn is_unknown(link: &HashLink, covered: &[(u64, u32)]) -> bool {
    let is_known = |(_, mark): &(u64, u32)| link.marks.contains(mark);
    link.marks.len() > 1 && !covered.is_empty() && !covered.iter().any(is_known)
}
