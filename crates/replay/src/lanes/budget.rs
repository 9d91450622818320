//! The budget for asking models: no call is made that could cost more than is left.

use kairo_events::prices::TokenCost;

/// The bound on spending, and the spending so far.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// In units of [`TokenCost`]; none for as much as it takes.
    most: Option<u64>,
    spent: TokenCost,
    /// The most that calls under way may cost.
    held: TokenCost,
    /// Calls that were begun.
    calls: u64,
    /// The highest cost of the first call refused for want of money.
    wanting: Option<TokenCost>,
}

/// The decision on whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    Begin,
    /// Those under way may leave enough.
    Wait,
    /// The budget that is left does not suffice. Every later request gets the same answer: the budget leaves out the
    /// last requests, not the expensive ones.
    Refuse,
}

impl Budget {
    pub fn new(most: Option<u64>) -> Self {
        Self { most, ..Self::default() }
    }

    /// Begins a call that costs no more than this, if that is left.
    pub fn begin(&mut self, at_most: TokenCost) -> Permission {
        if self.wanting.is_some() {
            return Permission::Refuse;
        }
        if self.fits(self.spent.saturating_add(self.held).saturating_add(at_most)) {
            self.held = self.held.saturating_add(at_most);
            self.calls += 1;
            return Permission::Begin;
        }
        if self.fits(self.spent.saturating_add(at_most)) {
            return Permission::Wait;
        }
        self.wanting = Some(at_most);
        Permission::Refuse
    }

    /// A call that was begun has ended, and cost this.
    pub fn end(&mut self, at_most: TokenCost, cost: TokenCost) {
        self.held = TokenCost::of_units(self.held.units().saturating_sub(at_most.units()));
        self.spent = self.spent.saturating_add(cost);
    }

    /// Returns the amount spent, including all that calls under way may cost: they are paid for even if nobody waits
    /// for them.
    pub fn total_spent(&self) -> TokenCost {
        self.spent.saturating_add(self.held)
    }

    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns the highest cost of the first call refused for want of money; none if none was.
    pub fn refused_cost(&self) -> Option<TokenCost> {
        self.wanting
    }

    fn fits(&self, cost: TokenCost) -> bool {
        self.most.is_none_or(|most| cost.units() <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: TokenCost = TokenCost::of_units(100);

    #[test]
    fn calls_under_way_count_with_the_most_that_they_may_cost() {
        let mut budget = Budget::new(Some(250));
        assert_eq!(
            [budget.begin(CALL), budget.begin(CALL), budget.begin(CALL)],
            [Permission::Begin, Permission::Begin, Permission::Wait]
        );
        budget.end(CALL, TokenCost::of_units(40));
        assert_eq!((budget.begin(CALL), budget.total_spent().units()), (Permission::Begin, 240));
        budget.end(CALL, CALL);
        budget.end(CALL, CALL);
        assert_eq!(budget.begin(CALL), Permission::Refuse, "10 are left");
        assert_eq!(budget.begin(TokenCost::of_units(1)), Permission::Refuse, "what is asked last is left out");
        assert_eq!((budget.total_spent().units(), budget.calls(), budget.refused_cost()), (240, 3, Some(CALL)));
    }

    #[test]
    fn exactly_what_is_left_suffices_and_without_a_bound_everything_does() {
        let mut budget = Budget::new(Some(300));
        for _ in 0..3 {
            assert_eq!(budget.begin(CALL), Permission::Begin);
            budget.end(CALL, CALL);
        }
        assert_eq!(budget.begin(CALL), Permission::Refuse);
        let mut unbounded = Budget::new(None);
        assert!((0..100).all(|_| unbounded.begin(TokenCost::of_units(u64::MAX)) == Permission::Begin));
    }
}
