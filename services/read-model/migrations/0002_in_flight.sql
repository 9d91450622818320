-- What is known of actions and processes while they run, and of actions in doubt.

-- Earlier events said some of it too, so all rows are made again from the log. The position goes by a new name: a
-- replica of the version before, which would leave these columns empty, finds its own gone and writes no more. First
-- the position, on which every writer's transactions queue, then the tables.
UPDATE projections SET name = 'read-model-2', sequence = 0, updated_at = now() WHERE name = 'read-model';
TRUNCATE events, agents, threads, messages, actions, processes;

ALTER TABLE actions
    -- The process it became, if it became one.
    ADD COLUMN process_id          uuid,
    -- How far it says it is: 0 to 1, where it said. Of what it said the newest by its own clock is in force.
    ADD COLUMN fraction            double precision,
    ADD COLUMN progress_message    text,
    ADD COLUMN progress_at         timestamptz,
    -- When it was first asked to end, and by which action.
    ADD COLUMN cancel_requested_at timestamptz,
    ADD COLUMN cancel_requested_by uuid,
    -- Of its result.
    ADD COLUMN ended_sequence      bigint,
    -- What a human found out about an action in doubt.
    ADD COLUMN verdict             text CHECK (verdict IN ('happened', 'did_not_happen')),
    ADD COLUMN resolved_by         text,
    ADD COLUMN resolution_note     text,
    ADD COLUMN resolved_at         timestamptz;
CREATE INDEX actions_in_doubt ON actions (agent, sequence) WHERE error_kind = 'in_doubt';

-- The process of a process.spawn lives on when its action is done.
ALTER TABLE processes
    -- Of the first event about it.
    ADD COLUMN sequence            bigint NOT NULL,
    ADD COLUMN tool                text,
    ADD COLUMN background          boolean NOT NULL,
    ADD COLUMN fraction            double precision,
    ADD COLUMN progress_message    text,
    ADD COLUMN progress_at         timestamptz,
    -- The end of what it had written by then; once it has ended, see stdout_tail and stderr_tail.
    ADD COLUMN tail                text,
    ADD COLUMN cancel_requested_at timestamptz,
    ADD COLUMN cancel_requested_by uuid,
    -- What it used, where that is known.
    ADD COLUMN wall_ms             bigint,
    ADD COLUMN user_ms             bigint,
    ADD COLUMN system_ms           bigint,
    ADD COLUMN max_rss_bytes       bigint,
    -- The end of what it wrote, and how many bytes that was in all.
    ADD COLUMN stdout_tail         text,
    ADD COLUMN stderr_tail         text,
    ADD COLUMN stdout_bytes        bigint,
    ADD COLUMN stderr_bytes        bigint;
CREATE INDEX processes_of_agent ON processes (agent, sequence);
