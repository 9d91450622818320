//! Pauses before a model call is retried.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kairo_mind::deliberation::ModelQuestion;
use kairo_proto::v1::Completion;

/// Longest pause that no endpoint has asked for.
const LONGEST: Duration = Duration::from_secs(16);

/// The waits that endpoints asked for, over all requests of one decision.
#[derive(Debug, Default)]
pub struct Pauses {
    /// The wait that an endpoint asks for, by the digest of the request that failed.
    told: Mutex<BTreeMap<String, Option<Duration>>>,
}

impl Pauses {
    /// Notes the result of a question.
    pub fn note(&self, question: &ModelQuestion, completion: &Completion) {
        let Some(error) = &completion.error else { return };
        let wait = (error.retry_after_ms > 0).then(|| Duration::from_millis(error.retry_after_ms));
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(question.request.digest(), wait);
    }

    /// The pause before a question: none before the first try, nor where the request is another by now. `first` is that before the
    /// second try, `chance` any number: replicas do not come back all at once.
    pub fn before(&self, question: &ModelQuestion, first: Duration, chance: u16) -> Duration {
        if question.attempt <= 1 {
            return Duration::ZERO;
        }
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).get(&question.request.digest()).copied();
        match told {
            None => Duration::ZERO,
            Some(Some(wait)) => wait,
            Some(None) => backoff(first, question.attempt, chance),
        }
    }
}

/// Doubles with each try, up to [`LONGEST`]; chance takes up to half of it away.
fn backoff(first: Duration, attempt: u32, chance: u16) -> Duration {
    let whole = first.saturating_mul(1 << attempt.saturating_sub(2).min(20)).min(LONGEST);
    let half = whole / 2;
    half + half.mul_f64(f64::from(chance) / f64::from(u16::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kairo_mind::request::{ModelRequest, PromptMessage};
    use kairo_proto::v1::CompletionError;

    use super::*;

    fn question(text: &str, attempt: u32) -> ModelQuestion {
        let request = Arc::new(ModelRequest::from_messages("heavy", vec![PromptMessage::user(text)]));
        ModelQuestion { request, attempt, speaks: false, deadline_ms: None, module: String::new() }
    }

    #[test]
    fn a_pause_is_as_long_as_the_endpoint_says_or_doubles() {
        let pauses = Pauses::default();
        let first = Duration::from_millis(250);
        let failed = |retry_after_ms| Completion {
            error: Some(CompletionError { retry_after_ms, ..Default::default() }),
            ..Default::default()
        };
        pauses.note(&question("told", 1), &failed(4_000));
        pauses.note(&question("not", 1), &failed(0));
        let ms = |text, attempt, chance| pauses.before(&question(text, attempt), first, chance).as_millis();
        assert_eq!([ms("told", 1, 0), ms("told", 2, 0), ms("told", 5, 9)], [0, 4_000, 4_000]);
        assert_eq!([ms("not", 2, u16::MAX), ms("not", 3, u16::MAX), ms("not", 8, u16::MAX)], [250, 500, 16_000]);
        assert_eq!([ms("not", 2, 0), ms("not", 20, 0), ms("another", 2, 0)], [125, 8_000, 0]);
        let least: u128 = (2..=8).map(|attempt| ms("not", attempt, 0)).sum();
        assert!(least > 15_000, "a server that restarts is back by then: {least}");
    }
}
