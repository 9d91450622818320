//! Deciding without doing: the shape of every service's pure core, and a harness that tests it.
//!
//! `apply` folds a fact of the log into the state and cannot refuse it. `decide` looks at one input and says what
//! should happen. Neither does IO, reads a clock or fails: a refusal is an outcome like any other.

use jiff::Timestamp;

/// A pure core.
pub trait Decider {
    type State: Default;
    /// A fact in the log.
    type Fact;
    /// An input to decide on.
    type Input;
    type Outcome;

    fn apply(state: &mut Self::State, fact: &Self::Fact);

    /// `now` is the recorded time of the input.
    fn decide(state: &Self::State, input: &Self::Input, now: Timestamp) -> Self::Outcome;
}

/// Given these facts, when this comes, then that is decided.
///
/// ```
/// # use kairo_events::decider::{Decider, Given};
/// # struct Doorman;
/// # impl Decider for Doorman {
/// #     type State = u32; type Fact = (); type Input = (); type Outcome = bool;
/// #     fn apply(inside: &mut u32, _: &()) { *inside += 1 }
/// #     fn decide(inside: &u32, _: &(), _: jiff::Timestamp) -> bool { *inside < 2 }
/// # }
/// assert!(Given::<Doorman>::facts([()]).when(&()));
/// assert!(!Given::<Doorman>::facts([(), ()]).when(&()));
/// ```
pub struct DeciderScenario<D: Decider> {
    pub state: D::State,
    now: Timestamp,
}

impl<D: Decider> DeciderScenario<D> {
    pub fn without_facts() -> Self {
        Self::with_facts([])
    }

    pub fn with_facts(facts: impl IntoIterator<Item = D::Fact>) -> Self {
        let mut state = D::State::default();
        for fact in facts {
            D::apply(&mut state, &fact);
        }
        Self { state, now: Timestamp::UNIX_EPOCH }
    }

    pub fn at(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    pub fn when(&self, input: &D::Input) -> D::Outcome {
        D::decide(&self.state, input, self.now)
    }
}
