//! `kairo projections`

mod generations;
mod rebuild;
mod verify;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use kairo_proto::v1::{ListProjectionsResponse, SwapProjectionResponse};
use serde_json::{Value, json};

use super::GatewaySession;
use crate::{Error, terminal};
use generations::{find_projection, format_projections, kept_generations};

const EXAMPLES: &str = "\
Examples:
  kairo projections                      how far each read model is, and its generations
  kairo projections rebuild read-model   build another generation beside the live one, and swap it in
  kairo projections verify               hold the generations that there are against each other
  kairo projections drop read-model      remove those that were live before";

const REBUILD: &str = "\
Examples:
  kairo projections rebuild read-model
  kairo projections rebuild all --swap-anyway

Queries are answered by the live generation all the while. The new one becomes the live one when it is found equal; the
one before is kept until `kairo projections drop`.

Exit status: 0 if every new generation became the live one, 1 if one failed, or differs and waits for you.";

const VERIFY: &str = "\
Examples:
  kairo projections verify
  kairo projections verify read-model --json

Exit status: 0 if all generations at the same position hold the same rows, else 1.";

/// Look after the read models, which are made from the log
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ProjectionsArgs {
    #[command(subcommand)]
    command: Option<ProjectionsCommand>,
}

#[derive(Debug, Subcommand)]
enum ProjectionsCommand {
    /// Each read model with its generations; this is also what no subcommand does
    List,
    /// Build a read model anew from the log, and show how far it is
    #[command(after_help = REBUILD)]
    Rebuild {
        /// Name of the read model, or all
        #[arg(value_name = "NAME|all")]
        name: String,
        /// Make it the live one even if it differs
        #[arg(long)]
        swap_anyway: bool,
    },
    /// Show a digest of what is in each generation, and whether they are equal
    #[command(after_help = VERIFY)]
    Verify {
        /// Only this one
        name: Option<String>,
    },
    /// Make a generation live that differs from the live one
    #[command(after_help = "Example:\n  kairo projections swap read-model")]
    Swap {
        /// Name of the read model
        name: String,
    },
    /// Remove generations that are not live
    #[command(after_help = "Examples:\n  kairo projections drop read-model      those that were live before\n  \
                            kairo projections drop read-model 13   this one, built or not")]
    Drop {
        /// Name of the read model
        name: String,
        /// Only this one, whatever became of it
        #[arg(value_parser = clap::value_parser!(i64).range(1..))]
        generation: Option<i64>,
    },
}

pub(super) async fn run(arguments: ProjectionsArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        None | Some(ProjectionsCommand::List) => list_projections(session).await?,
        Some(ProjectionsCommand::Rebuild { name, swap_anyway }) => {
            return rebuild::run(&name, swap_anyway, session).await;
        }
        Some(ProjectionsCommand::Verify { name }) => return verify::run(name.as_deref(), session).await,
        Some(ProjectionsCommand::Swap { name }) => {
            let answer: Value = session.client.post(&format!("v1/projections/{name}/swap"), &json!({})).await?;
            print_generation(session, answer, "becomes the live one")?;
        }
        Some(ProjectionsCommand::Drop { name, generation }) => drop_generations(&name, generation, session).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list_projections(session: &GatewaySession) -> Result<(), Error> {
    if let Some(projections) = session.get_or_print_json::<ListProjectionsResponse>("v1/projections", &[]).await? {
        format_projections(&projections).into_iter().try_for_each(terminal::row)?;
    }
    Ok(())
}

async fn drop_generations(name: &str, generation: Option<i64>, session: &GatewaySession) -> Result<(), Error> {
    let generations = match generation {
        Some(generation) => vec![generation],
        None => {
            let all: ListProjectionsResponse = session.client.get("v1/projections", &[]).await?;
            kept_generations(find_projection(&all, name)?)
        }
    };
    if generations.is_empty() {
        let nothing = format!("{name}: no generation is kept from before");
        return Ok(if session.json { Ok(()) } else { terminal::line(nothing) }?);
    }
    for generation in generations {
        let path = format!("v1/projections/{name}/generations/{generation}");
        let answer: Value = session.client.delete(&path).await?;
        print_generation(session, answer, "is removed")?;
    }
    Ok(())
}

/// Prints the generation that was asked for and `what` happens to it, or the answer in JSON.
fn print_generation(session: &GatewaySession, answer: Value, what: &str) -> Result<(), Error> {
    if session.json {
        return Ok(terminal::json(&answer)?);
    }
    // A removal is answered in the same form.
    let SwapProjectionResponse { projection, generation } = session.parse_answer(answer)?;
    Ok(terminal::line(format!("{projection}: generation {generation} {what}"))?)
}
