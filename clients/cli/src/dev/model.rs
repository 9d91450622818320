//! The models that answer: real ones if the environment names one, else the simulator.

use std::collections::BTreeMap;

const OPENAI: &str = "https://api.openai.com/v1";

/// The model used at OpenAI when `KAIRO_MODEL` names none.
const OPENAI_MODEL: &str = "gpt-4.1-mini";

/// The variable of the key, in our environment and in agent-runtime's.
const KEY: &str = "OPENAI_API_KEY";

/// The models behind the tiers.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) enum Model {
    /// Answers from a scenario; no key, no network, no intelligence.
    Simulator,
    /// An OpenAI-compatible endpoint. What thinks also does the work of a tier that has no model of its own there.
    Endpoint { base_url: String, model: String, fast: Option<String>, light: Option<String>, api_key: Option<String> },
}

impl Model {
    /// `KAIRO_MODEL_URL` names an endpoint, `OPENAI_API_KEY` its key (alone: OpenAI's), `KAIRO_MODEL` the model that
    /// thinks, `KAIRO_MODEL_FAST` and `KAIRO_MODEL_LIGHT` those that compile plans and complete steps.
    pub(crate) fn choose(environment: &BTreeMap<String, String>) -> Self {
        let given = |name: &str| environment.get(name).filter(|value| !value.is_empty()).cloned();
        let url = given("KAIRO_MODEL_URL");
        let api_key = given(KEY);
        if url.is_none() && api_key.is_none() {
            return Self::Simulator;
        }
        Self::Endpoint {
            base_url: url.unwrap_or_else(|| OPENAI.to_owned()),
            model: given("KAIRO_MODEL").unwrap_or_else(|| OPENAI_MODEL.to_owned()),
            fast: given("KAIRO_MODEL_FAST"),
            light: given("KAIRO_MODEL_LIGHT"),
            api_key,
        }
    }

    /// Returns the settings for agent-runtime's environment. The key is referred to, so that no dump of the
    /// configuration shows it.
    pub(crate) fn settings(&self, simulator_url: Option<&str>) -> Vec<(String, String)> {
        let mut settings = Vec::new();
        match self {
            // It answers for the other tiers, too: what is not set is as it is for the heavy one.
            Self::Simulator => {
                settings.extend(tier("HEAVY", &format!("{}/v1", simulator_url.unwrap_or_default()), "simulator"));
            }
            Self::Endpoint { base_url, model, fast, light, api_key } => {
                let tiers = [("HEAVY", Some(model)), ("FAST", fast.as_ref()), ("LIGHT", light.as_ref())];
                for (name, model) in tiers.into_iter().filter_map(|(name, model)| Some((name, model?))) {
                    settings.extend(tier(name, base_url, model));
                    if api_key.is_some() {
                        settings.push((format!("KAIRO_MODELS__{name}__API_KEY"), format!("env:{KEY}")));
                    }
                }
                settings.extend(api_key.iter().map(|api_key| (KEY.to_owned(), api_key.clone())));
            }
        }
        settings
    }
}

fn tier(name: &str, base_url: &str, model: &str) -> [(String, String); 2] {
    [
        (format!("KAIRO_MODELS__{name}__BASE_URL"), base_url.to_owned()),
        (format!("KAIRO_MODELS__{name}__MODEL"), model.to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(environment: &[(&str, &str)]) -> Model {
        Model::choose(&environment.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }

    #[test]
    fn without_a_key_or_an_endpoint_the_simulator_answers() {
        assert_eq!(chosen(&[]), Model::Simulator);
        assert_eq!(chosen(&[("OPENAI_API_KEY", ""), ("KAIRO_MODEL", "x")]), Model::Simulator);
        let settings = Model::Simulator.settings(Some("http://127.0.0.1:1"));
        assert_eq!(settings[0].1, "http://127.0.0.1:1/v1");
    }

    #[test]
    fn a_key_alone_means_openai_and_stays_a_reference() {
        let model = chosen(&[("OPENAI_API_KEY", "sk-secret")]);
        let settings: BTreeMap<_, _> = model.settings(None).into_iter().collect();
        assert_eq!(settings["KAIRO_MODELS__HEAVY__BASE_URL"], OPENAI);
        assert_eq!(settings["KAIRO_MODELS__HEAVY__API_KEY"], "env:OPENAI_API_KEY");
        assert_eq!(settings["OPENAI_API_KEY"], "sk-secret");
    }

    #[test]
    fn an_endpoint_of_ones_own_needs_no_key() {
        let model = chosen(&[("KAIRO_MODEL_URL", "http://gpu:8000/v1"), ("KAIRO_MODEL", "qwen")]);
        let (base_url, name) = ("http://gpu:8000/v1".to_owned(), "qwen".to_owned());
        let expected = Model::Endpoint { base_url, model: name, fast: None, light: None, api_key: None };
        assert_eq!(model, expected);
        assert_eq!(model.settings(None).len(), 2);
    }

    #[test]
    fn smaller_models_are_asked_at_the_same_endpoint_with_the_same_key() {
        let model = chosen(&[
            ("KAIRO_MODEL_URL", "http://gpu:8000/v1"),
            ("KAIRO_MODEL", "large"),
            ("KAIRO_MODEL_FAST", "middle"),
            ("KAIRO_MODEL_LIGHT", ""),
            ("OPENAI_API_KEY", "sk-secret"),
        ]);
        let settings: BTreeMap<_, _> = model.settings(None).into_iter().collect();
        assert_eq!(settings["KAIRO_MODELS__HEAVY__MODEL"], "large");
        assert_eq!(settings["KAIRO_MODELS__FAST__MODEL"], "middle");
        assert_eq!(settings["KAIRO_MODELS__FAST__BASE_URL"], "http://gpu:8000/v1");
        assert_eq!(settings["KAIRO_MODELS__FAST__API_KEY"], "env:OPENAI_API_KEY");
        assert!(!settings.keys().any(|name| name.contains("LIGHT")), "it is as the fast one");
        assert_eq!(chosen(&[("KAIRO_MODEL_FAST", "middle")]), Model::Simulator);
    }
}
