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

use crate::changes::TableChanges;

/// For a connection that writes: rows are found by their keys, one by one. While a generation is filled, tables grow a
/// thousandfold between two looks at their statistics, and a plan that was made when one was empty reads all of it.
pub const SETTINGS: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
                            SET plan_cache_mode = force_generic_plan";

/// Writes all changes, within the caller's transaction. What a change refers to is written before it.
pub async fn write_changes(connection: &mut PgConnection, changes: &TableChanges) -> sqlx::Result<()> {
    events::insert_log(connection, &changes.log).await?;
    events::insert_events(connection, &changes.events).await?;
    events::count_unknown_types(connection, &changes.unknown).await?;
    agents::upsert_agents(connection, &changes.agents).await?;
    teams::upsert_teams(connection, &changes.teams).await?;
    teams::insert_briefings(connection, &changes.briefings).await?;
    threads::insert_threads(connection, &changes.threads).await?;
    threads::touch_threads(connection, &changes.touched).await?;
    threads::describe_threads(connection, &changes.described).await?;
    threads::update_states(connection, &changes.thread_states).await?;
    threads::mark_compacted(connection, &changes.compacted).await?;
    messages::upsert_messages(connection, changes).await?;
    actions::upsert_decisions(connection, changes).await?;
    actions::update_starts(connection, changes).await?;
    actions::update_progress(connection, &changes.progressed).await?;
    actions::mark_cancels(connection, &changes.cancels).await?;
    actions::link_processes(connection, &changes.spawned).await?;
    actions::update_ends(connection, changes).await?;
    actions::apply_verdicts(connection, &changes.verdicts).await?;
    actions::apply_late_answers(connection, &changes.late_answers).await?;
    processes::upsert_spawns(connection, &changes.spawned).await?;
    processes::update_progress(connection, &changes.advanced).await?;
    processes::upsert_cancels(connection, &changes.canceled).await?;
    processes::upsert_exits(connection, &changes.exited).await?;
    chains::insert_chains(connection, &changes.chains).await?;
    chains::insert_steps(connection, &changes.steps).await?;
    chains::record_approval_requests(connection, &changes.steps_asked).await?;
    chains::record_starts(connection, &changes.steps_begun).await?;
    chains::end_actions(connection, &changes.step_results).await?;
    chains::end_steps(connection, &changes.steps_ended).await?;
    chains::end_chains(connection, &changes.chains_ended).await?;
    tasks::insert_tasks(connection, &changes.tasks).await?;
    tasks::insert_firings(connection, &changes.firings).await?;
    tasks::update_states(connection, &changes.task_states).await?;
    memories::upsert_memories(connection, &changes.memories).await?;
    memories::insert_versions(connection, &changes.memory_versions).await?;
    inner_state::insert_changes(connection, &changes.inner_state_changes).await?;
    inner_state::upsert_entries(connection, &changes.inner_state).await?;
    usage::insert_model_calls(connection, &changes.model_calls).await?;
    usage::insert_entries(connection, &changes.entries).await?;
    consent::insert_approvals(connection, &changes.approvals).await?;
    consent::apply_verdicts(connection, &changes.consents).await?;
    consent::expire_approvals(connection, &changes.expiries).await?;
    consent::withdraw_approvals(connection, &changes.withdrawals).await?;
    consent::insert_offers(connection, &changes.offers).await?;
    consent::apply_choices(connection, &changes.choices).await?;
    consent::settle_offers(connection, &changes.settled).await
}
