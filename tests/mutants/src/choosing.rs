//! The choice of the mutants to try: spread over the files, and the same for the same sources and seed.

use std::collections::BTreeMap;

use crate::candidates::Candidate;

/// The order in which these candidates are tried: one of each file in turn, as the seed and their identities give it.
pub fn in_order(all: &[(usize, &Candidate)], seed: u64) -> Vec<usize> {
    let mut files: BTreeMap<&str, Vec<(u64, usize)>> = BTreeMap::new();
    for (at, candidate) in all {
        files.entry(&candidate.file).or_default().push((place(seed, &candidate.identity), *at));
    }
    let mut in_turn = Vec::new();
    for (file, mut candidates) in files {
        candidates.sort_unstable();
        in_turn.extend((0..).zip(candidates).map(|(round, (_, at))| (round, place(seed, file), at)));
    }
    in_turn.sort_unstable();
    in_turn.into_iter().map(|(.., at): (usize, u64, usize)| at).collect()
}

/// FNV-1a, since that of the standard library may be another one tomorrow.
fn place(seed: u64, text: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(text.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{candidates, source::Source};

    fn candidates() -> Vec<Candidate> {
        let text = |count: usize| {
            let functions = (0..count).map(|at| format!("fn f{at}(a: u8, b: u8) -> bool {{ a == b }}\n"));
            functions.collect::<String>()
        };
        let file = |name: &str, count| Source { path: name.to_owned(), text: text(count) };
        candidates::all(&[file("large.rs", 40), file("small.rs", 2)]).unwrap()
    }

    #[test]
    fn it_is_spread_over_the_files_and_the_same_each_time() {
        let all = candidates();
        let numbered: Vec<(usize, &Candidate)> = all.iter().enumerate().collect();
        let once = in_order(&numbered, 1);
        assert_eq!(once, in_order(&numbered, 1));
        assert_ne!(once, in_order(&numbered, 2));
        let of_small = once.iter().take(4).filter(|at| all[**at].file == "small.rs").count();
        assert_eq!((once.len(), of_small), (all.len(), 2), "a small file has its turns");
    }

    #[test]
    fn other_files_change_nothing_of_the_order_in_one() {
        let all = candidates();
        let is_large = |at: &usize| all[*at].file == "large.rs";
        let numbered: Vec<(usize, &Candidate)> = all.iter().enumerate().collect();
        let large: Vec<(usize, &Candidate)> = numbered.iter().copied().filter(|(at, _)| is_large(at)).collect();
        let both: Vec<usize> = in_order(&numbered, 1).into_iter().filter(is_large).collect();
        assert_eq!(in_order(&large, 1), both);
    }
}
