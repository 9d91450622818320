//! `kairo whatif --live`: models are asked for what would not be known.

use kairo_core::prices::Cost;
use kairo_mind::deliberation::Question;
use kairo_proto::v1::{Completion, LogMessage};
use kairo_replay::{
    lanes::{Ended, Lane},
    whatif::{Cone, Took, WhatIf},
};

use super::refused;
use crate::{
    Error,
    asking::{Asker, Settings},
    dev::say,
};

const INTERRUPTED: &str = "it was interrupted";

/// Looks at the log once without asking, for what it comes to, then asks; whatever is not asked stays unknown.
pub async fn cone(whatif: &WhatIf, messages: &[LogMessage], settings: &Settings, asker: &Asker) -> Result<Cone, Error> {
    let expected = expected(whatif, messages, settings)?;
    say(announced(settings, expected));
    let mut whatif = whatif.clone().live();
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    let mut why_not: Option<(Ended, String)> = None;
    for message in messages {
        let mut took = whatif.take(message).map_err(|why| refused(&why))?;
        while let Took::Asks(questions) = took {
            let answers = match &why_not {
                Some(why) => Err(why.clone()),
                None => tokio::select! {
                    biased;
                    _ = &mut interrupt => Err((Ended::Interrupted, INTERRUPTED.to_owned())),
                    answers = answers(asker, &questions) => answers,
                },
            };
            match answers {
                Ok(answers) => took = whatif.answer(answers),
                Err(why) => {
                    whatif.leave(&why.1);
                    why_not = Some(why);
                    break;
                }
            }
        }
    }
    let cone = whatif.cone().map_err(|why| refused(&why))?;
    let ended = why_not.map_or(Ended::Complete, |(ended, _)| ended);
    Ok(Cone { asked: Some(asker.came_to(expected, ended)), ..cone })
}

/// Asks models and returns their answers, or the reason why they are not asked.
async fn answers(asker: &Asker, questions: &[Question]) -> Result<Vec<Completion>, (Ended, String)> {
    let (round, outcome) = asker.ask(Lane::Candidate, questions).await;
    outcome.map(|()| round.completions).map_err(|_| (Ended::Budget, asker.account.no_money()))
}

/// The calls of all decisions that are not known without asking, if each takes what it took, and what that costs.
fn expected(whatif: &WhatIf, messages: &[LogMessage], settings: &Settings) -> Result<(u64, Option<Cost>), Error> {
    let mut marked = whatif.clone().counting();
    for message in messages {
        marked.take(message).map_err(|why| refused(&why))?;
    }
    Ok(settings.candidate.sum(marked.expected().iter()))
}

fn announced(settings: &Settings, (calls, cost): (u64, Option<Cost>)) -> String {
    let (cost, most) = settings.told(cost);
    format!("asking for what would not be known: up to about {calls} calls {cost}, with {most}")
}
