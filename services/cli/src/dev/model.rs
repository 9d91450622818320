//! Which model answers: a real one if the environment names one, else the simulator.

use std::collections::BTreeMap;

const OPENAI: &str = "https://api.openai.com/v1";

/// What is asked for at OpenAI when `KAIRO_MODEL` does not say.
const OPENAI_MODEL: &str = "gpt-4.1-mini";

/// Where the key is, in our environment and in agent-runtime's.
const KEY: &str = "OPENAI_API_KEY";

/// The model behind the heavy tier.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub(super) enum Model {
    /// Answers from a scenario; no key, no network, no intelligence.
    Simulator,
    /// An OpenAI-compatible endpoint.
    Endpoint { base_url: String, model: String, api_key: Option<String> },
}

impl Model {
    /// `KAIRO_MODEL_URL` names an endpoint, `OPENAI_API_KEY` its key (alone: OpenAI's), `KAIRO_MODEL` the model.
    pub(super) fn choose(environment: &BTreeMap<String, String>) -> Self {
        let given = |name: &str| environment.get(name).filter(|value| !value.is_empty()).cloned();
        let (url, api_key) = (given("KAIRO_MODEL_URL"), given(KEY));
        if url.is_none() && api_key.is_none() {
            return Self::Simulator;
        }
        Self::Endpoint {
            base_url: url.unwrap_or_else(|| OPENAI.to_owned()),
            model: given("KAIRO_MODEL").unwrap_or_else(|| OPENAI_MODEL.to_owned()),
            api_key,
        }
    }

    /// What agent-runtime's environment is to hold. The key is referred to, so that no dump of the configuration
    /// shows it.
    pub(super) fn settings(&self, simulator_url: Option<&str>) -> Vec<(String, String)> {
        let mut settings = Vec::new();
        let mut set = |name: &str, value: &str| settings.push((name.to_owned(), value.to_owned()));
        match self {
            Self::Simulator => {
                set("KAIRO_MODELS__HEAVY__BASE_URL", &format!("{}/v1", simulator_url.unwrap_or_default()));
                set("KAIRO_MODELS__HEAVY__MODEL", "simulator");
            }
            Self::Endpoint { base_url, model, api_key } => {
                set("KAIRO_MODELS__HEAVY__BASE_URL", base_url);
                set("KAIRO_MODELS__HEAVY__MODEL", model);
                if let Some(api_key) = api_key {
                    set("KAIRO_MODELS__HEAVY__API_KEY", &format!("env:{KEY}"));
                    set(KEY, api_key);
                }
            }
        }
        settings
    }
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
        let expected = Model::Endpoint { base_url: "http://gpu:8000/v1".into(), model: "qwen".into(), api_key: None };
        assert_eq!(model, expected);
        assert_eq!(model.settings(None).len(), 2);
    }
}
