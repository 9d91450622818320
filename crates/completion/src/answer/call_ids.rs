//! Ids of calls: the model's own where it has good ones, so that its server knows the call again.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

/// Longest id, in bytes: what OpenAI takes.
const LONGEST: usize = 64;
/// Length of an id that every endpoint takes: Mistral wants nine letters and digits.
const LENGTH: usize = 9;
const SIGNS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Gives ids that differ within one turn.
#[derive(Clone, Debug, Default)]
pub struct CallIds {
    /// Tells this answer from others; the same when it is read again.
    seed: String,
    taken: BTreeSet<String>,
}

impl CallIds {
    /// `taken` are the ids of the calls that the request shows.
    pub fn new(seed: String, taken: BTreeSet<String>) -> Self {
        Self { seed, taken }
    }

    /// The id of the call at this place: its own, unless that is none or another call has it.
    pub fn assign(&mut self, own: &str, place: usize) -> String {
        let is_good = !own.is_empty() && own.len() <= LONGEST && own.bytes().all(|byte| byte.is_ascii_graphic());
        let id = match is_good && !self.taken.contains(own) {
            true => own.to_owned(),
            false => self.generate_id(place),
        };
        self.taken.insert(id.clone());
        id
    }

    fn generate_id(&self, place: usize) -> String {
        let made = (0_u64..).map(|round| derive_id(&self.seed, place, round));
        made.into_iter().find(|id| !self.taken.contains(id)).unwrap_or_default()
    }
}

fn derive_id(seed: &str, place: usize, round: u64) -> String {
    let digest: [u8; 32] = Sha256::digest(format!("{seed}/{place}/{round}")).into();
    let sign = |byte: &u8| SIGNS.get(usize::from(*byte) % SIGNS.len()).map_or('0', |sign| char::from(*sign));
    digest.iter().take(LENGTH).map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_ids_are_kept_where_they_are_good_and_others_are_made_the_same_each_time() {
        let taken = || BTreeSet::from(["before".to_owned()]);
        let given = |own: &[&str]| {
            let mut ids = CallIds::new("request 1".into(), taken());
            own.iter().enumerate().map(|(place, own)| ids.assign(own, place)).collect::<Vec<_>>()
        };
        let long = "c".repeat(20_000);
        let all = given(&["call_1", "call_1", "", "before", &long, "two words"]);
        assert_eq!(all[0], "call_1");
        for id in &all[1..] {
            assert!(id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        }
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(all, given(&["call_1", "call_1", "", "before", &long, "two words"]));
    }
}
