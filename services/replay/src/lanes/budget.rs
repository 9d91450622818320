//! The budget for asking models: no call is made that could cost more than is left.

use kairo_events::prices::Cost;

/// The bound on spending, and the spending so far.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// In units of [`Cost`]; none for as much as it takes.
    most: Option<u64>,
    spent: Cost,
    /// The most that calls under way may cost.
    held: Cost,
    /// Calls that were begun.
    calls: u64,
    /// The highest cost of the first call refused for want of money.
    wanting: Option<Cost>,
}

/// The decision on whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    Begin,
    /// Those under way may leave enough.
    Wait,
    /// The budget that is left does not suffice. Every later request gets the same answer: the budget leaves out the
    /// last requests, not the expensive ones.
    Not,
}

impl Budget {
    pub fn new(most: Option<u64>) -> Self {
        Self { most, ..Self::default() }
    }

    /// Begins a call that costs no more than this, if that is left.
    pub fn begin(&mut self, at_most: Cost) -> May {
        if self.wanting.is_some() {
            return May::Not;
        }
        if self.fits(self.spent.plus(self.held).plus(at_most)) {
            self.held = self.held.plus(at_most);
            self.calls += 1;
            return May::Begin;
        }
        if self.fits(self.spent.plus(at_most)) {
            return May::Wait;
        }
        self.wanting = Some(at_most);
        May::Not
    }

    /// A call that was begun has ended, and cost this.
    pub fn end(&mut self, at_most: Cost, cost: Cost) {
        self.held = Cost::of_units(self.held.units().saturating_sub(at_most.units()));
        self.spent = self.spent.plus(cost);
    }

    /// Returns the amount spent, including all that calls under way may cost: they are paid for even if nobody waits
    /// for them.
    pub fn spent(&self) -> Cost {
        self.spent.plus(self.held)
    }

    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns the highest cost of the first call refused for want of money; none if none was.
    pub fn wanting(&self) -> Option<Cost> {
        self.wanting
    }

    fn fits(&self, cost: Cost) -> bool {
        self.most.is_none_or(|most| cost.units() <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Cost = Cost::of_units(100);

    #[test]
    fn calls_under_way_count_with_the_most_that_they_may_cost() {
        let mut budget = Budget::new(Some(250));
        assert_eq!([budget.begin(CALL), budget.begin(CALL), budget.begin(CALL)], [May::Begin, May::Begin, May::Wait]);
        budget.end(CALL, Cost::of_units(40));
        assert_eq!((budget.begin(CALL), budget.spent().units()), (May::Begin, 240));
        budget.end(CALL, CALL);
        budget.end(CALL, CALL);
        assert_eq!(budget.begin(CALL), May::Not, "10 are left");
        assert_eq!(budget.begin(Cost::of_units(1)), May::Not, "what is asked last is left out");
        assert_eq!((budget.spent().units(), budget.calls(), budget.wanting()), (240, 3, Some(CALL)));
    }

    #[test]
    fn exactly_what_is_left_suffices_and_without_a_bound_everything_does() {
        let mut budget = Budget::new(Some(300));
        for _ in 0..3 {
            assert_eq!(budget.begin(CALL), May::Begin);
            budget.end(CALL, CALL);
        }
        assert_eq!(budget.begin(CALL), May::Not);
        let mut unbounded = Budget::new(None);
        assert!((0..100).all(|_| unbounded.begin(Cost::of_units(u64::MAX)) == May::Begin));
    }
}
