//! The cost of model answers, at the prices in the basis of decisions.

use std::collections::BTreeMap;

use kairo_events::prices::{ModelPrice, TokenCost, TokenCounts};
use kairo_proto::v1::{BasisModel, BasisPrice, Completion, DecisionBasis, GivenUpCall, NamedPrice};

use super::team::Amount;

/// The prices of the models that may be asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceList {
    /// By tier, what the model costs that is asked first.
    tiers: BTreeMap<String, ModelPrice>,
    /// Every model that may be asked, with its tier. None in a basis from before epoch 10: answers of a tier cost what its first
    /// model does, and nothing is said of those without a price.
    models: Vec<ListedModel>,
    /// Price of a model that has none of its own.
    fallback: Option<ModelPrice>,
}

#[derive(Clone, Debug, PartialEq)]
struct ListedModel {
    tier: String,
    model: String,
    price: Option<ModelPrice>,
}

impl PriceList {
    /// The prices that a recorded basis says.
    pub fn from_basis(basis: &DecisionBasis) -> Self {
        let known = |price: &Option<BasisPrice>| price.as_ref().map(ModelPrice::from_basis_price);
        let tier = |model: &BasisModel| Some((model.tier.clone(), known(&model.price)?));
        let listed =
            |it: &NamedPrice| ListedModel { tier: it.tier.clone(), model: it.model.clone(), price: known(&it.price) };
        Self {
            tiers: basis.models.iter().filter_map(tier).collect(),
            models: basis.prices.iter().map(listed).collect(),
            fallback: known(&basis.fallback_price),
        }
    }

    /// Returns the prices as a basis records them.
    pub fn to_basis(&self) -> (Vec<NamedPrice>, Option<BasisPrice>) {
        let named = |it: &ListedModel| NamedPrice {
            model: it.model.clone(),
            price: it.price.map(ModelPrice::to_basis_price),
            tier: it.tier.clone(),
        };
        (self.models.iter().map(named).collect(), self.fallback.map(ModelPrice::to_basis_price))
    }

    /// With every model that may be asked: its tier, its name and its price, if that is known.
    pub fn from_models(models: Vec<(String, String, Option<ModelPrice>)>, fallback: Option<ModelPrice>) -> Self {
        let listed = |(tier, model, price)| ListedModel { tier, model, price };
        Self { tiers: BTreeMap::new(), models: models.into_iter().map(listed).collect(), fallback }
    }

    /// Returns the tokens and the cost of these answers, with the tokens whose cost is not known.
    pub fn bill(&self, completions: &[Completion]) -> Amount {
        let used = |it: &Completion| TokenCounts {
            input_tokens: it.input_tokens,
            cached_tokens: it.cached_tokens,
            output_tokens: it.output_tokens,
        };
        self.sum_calls(completions.iter().map(|it| (it.tier.as_str(), it.model.as_str(), used(it))))
    }

    /// Returns the tokens and the cost of calls that were given up, with the tokens whose cost is not known.
    pub fn bill_abandoned_calls(&self, calls: &[GivenUpCall]) -> Amount {
        let used = |it: &GivenUpCall| TokenCounts {
            input_tokens: it.input_tokens,
            cached_tokens: it.cached_tokens,
            output_tokens: it.output_tokens,
        };
        self.sum_calls(calls.iter().map(|it| (it.tier.as_str(), it.model.as_str(), used(it))))
    }

