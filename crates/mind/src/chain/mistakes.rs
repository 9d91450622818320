//! Mistakes in a chain, as told to its author.

/// Mistakes that are told at once; more do not help whoever is to mend them.
pub const MISTAKES: usize = 20;

/// The first mistakes, and how many more there are.
pub fn first_mistakes(mut mistakes: Vec<String>) -> Vec<String> {
    let more = mistakes.len().saturating_sub(MISTAKES);
    mistakes.truncate(MISTAKES);
    if more > 0 {
        mistakes.push(format!("… and {more} more"));
    }
    mistakes
}
