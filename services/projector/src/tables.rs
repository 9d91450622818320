//! Writing rows: one statement a table and kind of change, however many rows. What may be told twice in the log is
//! written once.

#[macro_use]
mod columns;

mod actions;
mod agents;
mod chains;
#[cfg(test)]
mod commuting;
mod consent;
mod events;
mod inner_state;
mod memories;
mod messages;
mod processes;
mod tasks;
mod teams;
mod threads;
mod usage;

use sqlx::PgConnection;

use crate::changes::Changes;

/// For a connection that writes: rows are found by their keys, one by one. While a generation is filled, tables grow a
/// thousandfold between two looks at their statistics, and a plan that was made when one was empty reads all of it.
pub const SETTINGS: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
                            SET plan_cache_mode = force_generic_plan";

/// Writes all changes, within the caller's transaction. What a change refers to is written before it.
pub async fn write(connection: &mut PgConnection, changes: &Changes) -> sqlx::Result<()> {
    events::keep(connection, &changes.log).await?;
    events::insert(connection, &changes.events).await?;
    events::count(connection, &changes.unknown).await?;
    agents::define(connection, &changes.agents).await?;
    teams::change(connection, &changes.teams).await?;
    teams::brief(connection, &changes.briefings).await?;
    threads::create(connection, &changes.threads).await?;
    threads::touch(connection, &changes.touched).await?;
    threads::describe(connection, &changes.described).await?;
    threads::change(connection, &changes.thread_states).await?;
    threads::compact(connection, &changes.compacted).await?;
    messages::tell(connection, changes).await?;
    actions::decide(connection, changes).await?;
    actions::begin(connection, changes).await?;
    actions::advance(connection, &changes.progressed).await?;
    actions::cancel(connection, &changes.cancels).await?;
    actions::become_processes(connection, &changes.spawned).await?;
    actions::end(connection, changes).await?;
    actions::resolve(connection, &changes.verdicts).await?;
    actions::settle(connection, &changes.late_answers).await?;
    processes::spawn(connection, &changes.spawned).await?;
    processes::advance(connection, &changes.advanced).await?;
    processes::cancel(connection, &changes.canceled).await?;
    processes::exit(connection, &changes.exited).await?;
    chains::start(connection, &changes.chains).await?;
    chains::add_steps(connection, &changes.steps).await?;
    chains::ask(connection, &changes.steps_asked).await?;
    chains::begin(connection, &changes.steps_begun).await?;
    chains::end_actions(connection, &changes.step_results).await?;
    chains::end_steps(connection, &changes.steps_ended).await?;
    chains::end(connection, &changes.chains_ended).await?;
    tasks::schedule(connection, &changes.tasks).await?;
    tasks::fire(connection, &changes.firings).await?;
    tasks::change(connection, &changes.task_states).await?;
    memories::append(connection, &changes.memories).await?;
    memories::keep(connection, &changes.memory_versions).await?;
    inner_state::keep(connection, &changes.inner_state_changes).await?;
    inner_state::change(connection, &changes.inner_state).await?;
    usage::call(connection, &changes.model_calls).await?;
    usage::enter(connection, &changes.entries).await?;
    consent::request(connection, &changes.approvals).await?;
    consent::decide(connection, &changes.consents).await?;
    consent::withdraw(connection, &changes.withdrawals).await?;
    consent::offer(connection, &changes.offers).await?;
    consent::choose(connection, &changes.choices).await?;
    consent::settle(connection, &changes.settled).await
}
