//! `kairo replay --model M --samples N`: decisions asked for again, beside what was recorded.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use clap::Args;
use futures::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use kairo_agent_runtime::Parts;
use kairo_core::prices::Cost;
use kairo_mind::replay::{again::Step, changes::Changes};
use kairo_proto::v1::{AgentDecision, Completion};
use kairo_replay::{
    lanes::{Asking, Ended, Lane, Lanes, Sample, Shadow},
    report::Decision,
};

use crate::{
    Error,
    asking::{self, Asker, Replaced, Settings},
    dev::say,
};

/// Ask models for decisions again, in two lanes
#[derive(Debug, Default, Args)]
#[group(id = "lanes")]
pub struct Options {
    /// Another model, for the heavy tier or the one that is named (heavy, fast, light); can be repeated. One that the configuration
    /// has anywhere is asked as it is there, another one at the endpoint of the tier
    #[arg(long = "model", value_parser = Replaced::read, value_name = "[TIER=]NAME")]
    replaced: Vec<Replaced>,
    /// Calls of each lane for each decision that the changes reach. With --model it is 1 by default
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100), value_name = "NUMBER")]
    samples: Option<u32>,
    /// Most decisions that are asked for; where the changes reach more, nothing is asked
    #[arg(long, default_value_t = 500, value_name = "NUMBER")]
    max_decisions: usize,
    #[command(flatten)]
    asking: asking::Options,
}

/// The model calls to make, before the decisions are known.
pub struct Wanted {
    settings: Settings,
    replaced: Vec<Replaced>,
    samples: u32,
    max_decisions: usize,
}

impl Options {
    /// Reads the model calls that the command line asks for; `None` if it asks for none.
    ///
    /// # Errors
    /// Returns an error if the options do not fit together or the configuration cannot be used.
    pub fn read(&self, changes: &Changes) -> Result<Option<Wanted>, Error> {
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
            _ => Ok(Some(Wanted {
                settings: Settings::read(asking, replaced)?,
                replaced: replaced.clone(),
                samples: samples.unwrap_or(1),
                max_decisions: *max_decisions,
            })),
        }
    }
}

impl Wanted {
    /// The tiers for which another model is asked.
    pub fn tiers(&self) -> BTreeSet<String> {
        let (control, candidate) = (self.settings.control.names(), self.settings.candidate.names());
        let tiers = self.replaced.iter().map(|replaced| replaced.tier.to_owned());
        tiers.filter(|tier| control.get(tier) != candidate.get(tier)).collect()
    }

    /// Describes the replaced models, the changes beside the log.
    pub fn told(&self) -> Vec<String> {
        self.replaced.iter().map(Replaced::told).collect()
    }

