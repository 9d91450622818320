//! Writing rows: one statement a table and kind of change, however many rows. Each may be repeated.

mod actions;
mod agents;
mod events;
mod messages;
mod processes;
mod threads;

use sqlx::PgConnection;

use crate::changes::Changes;

/// Writes all changes, within the caller's transaction. What a change refers to is written before it.
pub async fn write(connection: &mut PgConnection, changes: &Changes) -> sqlx::Result<()> {
    events::insert(connection, &changes.events).await?;
    agents::define(connection, &changes.agents).await?;
    threads::create(connection, &changes.threads).await?;
    threads::touch(connection, &changes.touched).await?;
    messages::insert(connection, &changes.messages).await?;
    messages::deliver(connection, &changes.deliveries).await?;
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
    processes::exit(connection, &changes.exited).await
}

/// One column of many rows, as `UNNEST` wants it.
fn column<R, C>(rows: impl IntoIterator<Item = R>, value: impl Fn(R) -> C) -> Vec<C> {
    rows.into_iter().map(value).collect()
}
