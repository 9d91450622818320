//! Messages of `kairo dev` once it runs.

use std::{fmt::Write, io, path::Path};

use console::style;
use jiff::tz::TimeZone;
use kairo_local::Service;

use super::{data_folder::DataFolder, machine::Machine, model::Model};
use crate::{
    event_lines::{EventLines, printable},
    exchange::Exchange,
    models::without_credentials,
    terminal,
    turn::Ending,
};

/// Shows a turn: what was said, what was replied, and every event between.
pub(super) fn print_turn(message: &str, exchange: &Exchange, ending: Option<&Ending>) -> io::Result<()> {
    terminal::line("")?;
    terminal::line(format!("{} {}", style("you    ").bold(), printable(message)))?;
    let reply = match ending {
        Some(Ending::Replied { reply }) => printable(reply),
        Some(Ending::Failed { reply, reason }) => printable(&format!("{reply}\n(the agent failed: {reason})")),
        Some(Ending::Undelivered { reason }) => printable(&format!("(not delivered: {reason})")),
        Some(Ending::Asked { question }) => printable(&question.words()),
        None => "(no reply in time)".to_owned(),
    };
    terminal::line(format!("{} {}", style("default").bold().green(), reply))?;
    terminal::line("")?;
    for line in EventLines::format_all(&exchange.events, terminal::width(), TimeZone::system()) {
        terminal::line(line)?;
    }
    Ok(())
}

/// Returns the addresses of the machine, the models that answer, and what to try.
pub(super) fn running_notice(machine: &Machine, data_folder: &DataFolder, model: &Model, here: &Path) -> String {
    let kairo = std::env::current_exe().ok();
    let kairo = kairo.as_deref().map_or_else(|| "kairo".to_owned(), |path| relative(path, here));
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "\nKairo runs until Ctrl-C.\n\n  console  {kairo} console\n  gateway  {}\n  nats     {}\n  logs     {}\n\n{}\n\nTry next, in another terminal:\n",
        machine.gateway_url(),
        machine.nats_url(),
        relative(&data_folder.logs_dir(), here),
        model_notice(model),
    );
    let mut offer = |command: String, what: &str| {
        let _ = writeln!(text, "  {command}\n      {what}");
    };
    offer(
        format!("{kairo} send --wait --chain 'What is the time in Europe/Berlin and Asia/Tokyo?'"),
        "two tools at once",
    );
    offer(format!("{kairo} send --wait --chain 'run echo hello'"), "a process, watched over");
    offer(
        format!("{kairo} send --wait 'start a long job'"),
        "a process in the background; then say: how far is it?, and: stop it",
    );
    offer(format!("{kairo} watch"), "meanwhile: what the agent says, decides and runs, with bars");
    offer(format!("{kairo} chat"), "talk, line by line");
    offer(format!("{kairo} events --follow"), "watch everything that happens");
    offer(format!("{kairo} status"), "who is there, and is anything behind?");
    offer(format!("{kairo} agents"), "the agents; define one of your own: agents define --help");
    if let Ok(replica) = machine.stack().replica(Service::AgentRuntime, 0) {
        let what = "kill the mind in the middle of a turn: it is started again, and no message is lost";
        offer(format!("kill -9 {}", replica.process().pid()), what);
    }
    text
}

fn model_notice(model: &Model) -> String {
    match model {
        Model::Simulator => "A MODEL SIMULATOR is answering: it plays a scenario and understands nothing.\n\
             For a real model, set OPENAI_API_KEY, or KAIRO_MODEL_URL to any OpenAI-compatible endpoint\n\
             (and KAIRO_MODEL to the model's name), and start again."
            .to_owned(),
        Model::Endpoint { base_url, model, fast, light, .. } => {
            let helps = |model: &Option<String>, what: &str| {
                model.as_ref().map(|model| format!("\n{model} {what}.")).unwrap_or_default()
            };
            let fast = helps(fast, "compiles plans into steps");
            let light = helps(light, "completes steps");
            let place = without_credentials(base_url).unwrap_or_default();
            format!("{model} at {place} is answering.{fast}{light}")
        }
    }
}

/// The path as it is shortest from here.
fn relative(path: &Path, here: &Path) -> String {
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulator_is_called_one_and_keys_and_passwords_are_never_shown() {
        assert!(model_notice(&Model::Simulator).contains("SIMULATOR"));
        let (base_url, model) = ("https://joe:sk-secret@models.example/v1".to_owned(), "big".to_owned());
        let fast = None;
        let light = Some("small".to_owned());
        let endpoint = Model::Endpoint { base_url, model, fast, light, api_key: Some("sk-secret".into()) };
        let said = "big at https://models.example/v1 is answering.\nsmall completes steps.";
        assert_eq!(model_notice(&endpoint), said);
    }

    #[test]
    fn paths_below_here_are_short() {
        assert_eq!(relative(Path::new("/a/b/c"), Path::new("/a")), "b/c");
        assert_eq!(relative(Path::new("/x/c"), Path::new("/a")), "/x/c");
    }
}
