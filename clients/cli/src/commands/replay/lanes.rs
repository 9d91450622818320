//! `kairo replay --model M --samples N`: decisions asked for again, beside what was recorded.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use clap::Args;
use futures::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use kairo_agent_runtime::PartStore;
use kairo_core::prices::TokenCost;
use kairo_mind::replay::{changes::ReplayChanges, rerun::RerunStep};
use kairo_proto::v1::{AgentDecision, Completion};
use kairo_replay::{
    lanes::{AskingEnd, Lanes, Sample, SamplingLane, SamplingTotals, Shadow},
    report::DecisionReport,
};

use crate::{
    Error,
    asking::{self, Asker, AskingSettings, TierReplacement},
    dev::say,
};

/// Ask models for decisions again, in two lanes
#[derive(Debug, Default, Args)]
#[group(id = "lanes")]
pub struct LaneOptions {
    /// Another model, for the heavy tier or the one that is named (heavy, fast, light); can be repeated. One that the configuration
    /// has anywhere is asked as it is there, another one at the endpoint of the tier
    #[arg(long = "model", value_parser = TierReplacement::parse, value_name = "[TIER=]NAME")]
    replaced: Vec<TierReplacement>,
    /// Calls of each lane for each decision that the changes reach. With --model it is 1 by default
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100), value_name = "NUMBER")]
    samples: Option<u32>,
    /// Most decisions that are asked for; where the changes reach more, nothing is asked
    #[arg(long, default_value_t = 500, value_name = "NUMBER")]
    max_decisions: usize,
    #[command(flatten)]
    asking: asking::AskingOptions,
}

/// The model calls to make, before the decisions are known.
pub struct LanePlan {
    settings: AskingSettings,
    replaced: Vec<TierReplacement>,
    samples: u32,
    max_decisions: usize,
}

impl LaneOptions {
    /// Reads the model calls that the command line asks for; `None` if it asks for none.
    ///
    /// # Errors
    /// Returns an error if the options do not fit together or the configuration cannot be used.
    pub fn to_plan(&self, changes: &ReplayChanges) -> Result<Option<LanePlan>, Error> {
        let Self { replaced, samples, max_decisions, asking } = self;
        let usage = |why: &str| Err(Error::Usage(why.to_owned()));
        match (samples, replaced.is_empty()) {
            (None, true) if asking.is_bounded() => {
                usage("--budget: expected --samples or --model: else no model is asked")
            }
            (None, true) => Ok(None),
            (Some(_), true) if changes.is_none() => {
                usage("--samples: expected a change, such as --prompt or --model: else the lanes ask the same")
            }
            _ => Ok(Some(LanePlan {
                settings: AskingSettings::load(asking, replaced)?,
                replaced: replaced.clone(),
                samples: samples.unwrap_or(1),
                max_decisions: *max_decisions,
            })),
        }
    }
}

impl LanePlan {
    /// The tiers for which another model is asked.
    pub fn replaced_tiers(&self) -> BTreeSet<String> {
        let control = self.settings.control.names();
        let candidate = self.settings.candidate.names();
        let tiers = self.replaced.iter().map(|replaced| replaced.tier.to_owned());
        tiers.filter(|tier| control.get(tier) != candidate.get(tier)).collect()
    }

    /// Describes the replaced models, the changes beside the log.
    pub fn describe_changes(&self) -> Vec<String> {
        self.replaced.iter().map(TierReplacement::to_option_text).collect()
    }

    /// Refuses more decisions than are to be asked for.
    pub fn check_decision_count(&self, decisions: usize) -> Result<(), Error> {
        match decisions > self.max_decisions {
            true => Err(Error::Usage(format!(
                "the changes reach more decisions than the {} of --max-decisions: name a part of the log with --from and --to, or \
                 allow more",
                self.max_decisions
            ))),
            false => Ok(()),
        }
    }

    /// Asks both lanes for these decisions, after saying what it comes to; what came of each, in their order.
    pub async fn ask_lanes(&self, shadows: &[Box<Shadow>], parts: &Arc<dyn PartStore>) -> (Vec<Lanes>, SamplingTotals) {
        let expected = self.expected_calls(shadows);
        say(self.announcement(shadows.len(), expected));
        let asker = Asker::new(&self.settings, parts);
        let (lanes, is_interrupted) = self.collect_lanes(&asker, shadows).await;
        let ended = match (is_interrupted, asker.account.budget().refused_cost().is_some()) {
            (true, _) => AskingEnd::Interrupted,
            (_, true) => AskingEnd::Budget,
            _ => AskingEnd::Complete,
        };
        let control = self.settings.control.names();
        let candidate = self.settings.candidate.names();
        let came_to = asker.summarize_costs(expected, ended);
        let asking = SamplingTotals { samples: self.samples, control, candidate, came_to };
        (lanes, asking)
    }

    /// The calls, and what they cost, if models answer as they did; no cost where a price is not known.
    fn expected_calls(&self, shadows: &[Box<Shadow>]) -> (u64, Option<TokenCost>) {
        let of = |lane: SamplingLane, models: &kairo_fork::model_calls::LaneModels| {
            models.sum(shadows.iter().flat_map(|shadow| shadow.expected_calls(lane)))
        };
        let control = of(SamplingLane::Control, &self.settings.control);
        let candidate = of(SamplingLane::Candidate, &self.settings.candidate);
        let once = control.1.zip(candidate.1).map(|(one, other)| one.saturating_add(other));
        let times = |cost: TokenCost| (0..self.samples).fold(TokenCost::default(), |sum, _| sum.saturating_add(cost));
        ((control.0 + candidate.0) * u64::from(self.samples), once.map(times))
    }

