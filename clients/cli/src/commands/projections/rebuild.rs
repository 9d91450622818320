//! `kairo projections rebuild`

use std::{process::ExitCode, time::Duration};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use kairo_proto::{
    v1::{GenerationRow, ListProjectionsResponse, RebuildProjectionResponse, RebuildRow},
    words::GenerationState,
};
use serde_json::{Value, json};

use super::{
    GatewaySession,
    generations::{describe_work, find_generation, is_settled, remaining_seconds},
};
use crate::{Error, client::ClientError, durations, event_lines::printable, terminal};

/// The interval at which the progress is polled.
const PACE: Duration = Duration::from_millis(250);
/// The most polls in a row that may fail, as when the read model is away for a moment.
const PATIENCE: u32 = 40;

/// A rebuild that is waited for.
struct WatchedRebuild {
    building: RebuildRow,
    bar: ProgressBar,
    state: String,
    settled: Option<GenerationRow>,
}

pub async fn run(name: &str, swap_anyway: bool, session: &GatewaySession) -> Result<ExitCode, Error> {
    let begun: RebuildProjectionResponse =
        session.client.post(&format!("v1/projections/{name}/rebuild"), &json!({})).await?;
    let screen = MultiProgress::new();
    let mut watched: Vec<WatchedRebuild> =
        begun.rebuilding.into_iter().map(|it| WatchedRebuild::start(it, &screen)).collect();
    let mut failures = 0;
    while watched.iter().any(|it| it.settled.is_none()) {
        tokio::time::sleep(PACE).await;
        match session.client.get::<ListProjectionsResponse>("v1/projections", &[]).await {
            Err(error) if may_pass(&error) && failures < PATIENCE => failures += 1,
            answer => {
                let all = answer?;
                failures = 0;
                for it in watched.iter_mut().filter(|it| it.settled.is_none()) {
                    it.update(&all, swap_anyway, session).await?;
                }
            }
        }
    }
    screen.clear()?;
    let settled: Vec<&GenerationRow> = watched.iter().filter_map(|it| it.settled.as_ref()).collect();
    if session.json {
        terminal::json(&json!({ "generations": settled }))?;
    } else {
        watched.iter().try_for_each(WatchedRebuild::print_result)?;
    }
    let all_well = settled.iter().all(|generation| generation.state_word() == GenerationState::Live);
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns true if the gateway, or a server it asks, is away just now.
fn may_pass(error: &ClientError) -> bool {
    matches!(error, ClientError::Unreachable { .. } | ClientError::Refused { status: 503, .. })
}

impl WatchedRebuild {
    fn start(building: RebuildRow, screen: &MultiProgress) -> Self {
        let bar = screen.add(ProgressBar::no_length());
        if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len}  {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(building.projection.clone());
        Self { building, bar, state: String::new(), settled: None }
    }

    /// Takes in how far it is by now.
    async fn update(
        &mut self,
        all: &ListProjectionsResponse,
        swap_anyway: bool,
        session: &GatewaySession,
    ) -> Result<(), Error> {
        let RebuildRow { projection, generation: number } = &self.building;
        let Some(found) = find_generation(all, *number) else {
            return Err(Error::Advice(format!("{projection}: somebody removed generation {number}")));
        };
        self.show_progress(found);
        if found.state_word() == GenerationState::Differing && swap_anyway {
            if self.state != found.state {
                let path = format!("v1/projections/{projection}/swap");
                session.client.post::<Value>(&path, &json!({})).await?;
            }
        } else if is_settled(found) {
            self.bar.finish_and_clear();
            self.settled = Some(found.clone());
        }
        self.state.clone_from(&found.state);
        Ok(())
    }

    fn show_progress(&self, found: &GenerationRow) {
        self.bar.set_length(found.target.max(found.position));
        self.bar.set_position(found.position);
        let remaining =
            remaining_seconds(found).map(|seconds| format!(", {} left", durations::format_seconds(seconds)));
        let reads = found.state_word() == GenerationState::Filling;
        let pace = if reads { format!(", {:.0}/s", found.rate) } else { String::new() };
        self.bar.set_message(format!("{}{pace}{}", describe_work(found), remaining.unwrap_or_default()));
    }

    /// Shows how the rebuild ended, and what to do next.
    fn print_result(&self) -> Result<(), Error> {
        let RebuildRow { projection, generation } = &self.building;
        let Some(settled) = &self.settled else { return Ok(()) };
        let reason = printable(&settled.reason);
        let lines = match settled.state_word() {
            GenerationState::Live => vec![
                format!("{projection}: generation {generation} was built from the log and answers queries"),
                format!("the one before is kept until kairo projections drop {projection}"),
            ],
            GenerationState::Differing => vec![
                format!("{projection}: generation {generation} differs from the live one: {reason}"),
                format!("  kairo projections verify {projection}   shows digests of both"),
                format!("  kairo projections swap {projection}     lets it answer all the same"),
                format!("  kairo projections drop {projection} {generation}   removes it"),
            ],
            GenerationState::Failed => vec![
                format!("{projection}: generation {generation} could not be built: {reason}"),
                format!("  kairo projections rebuild {projection}   tries again"),
            ],
            state => vec![format!("{projection}: generation {generation} is {state} by now")],
        };
        Ok(lines.into_iter().try_for_each(terminal::line)?)
    }
}
