//! The processes of agents.

macro_rules! processes {
    ($conditions:literal, $($parameters:tt)*) => {
        sqlx::query_as!(
            kairo_proto::v1::ProcessRow,
            r#"
            SELECT process_id AS "process_id: Id", action_id AS "action_id!: Id", sequence AS "sequence: U64", agent, supervisor, tool, background, program,
                   arguments AS "arguments!: Object", pid, started_at AS "started_at!: At", fraction, progress_message,
                   progress_at AS "progress_at!: At", tail, cancel_requested_at AS "cancel_requested_at!: At",
                   cancel_requested_by AS "cancel_requested_by!: Id", ended_at AS "ended_at!: At", outcome, code, signal, reason, wall_ms, user_ms,
                   system_ms, max_rss_bytes, stdout_tail, stderr_tail, stdout_bytes, stderr_bytes
            FROM processes WHERE "# + $conditions,
            $($parameters)*
        )
    };
}
pub(super) use processes;
