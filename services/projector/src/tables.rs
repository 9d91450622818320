//! Writing rows: one statement a table and kind of change, however many rows. Each may be repeated.

mod actions;
mod agents;
mod chains;
mod consent;
mod events;
mod memories;
mod messages;
mod processes;
mod tasks;
mod threads;

use sqlx::PgConnection;

use crate::changes::Changes;

/// Writes all changes, within the caller's transaction. What a change refers to is written before it.
pub async fn write(connection: &mut PgConnection, changes: &Changes) -> sqlx::Result<()> {
    events::insert(connection, &changes.events).await?;
    agents::define(connection, &changes.agents).await?;
    threads::create(connection, &changes.threads).await?;
    threads::touch(connection, &changes.touched).await?;
    threads::describe(connection, &changes.described).await?;
    threads::archive(connection, &changes.archived).await?;
    messages::insert(connection, &changes.messages).await?;
    messages::deliver(connection, &changes.deliveries).await?;
    messages::place(connection, &changes.placed).await?;
    actions::decide(connection, &changes.actions).await?;
    actions::begin(connection, &changes.begun).await?;
    actions::advance(connection, &changes.progressed).await?;
    actions::cancel(connection, &changes.cancels).await?;
    actions::become_processes(connection, &changes.spawned).await?;
    actions::end(connection, &changes.ended).await?;
    actions::resolve(connection, &changes.verdicts).await?;
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
    consent::request(connection, &changes.approvals).await?;
    consent::decide(connection, &changes.consents).await?;
    consent::withdraw(connection, &changes.withdrawals).await?;
    consent::offer(connection, &changes.offers).await?;
    consent::choose(connection, &changes.choices).await?;
    consent::settle(connection, &changes.settled).await
}

/// One column of many rows, as `UNNEST` wants it.
fn column<R, C>(rows: impl IntoIterator<Item = R>, value: impl Fn(R) -> C) -> Vec<C> {
    rows.into_iter().map(value).collect()
}
