-- What threads are about, chains and their steps, tasks, and what waits for a human's answer.

-- Replicas of a version before pass over the events that fill these tables, so all rows are made again from the log,
-- under a new name of the position, as in 0002: first the position, then the tables.
UPDATE projections SET name = 'read-model-3', sequence = 0, updated_at = now() WHERE name LIKE 'read-model%';
TRUNCATE events, agents, threads, messages, actions, processes;

ALTER TABLE threads
    ADD COLUMN summary      text NOT NULL DEFAULT '',
    -- Of the event that the title and the summary come from.
    ADD COLUMN described_at bigint NOT NULL DEFAULT 0,
    -- Of the event that archived it or took it out again.
    ADD COLUMN placed_at    bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT threads_status CHECK (status IN ('active', 'archived'));
CREATE INDEX threads_of_user ON threads (user_id, last_sequence);
CREATE INDEX threads_by_id ON threads (thread_id);
CREATE INDEX threads_by_last_event ON threads (last_sequence);
-- Users' messages in a thread; what an agent says stands in events.
CREATE INDEX messages_of_thread ON messages (agent, thread_id, sequence) WHERE role = 'user';

CREATE TABLE chains (
    chain_id       uuid PRIMARY KEY,
    -- Of the event that began it.
    sequence       bigint NOT NULL,
    position       integer NOT NULL,
    agent          text NOT NULL,
    thread_id      text,
    -- The turn it belongs to.
    correlation_id uuid NOT NULL,
    origin         text NOT NULL,
    task_id        uuid,
    plan           text NOT NULL,
    started_at     timestamptz NOT NULL,
    ended_at       timestamptz,
    outcome        text,
    reason         text
);
CREATE INDEX chains_of_thread ON chains (agent, thread_id, sequence);
CREATE INDEX chains_of_task ON chains (task_id, sequence) WHERE task_id IS NOT NULL;

CREATE TABLE chain_steps (
    chain_id       uuid NOT NULL,
    step           integer NOT NULL,
    -- Steps of a group run at once.
    group_no       integer NOT NULL,
    event          text NOT NULL,
    -- As they were written, with references not filled in.
    params         jsonb NOT NULL,
    decide         text,
    -- When a human was asked, and by which request.
    asked_at       timestamptz,
    approval_id    uuid,
    -- When its tool was called, and by which action.
    begun_at       timestamptz,
    begun_sequence bigint,
    action_id      uuid,
    -- Of whatever ended it first.
    ended_at       timestamptz,
    ended_sequence bigint,
    outcome        text CHECK (outcome IN ('done', 'failed', 'skipped', 'stopped')),
    -- The beginning of it; the whole is in actions and events.
    result         text,
    reason         text,
    state          text NOT NULL GENERATED ALWAYS AS (
        CASE
            WHEN outcome IS NOT NULL THEN outcome
            WHEN action_id IS NOT NULL THEN 'running'
            WHEN approval_id IS NOT NULL THEN 'asked'
            ELSE 'pending'
        END
    ) STORED,
    PRIMARY KEY (chain_id, step)
);
CREATE INDEX chain_steps_of_action ON chain_steps (action_id) WHERE action_id IS NOT NULL;

CREATE TABLE tasks (
    task_id          uuid PRIMARY KEY,
    -- Of the event that made it.
    sequence         bigint NOT NULL,
    position         integer NOT NULL,
    agent            text NOT NULL,
    user_id          text,
    thread_id        text,
    correlation_id   uuid NOT NULL,
    kind             text NOT NULL,
    title            text NOT NULL,
    -- When it is due, in the words it was asked for: of a scheduled task.
    type             text,
    at               text,
    "interval"       text,
    cron             text,
    rrule            text,
    time_zone        text,
    -- What it waits for: of a hook.
    trigger          text,
    condition        text,
    -- The steps it runs.
    action           jsonb NOT NULL,
    source           text NOT NULL,
    created_at       timestamptz NOT NULL,
    -- Of the last event about it, as are the next two.
    changed_sequence bigint NOT NULL,
    changed_at       timestamptz NOT NULL,
    status           text NOT NULL,
    reason           text,
    next_at          timestamptz,
    occurrence       bigint,
    fired            bigint NOT NULL DEFAULT 0
);
CREATE INDEX tasks_by_age ON tasks (sequence, position);
CREATE INDEX tasks_of_agent ON tasks (agent, sequence, position);
CREATE INDEX tasks_of_user ON tasks (user_id, sequence, position) WHERE user_id IS NOT NULL;

-- Each time a task fired.
CREATE TABLE task_firings (
    event_id         uuid PRIMARY KEY,
    sequence         bigint NOT NULL,
    position         integer NOT NULL,
    task_id          uuid NOT NULL,
    fired_at         timestamptz NOT NULL,
    -- Which time, and when it was due; none of a hook.
    occurrence       bigint,
    due_at           timestamptz,
    late             boolean NOT NULL,
    trigger_event_id uuid
);
CREATE INDEX firings_of_task ON task_firings (task_id, sequence, position);

-- Tools that are called only if a human agrees.
CREATE TABLE approvals (
    action_id          uuid PRIMARY KEY,
    sequence           bigint NOT NULL,
    position           integer NOT NULL,
    agent              text NOT NULL,
    user_id            text NOT NULL,
    thread_id          text,
    correlation_id     uuid NOT NULL,
    tool               text NOT NULL,
    arguments          jsonb NOT NULL,
    chain_id           uuid,
    step               integer NOT NULL,
    requested_at       timestamptz NOT NULL,
    verdict            text CHECK (verdict IN ('approved', 'rejected')),
    decided_by         text,
    note               text,
    decided_at         timestamptz,
    decided_sequence   bigint,
    -- When its step or its chain ended without it.
    withdrawn_sequence bigint,
    status             text NOT NULL GENERATED ALWAYS AS (
        CASE
            WHEN decided_sequence < coalesce(withdrawn_sequence, 9223372036854775807) THEN verdict
            WHEN withdrawn_sequence IS NOT NULL THEN 'withdrawn'
            ELSE 'waiting'
        END
    ) STORED
);
CREATE INDEX approvals_waiting ON approvals (user_id, sequence, position) WHERE status = 'waiting';
CREATE INDEX approvals_of_chain ON approvals (chain_id) WHERE chain_id IS NOT NULL;

-- Threads that were suggested to users.
CREATE TABLE offers (
    offer_id          uuid PRIMARY KEY,
    sequence          bigint NOT NULL,
    position          integer NOT NULL,
    agent             text NOT NULL,
    user_id           text NOT NULL,
    correlation_id    uuid NOT NULL,
    message_id        text,
    action            text NOT NULL,
    -- Where the message goes if it is accepted, and if it is declined.
    thread_id         text,
    current_thread_id text,
    reason            text NOT NULL,
    summary           text NOT NULL,
    offered_at        timestamptz NOT NULL,
    choice            text CHECK (choice IN ('accept', 'decline')),
    chosen_by         text,
    chosen_at         timestamptz,
    -- When the message was put into a thread.
    settled_at        timestamptz
);
CREATE INDEX offers_open ON offers (user_id, sequence, position) WHERE choice IS NULL AND settled_at IS NULL;
CREATE INDEX offers_of_turn ON offers (correlation_id);
