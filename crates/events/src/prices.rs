//! Prices of models as they are configured, and exact sums of costs. Pure.

use std::{collections::BTreeMap, fmt, str::FromStr};

use kairo_proto::v1::BasisPrice;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Prices by model: its name, or the beginning of names followed by `*`.
pub type ModelPrices = BTreeMap<String, ModelPrice>;

/// The price of a model's tokens, in units of the currency for a million of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    pub input: MoneyAmount,
    pub output: MoneyAmount,
    /// Of input that the model server reads from its cache; as other input where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<MoneyAmount>,
}

/// The tokens that a call of a model took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    pub input_tokens: u64,
    /// Of the input tokens, those that the model server read from its cache; no more than these count.
    pub cached_tokens: u64,
    pub output_tokens: u64,
}

/// An amount of money, in millionths of the currency's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MoneyAmount(u64);

/// Decimal places of an amount, and of a cost: prices are those of a million tokens.
const PLACES: usize = 6;
const COST_PLACES: usize = 2 * PLACES;
/// The form of an amount, in words for people.
const AMOUNT: &str = "a decimal number from 0 to 1000000, with at most 6 decimal places";
/// Highest price.
const MOST: u64 = 1_000_000;

/// The cost of tokens, in millionths of millionths of the currency's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCost(u128);

impl MoneyAmount {
    /// Returns this many whole units of the currency.
    pub const fn from_whole_units(units: u64) -> Self {
        Self(units * 1_000_000)
    }

    /// As what tokens cost.
    pub fn to_cost(self) -> TokenCost {
        TokenCost(u128::from(self.0) * 1_000_000)
    }
}

impl ModelPrice {
    /// Returns the price of the model of this name: that of the name itself, else that of its longest prefix.
    pub fn of_model(prices: &ModelPrices, model: &str) -> Option<Self> {
        let begins = |pattern: &str| pattern.strip_suffix('*').is_some_and(|beginning| model.starts_with(beginning));
        let longest = || prices.iter().filter(|(pattern, _)| begins(pattern)).max_by_key(|(pattern, _)| pattern.len());
        prices.get(model).copied().or_else(|| longest().map(|(_, price)| *price))
    }

    /// As the log has it.
    pub fn to_basis_price(self) -> BasisPrice {
        BasisPrice { input: self.input.0, output: self.output.0, cached: self.cached.map(|MoneyAmount(cached)| cached) }
    }

    /// As the log said it.
    pub fn from_basis_price(recorded: &BasisPrice) -> Self {
        let cached = recorded.cached.map(MoneyAmount);
        Self { input: MoneyAmount(recorded.input), output: MoneyAmount(recorded.output), cached }
    }

    pub fn uncached_cost(self, input_tokens: u64, output_tokens: u64) -> TokenCost {
        self.cost_of(TokenCounts { input_tokens, cached_tokens: 0, output_tokens })
    }

    /// Returns the cost of these tokens, with those from a cache at their own price.
    pub fn cost_of(self, usage: TokenCounts) -> TokenCost {
        let TokenCounts { input_tokens, cached_tokens, output_tokens } = usage;
        let cached_tokens = cached_tokens.min(input_tokens);
        let cost = |tokens: u64, MoneyAmount(price)| u128::from(tokens) * u128::from(price);
        let input = cost(input_tokens - cached_tokens, self.input);
        let cached = cost(cached_tokens, self.cached.unwrap_or(self.input));
        // Three products of 64 and of 40 bits.
        TokenCost(input + cached + cost(output_tokens, self.output))
    }

    /// Of two prices, the higher one of each part.
    #[must_use]
    pub fn max_with(self, other: Self) -> Self {
        let [own, others] = [self, other].map(|price| price.cached.unwrap_or(price.input));
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cached: Some(own.max(others)),
        }
    }
}

impl TokenCost {
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// In millionths of millionths of the currency's unit, as far as 64 bits go.
    pub fn units(self) -> u64 {
        u64::try_from(self.0).unwrap_or(u64::MAX)
    }