    fn sum_calls<'c>(&self, calls: impl Iterator<Item = (&'c str, &'c str, TokenCounts)>) -> Amount {
        let mut bill = Amount::default();
        let mut cost = TokenCost::default();
        for (tier, model, usage) in calls {
            let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
            bill.tokens = bill.tokens.saturating_add(tokens);
            match self.price_of(tier, model) {
                Some(price) => cost = cost.saturating_add(price.cost_of(usage)),
                None if self.models.is_empty() => {}
                None => bill.unpriced = bill.unpriced.saturating_add(tokens),
            }
        }
        Amount { cost: cost.units(), ..bill }
    }

    /// Returns the price of a model that answers in a tier.
    fn price_of(&self, tier: &str, model: &str) -> Option<ModelPrice> {
        match self.models.is_empty() {
            true => self.tiers.get(tier).copied(),
            false => self.listed_price(tier, model).or(self.fallback),
        }
    }

    /// The price of the model that is called so or, as endpoints add a version to names, of the one whose name is the longest
    /// beginning of it. A name that is neither may be of any model of the tier: of the dearest, so that no bound is passed unseen.
    fn listed_price(&self, tier: &str, model: &str) -> Option<ModelPrice> {
        let of_tier = || self.models.iter().filter(|it| it.tier == tier);
        let begins = |it: &&ListedModel| !it.model.is_empty() && model.starts_with(&it.model);
        if let Some(known) = of_tier().filter(begins).max_by_key(|it| it.model.len()) {
            return known.price;
        }
        of_tier().map(|it| it.price).reduce(|one, other| Some(one?.max_with(other?))).flatten()
    }

    /// A model of the tier that has no price, where nothing counts instead: what it will cost nobody can know.
    pub fn unpriced_model(&self, tier: &str) -> Option<&str> {
        let unpriced = self.models.iter().find(|it| it.tier == tier && it.price.is_none());
        unpriced.filter(|_| self.fallback.is_none()).map(|it| it.model.as_str())
    }

    /// Every model without a price, where nothing counts instead.
    pub fn unpriced_models(&self) -> impl Iterator<Item = (&str, &str)> {
        let unpriced = self.models.iter().filter(|it| it.price.is_none() && self.fallback.is_none());
        unpriced.map(|it| (it.tier.as_str(), it.model.as_str()))
    }

    /// Returns true if some model is billed at the fallback price.
    pub fn uses_fallback(&self) -> bool {
        self.fallback.is_some() && self.models.iter().any(|it| it.price.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(text: &str) -> ModelPrice {
        serde_json::from_str(text).unwrap()
    }

    fn list(models: &[(&str, &str)], fallback: Option<&str>) -> PriceList {
        let listed = |(model, text): &(&str, &str)| {
            ("heavy".to_owned(), (*model).to_owned(), (!text.is_empty()).then(|| price(text)))
        };
        PriceList::from_models(models.iter().map(listed).collect(), fallback.map(price))
    }

    fn answer(model: &str) -> Completion {
        Completion {
            tier: "heavy".into(),
            model: model.into(),
            input_tokens: 1_000_000,
            cached_tokens: 500_000,
            ..Default::default()
        }
    }

    fn cost(list: &PriceList, model: &str) -> (String, u64) {
        let Amount { cost, unpriced, .. } = list.bill(&[answer(model)]);
        (TokenCost::of_units(cost).to_string(), unpriced)
    }

    const LARGE: (&str, &str) = ("large", r#"{ "input": 4, "output": 8, "cached": 2 }"#);
    const SMALL: (&str, &str) = ("small", r#"{ "input": 1, "output": 1 }"#);

    #[test]
    fn each_answer_costs_what_the_model_does_that_gave_it() {
        let list = list(&[LARGE, SMALL, ("large-mini", r#"{ "input": 2, "output": 2 }"#)], None);
        for (model, told) in [("large", "3"), ("large-2026-01-01", "3"), ("large-mini-2", "2"), ("small", "1")] {
            assert_eq!(cost(&list, model), (told.to_owned(), 0), "{model}");
        }
        assert_eq!(cost(&list, "renamed").0, "3", "it may be the dearest");
    }

    #[test]
    fn what_has_no_price_is_not_known_unless_something_counts_instead() {
        let open = list(&[LARGE, ("odd", "")], None);
        assert_eq!(cost(&open, "odd"), ("0".to_owned(), 1_000_000));
        assert_eq!(cost(&open, "renamed"), ("0".to_owned(), 1_000_000));
        assert_eq!((open.unpriced_model("heavy"), open.unpriced_model("light")), (Some("odd"), None));
        let closed = list(&[LARGE, ("odd", "")], Some(r#"{ "input": 9, "output": 9 }"#));
        assert_eq!(cost(&closed, "odd"), ("9".to_owned(), 0));
        assert!(closed.unpriced_model("heavy").is_none() && closed.uses_fallback());
    }

    #[test]
    fn a_basis_from_before_says_what_it_said() {
        let model = |tier: &str, price: Option<ModelPrice>| BasisModel {
            tier: tier.into(),
            model: "m".into(),
            price: price.map(ModelPrice::to_basis_price),
            ..Default::default()
        };
        let models = vec![model("heavy", Some(price(SMALL.1))), model("light", None)];
        let list = PriceList::from_basis(&DecisionBasis { models, ..Default::default() });
        assert_eq!(cost(&list, "any"), ("1".to_owned(), 0));
        let light = Completion { tier: "light".into(), ..answer("any") };
        assert_eq!(list.bill(&[light]), Amount { tokens: 1_000_000, ..Amount::default() });
    }

    #[test]
    fn the_bill_of_all_is_the_sum_of_the_bills_of_each_and_what_is_unknown_is_never_nothing() {
        let list = list(&[LARGE, SMALL, ("odd", "")], None);
        let models = ["large", "small", "odd", "large-9", "odd-2", "x"];
        let answers: Vec<Completion> = (0..600_u64)
            .map(|at| Completion {
                input_tokens: at.wrapping_mul(0x9e37_79b9) % 100_000,
                cached_tokens: at * 31,
                output_tokens: at % 977,
                ..answer(models[at as usize % models.len()])
            })
            .collect();
        let each = answers.iter().map(|it| list.bill(std::slice::from_ref(it)));
        assert_eq!(list.bill(&answers), each.fold(Amount::default(), Amount::plus));
        for it in answers.iter().filter(|it| it.model.starts_with("odd") || it.model == "x") {
            let bill = list.bill(std::slice::from_ref(it));
            assert_eq!((bill.unpriced, bill.cost), (bill.tokens, 0), "{it:?}");
        }
    }
}
