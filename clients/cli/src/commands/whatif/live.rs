//! `kairo whatif --live`: models are asked for what would not be known.

use kairo_core::prices::TokenCost;
use kairo_mind::deliberation::ModelQuestion;
use kairo_proto::v1::{Completion, LogMessage};
use kairo_replay::{
    lanes::{AskingEnd, SamplingLane},
    whatif::{Cone, WhatIf, WhatIfStep},
};

use super::whatif_error;
use crate::{
    Error,
    asking::{Asker, AskingSettings},
    dev::say,
};

const INTERRUPTED: &str = "it was interrupted";

/// Looks at the log once without asking, for what it comes to, then asks; whatever is not asked stays unknown.
pub async fn ask_models(
    whatif: &WhatIf,
    messages: &[LogMessage],
    settings: &AskingSettings,
    asker: &Asker,
) -> Result<Cone, Error> {
    let expected = expected_calls(whatif, messages, settings)?;
    say(announcement(settings, expected));
    let mut whatif = whatif.clone().with_models();
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    let mut why_not: Option<(AskingEnd, String)> = None;
    for message in messages {
        let mut took = whatif.apply(message).map_err(|why| whatif_error(&why))?;
        while let WhatIfStep::Ask(questions) = took {
            let answers = match &why_not {
                Some(why) => Err(why.clone()),
                None => tokio::select! {
                    biased;
                    _ = &mut interrupt => Err((AskingEnd::Interrupted, INTERRUPTED.to_owned())),
                    answers = ask_questions(asker, &questions) => answers,
                },
            };
            match answers {
                Ok(answers) => took = whatif.answer(answers),
                Err(why) => {
                    whatif.abandon(&why.1);
                    why_not = Some(why);
                    break;
                }
            }
        }
    }
    let cone = whatif.into_cone().map_err(|why| whatif_error(&why))?;
    let ended = why_not.map_or(AskingEnd::Complete, |(ended, _)| ended);
    Ok(Cone { asked: Some(asker.summarize_costs(expected, ended)), ..cone })
}

/// Asks models and returns their answers, or the reason why they are not asked.
async fn ask_questions(asker: &Asker, questions: &[ModelQuestion]) -> Result<Vec<Completion>, (AskingEnd, String)> {
    let (round, outcome) = asker.ask(SamplingLane::Candidate, questions).await;
    outcome.map(|()| round.completions).map_err(|_| (AskingEnd::Budget, asker.account.refusal_reason()))
}

/// The calls of all decisions that are not known without asking, if each takes what it took, and what that costs.
fn expected_calls(
    whatif: &WhatIf,
    messages: &[LogMessage],
    settings: &AskingSettings,
) -> Result<(u64, Option<TokenCost>), Error> {
    let mut marked = whatif.clone().with_expected_calls();
    for message in messages {
        marked.apply(message).map_err(|why| whatif_error(&why))?;
    }
    Ok(settings.candidate.sum(marked.expected_calls().iter()))
}

fn announcement(settings: &AskingSettings, (calls, cost): (u64, Option<TokenCost>)) -> String {
    let (cost, most) = settings.describe_costs(cost);
    format!("asking for what would not be known: up to about {calls} calls {cost}, with {most}")
}