    /// Builds a cost of so many millionths of millionths of the currency's unit.
    pub const fn of_units(units: u64) -> Self {
        Self(units as u128)
    }
}

/// Reads the amount that may be spent, as a profile writes it, in units of [`TokenCost`]; none if the text is no amount.
pub fn parse_budget(text: &str) -> Option<u64> {
    text.parse().ok().map(|amount: MoneyAmount| amount.to_cost().units())
}

/// As a decimal number, without zeros at its end. In JSON it is a text, whose numbers are read as binary fractions.
impl fmt::Display for TokenCost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(self.0, COST_PLACES, out)
    }
}

fn write_decimal(number: u128, places: usize, out: &mut impl fmt::Write) -> fmt::Result {
    let digits = format!("{number:0width$}", width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    match fraction.trim_end_matches('0') {
        "" => out.write_str(whole),
        fraction => write!(out, "{whole}.{fraction}"),
    }
}

impl FromStr for MoneyAmount {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || fraction.len() > PLACES {
            return Err(AMOUNT);
        }
        let number: u64 = format!("{whole}{fraction:0<PLACES$}").parse().map_err(|_| AMOUNT)?;
        if number > MOST * 1_000_000 { Err(AMOUNT) } else { Ok(Self(number)) }
    }
}

impl fmt::Display for MoneyAmount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(u128::from(self.0), PLACES, out)
    }
}