    /// Refuses more decisions than are to be asked for.
    pub fn bound(&self, decisions: usize) -> Result<(), Error> {
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
    pub async fn ask(&self, shadows: &[Box<Shadow>], parts: &Arc<dyn Parts>) -> (Vec<Lanes>, Asking) {
        let expected = self.expected(shadows);
        say(self.announced(shadows.len(), expected));
        let asker = Asker::new(&self.settings, parts);
        let (lanes, is_interrupted) = self.lanes(&asker, shadows).await;
        let ended = match (is_interrupted, asker.account.budget().wanting().is_some()) {
            (true, _) => Ended::Interrupted,
            (_, true) => Ended::Budget,
            _ => Ended::Complete,
        };
        let (control, candidate) = (self.settings.control.names(), self.settings.candidate.names());
        let came_to = asker.came_to(expected, ended);
        let asking = Asking { samples: self.samples, control, candidate, came_to };
        (lanes, asking)
    }

    /// The calls, and what they cost, if models answer as they did; no cost where a price is not known.
    fn expected(&self, shadows: &[Box<Shadow>]) -> (u64, Option<Cost>) {
        let of = |lane: Lane, models: &kairo_fork::asking::Lane| {
            models.sum(shadows.iter().flat_map(|shadow| shadow.expected(lane)))
        };
        let control = of(Lane::Control, &self.settings.control);
        let candidate = of(Lane::Candidate, &self.settings.candidate);
        let once = control.1.zip(candidate.1).map(|(one, other)| one.plus(other));
        let times = |cost: Cost| (0..self.samples).fold(Cost::default(), |sum, _| sum.plus(cost));
        ((control.0 + candidate.0) * u64::from(self.samples), once.map(times))
    }

    fn announced(&self, decisions: usize, (calls, cost): (u64, Option<Cost>)) -> String {
        let Settings { control, candidate, .. } = &self.settings;
        let (cost, most) = self.settings.told(cost);
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
    async fn lanes(&self, asker: &Asker, shadows: &[Box<Shadow>]) -> (Vec<Lanes>, bool) {
        // The lanes take turns, so that what a budget leaves out is left out of both.
        let of_one = |at: usize| (0..self.samples).flat_map(move |_| [(at, Lane::Control), (at, Lane::Candidate)]);
        let wanted: Vec<(usize, Lane)> = (0..shadows.len()).flat_map(of_one).collect();
        let (samples, is_interrupted) = self.sampled(asker, shadows, &wanted).await;
        let mut of: Vec<[Vec<Sample>; 2]> = shadows.iter().map(|_| Default::default()).collect();
        for ((at, lane), sample) in wanted.into_iter().zip(samples) {
            let sample = sample.unwrap_or_else(|| Sample::not_asked("it was interrupted".to_owned()));
            if let Some([control, candidate]) = of.get_mut(at) {
                if lane == Lane::Control { control.push(sample) } else { candidate.push(sample) }
            }
        }
        (of.into_iter().map(|[control, candidate]| Lanes::of(control, candidate)).collect(), is_interrupted)
    }

    /// Takes these samples, as many at once as the models' own bounds allow, until all are there or somebody ends it.
    async fn sampled(
        &self,
        asker: &Asker,
        shadows: &[Box<Shadow>],
        wanted: &[(usize, Lane)],
    ) -> (Vec<Option<Sample>>, bool) {
        let one = async |number: usize, at: usize, lane: Lane| match shadows.get(at) {
            Some(shadow) => (number, Some(one_sample(asker, shadow, lane).await)),
            None => (number, None),
        };
        let one = &one;
        let at_once = self.settings.control.at_once().max(self.settings.candidate.at_once());
        let each = wanted.iter().enumerate().map(|(number, (at, lane))| one(number, *at, *lane));
        let mut asked = stream::iter(each).buffer_unordered(at_once);
        let (mut samples, bar) = (vec![None; wanted.len()], progress(wanted.len()));
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
async fn one_sample(asker: &Asker, shadow: &Shadow, lane: Lane) -> Sample {
    let (mut answers, mut calls, mut cost): (Vec<Completion>, _, _) = (Vec::new(), 0, Some(Cost::default()));
    let sample = loop {
        let questions = match shadow.step(lane, &answers) {
            Ok(Step::Made(decision)) => break shadow.judge(AgentDecision::clone(&decision)),
            Ok(Step::Ask(questions)) => questions,
            Err(why) => break Sample::not_asked(why.to_string()),
        };
        let (round, outcome) = asker.ask(lane, &questions).await;
        calls += round.calls;
        cost = cost.zip(round.cost).map(|(sum, cost)| sum.plus(cost));
        if outcome.is_err() {
            break Sample::not_asked(asker.account.no_money());
        }
        answers.extend(round.completions);
    };
    Sample { calls, cost: cost.map(|cost| cost.to_string()), ..sample }
}

fn progress(samples: usize) -> ProgressBar {
    let bar = ProgressBar::new(samples as u64);
    if let Ok(style) = ProgressStyle::with_template("asking {wide_bar} {pos}/{len} samples, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

/// Puts what came of asking beside the decisions that were asked for.
pub fn put(decisions: &mut [Decision], places: &[usize], lanes: Vec<Lanes>) {
    for (place, lanes) in places.iter().zip(lanes) {
        if let Some(decision) = decisions.get_mut(*place) {
            decision.lanes = Some(lanes);
        }
    }
}