    fn announcement(&self, decisions: usize, (calls, cost): (u64, Option<TokenCost>)) -> String {
        let AskingSettings { control, candidate, .. } = &self.settings;
        let (cost, most) = self.settings.describe_costs(cost);
        let lane = |names: BTreeMap<String, String>| {
            names.into_iter().map(|(tier, name)| format!("{tier} {name}")).collect::<Vec<_>>().join(", ")
        };
        let samples = self.samples;
        format!(
            "asking for {decisions} decisions, {samples} × control and {samples} × candidate: about {calls} calls {cost}, with {most}\n\
             control: {}\ncandidate: {}",
            lane(control.names()),
            lane(candidate.names())
        )
    }

    /// Asks for all samples; whether somebody ended it.
    async fn collect_lanes(&self, asker: &Asker, shadows: &[Box<Shadow>]) -> (Vec<Lanes>, bool) {
        // The lanes take turns, so that what a budget leaves out is left out of both.
        let of_one = |at: usize| {
            (0..self.samples).flat_map(move |_| [(at, SamplingLane::Control), (at, SamplingLane::Candidate)])
        };
        let wanted: Vec<(usize, SamplingLane)> = (0..shadows.len()).flat_map(of_one).collect();
        let (samples, is_interrupted) = self.collect_samples(asker, shadows, &wanted).await;
        let mut of: Vec<[Vec<Sample>; 2]> = shadows.iter().map(|_| Default::default()).collect();
        for ((at, lane), sample) in wanted.into_iter().zip(samples) {
            let sample = sample.unwrap_or_else(|| Sample::not_asked("it was interrupted".to_owned()));
            if let Some([control, candidate]) = of.get_mut(at) {
                if lane == SamplingLane::Control { control.push(sample) } else { candidate.push(sample) }
            }
        }
        (of.into_iter().map(|[control, candidate]| Lanes::from_samples(control, candidate)).collect(), is_interrupted)
    }

    /// Takes these samples, as many at once as the models' own bounds allow, until all are there or somebody ends it.
    async fn collect_samples(
        &self,
        asker: &Asker,
        shadows: &[Box<Shadow>],
        wanted: &[(usize, SamplingLane)],
    ) -> (Vec<Option<Sample>>, bool) {
        let one = async |number: usize, at: usize, lane: SamplingLane| match shadows.get(at) {
            Some(shadow) => (number, Some(take_sample(asker, shadow, lane).await)),
            None => (number, None),
        };
        let one = &one;
        let at_once = self.settings.control.max_in_flight().max(self.settings.candidate.max_in_flight());
        let each = wanted.iter().enumerate().map(|(number, (at, lane))| one(number, *at, *lane));
        let mut asked = stream::iter(each).buffer_unordered(at_once);
        let mut samples = vec![None; wanted.len()];
        let bar = sample_progress_bar(wanted.len());
        let interrupt = tokio::signal::ctrl_c();
        tokio::pin!(interrupt);
        let is_interrupted = loop {
            let next = tokio::select! {
                biased;
                _ = &mut interrupt => break true,
                next = asked.next() => next,
            };
            let Some((number, sample)) = next else { break false };
            if let Some(place) = samples.get_mut(number) {
                *place = sample;
            }
            bar.inc(1);
        };
        bar.finish_and_clear();
        (samples, is_interrupted)
    }
}

/// Makes a decision once with what models answer now.
async fn take_sample(asker: &Asker, shadow: &Shadow, lane: SamplingLane) -> Sample {
    let (mut answers, mut calls, mut cost): (Vec<Completion>, _, _) = (Vec::new(), 0, Some(TokenCost::default()));
    let sample = loop {
        let questions = match shadow.step(lane, &answers) {
            Ok(RerunStep::Made(decision)) => break shadow.judge(AgentDecision::clone(&decision)),
            Ok(RerunStep::Ask(questions)) => questions,
            Err(why) => break Sample::not_asked(why.to_string()),
        };
        let (round, outcome) = asker.ask(lane, &questions).await;
        calls += round.calls;
        cost = cost.zip(round.cost).map(|(sum, cost)| sum.saturating_add(cost));
        if outcome.is_err() {
            break Sample::not_asked(asker.account.refusal_reason());
        }
        answers.extend(round.completions);
    };
    Sample { calls, cost: cost.map(|cost| cost.to_string()), ..sample }
}

fn sample_progress_bar(samples: usize) -> ProgressBar {
    let bar = ProgressBar::new(samples as u64);
    if let Ok(style) = ProgressStyle::with_template("asking {wide_bar} {pos}/{len} samples, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

/// Puts what came of asking beside the decisions that were asked for.
pub fn attach_lanes(decisions: &mut [DecisionReport], places: &[usize], lanes: Vec<Lanes>) {
    for (place, lanes) in places.iter().zip(lanes) {
        if let Some(decision) = decisions.get_mut(*place) {
            decision.lanes = Some(lanes);
        }
    }
}