impl Serialize for MoneyAmount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MoneyAmount {
    /// A number, or one in a text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

struct AmountVisitor;

impl de::Visitor<'_> for AmountVisitor {
    type Value = MoneyAmount;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(AMOUNT)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<MoneyAmount, E> {
        // The text is not quoted: what is put under the wrong key may be a secret.
        text.parse().map_err(|_| E::custom(format_args!("expected {AMOUNT}")))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<MoneyAmount, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<MoneyAmount, E> {
        self.visit_str(&number.to_string())
    }

    /// The shortest text that means this number is the one that was written.
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<MoneyAmount, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prices() -> ModelPrices {
        serde_json::from_value(json!({
            "gpt-5": { "input": 1.25, "output": "10" },
            "gpt-*": { "input": 2, "output": 8.0 },
            "gpt-5-*": { "input": 0.1, "output": 0.2 },
        }))
        .unwrap()
    }

    #[test]
    fn the_name_itself_goes_before_the_longest_beginning() {
        let input = |model| ModelPrice::of_model(&prices(), model).map(|price| price.input.to_string());
        assert_eq!(input("gpt-5").as_deref(), Some("1.25"));
        assert_eq!(input("gpt-5-mini").as_deref(), Some("0.1"));
        assert_eq!(input("gpt-4").as_deref(), Some("2"));
        assert_eq!(input("claude"), None);
    }

    #[test]
    fn sums_are_exact() {
        let tenth = ModelPrice::of_model(&prices(), "gpt-5-mini").unwrap();
        let thousand = (0..1_000).fold(TokenCost::default(), |sum, _| sum.saturating_add(tenth.uncached_cost(1, 1)));
        assert_eq!(thousand.to_string(), "0.0003");
        assert_eq!(tenth.uncached_cost(1, 0).to_string(), "0.0000001");
        assert_eq!(
            ModelPrice::of_model(&prices(), "gpt-5").unwrap().uncached_cost(1_000_000, 2_000_000).to_string(),
            "21.25"
        );
        assert_eq!(TokenCost::default().to_string(), "0");
        let dear =
            ModelPrice { input: MoneyAmount(MOST * 1_000_000), output: MoneyAmount(MOST * 1_000_000), cached: None };
        assert_eq!(dear.uncached_cost(u64::MAX, 0).to_string(), u64::MAX.to_string());
    }

    #[test]
    fn cached_input_has_a_price_of_its_own_and_is_a_part_of_the_input() {
        let price: ModelPrice = serde_json::from_value(json!({ "input": 2, "output": 8, "cached": "0.5" })).unwrap();
        let cost = |input_tokens, cached_tokens| {
            price.cost_of(TokenCounts { input_tokens, cached_tokens, output_tokens: 0 }).to_string()
        };
        assert_eq!([cost(1_000_000, 0), cost(1_000_000, 400_000), cost(1_000_000, 1_000_000)], ["2", "1.4", "0.5"]);
        assert_eq!(cost(1_000_000, u64::MAX), "0.5", "no more is cached than there was");
        let alike = ModelPrice { cached: None, ..price };
        let usage = TokenCounts { input_tokens: 10, cached_tokens: 4, output_tokens: 3 };
        assert_eq!(alike.cost_of(usage), alike.uncached_cost(10, 3));
        assert_eq!(ModelPrice::from_basis_price(&price.to_basis_price()), price);
        let dearer = price.max_with(alike);
        assert_eq!(
            (dearer.input, dearer.cached),
            (MoneyAmount::from_whole_units(2), Some(MoneyAmount::from_whole_units(2)))
        );
    }

    /// Numbers from everywhere between 0 and the largest there is, the same each time.
    fn numbers() -> impl Iterator<Item = u64> {
        let step =
            |number: &u64| Some(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        std::iter::successors(Some(7), step).map(|number| number >> (number % 64))
    }

    #[test]
    fn the_parts_cost_what_the_sum_does_and_no_sum_overflows() {
        let largest = MoneyAmount(MOST * 1_000_000);
        let price = ModelPrice { input: largest, output: MoneyAmount(1), cached: Some(MoneyAmount(999_999)) };
        let mut numbers = numbers();
        for _ in 0..2_000 {
            let mut next = || numbers.next().unwrap_or_default();
            let [one, other] = [(); 2].map(|()| {
                let input_tokens = next() / 2;
                TokenCounts { input_tokens, cached_tokens: next().min(input_tokens), output_tokens: next() / 2 }
            });
            let sum = TokenCounts {
                input_tokens: one.input_tokens + other.input_tokens,
                cached_tokens: one.cached_tokens + other.cached_tokens,
                output_tokens: one.output_tokens + other.output_tokens,
            };
            assert_eq!(
                price.cost_of(one).saturating_add(price.cost_of(other)),
                price.cost_of(sum),
                "{one:?} {other:?}"
            );
            assert!(price.cost_of(sum).units() >= price.cost_of(one).units(), "a part costs more than all: {one:?}");
        }
        let most = TokenCounts { input_tokens: u64::MAX, cached_tokens: u64::MAX, output_tokens: u64::MAX };
        let all = (0..1_000).fold(TokenCost::default(), |sum, _| sum.saturating_add(price.cost_of(most)));
        assert_eq!(all.units(), u64::MAX);
    }

    #[test]
    fn prices_are_recorded_in_millionths() {
        let recorded = ModelPrice::of_model(&prices(), "gpt-5").unwrap().to_basis_price();
        assert_eq!((recorded.input, recorded.output), (1_250_000, 10_000_000));
    }

    #[test]
    fn prices_are_decimal_numbers_with_six_places() {
        for (good, said) in [("0", "0"), ("0.000001", "0.000001"), ("1000000", "1000000"), ("2.50", "2.5")] {
            assert_eq!(good.parse::<MoneyAmount>().unwrap().to_string(), said);
        }
        for bad in ["", ".5", "5.", "-1", "+1", "1e3", "0.0000001", "1000000.1", "1,5", "NaN", "99999999999999999999"] {
            assert!(bad.parse::<MoneyAmount>().is_err(), "{bad}");
        }
        for bad in [json!(-1), json!(1e-7), json!(null), json!([])] {
            assert!(serde_json::from_value::<MoneyAmount>(bad.clone()).is_err(), "{bad}");
        }
        assert_eq!(serde_json::from_value::<MoneyAmount>(json!(0.15)).unwrap(), MoneyAmount(150_000));
    }
}
