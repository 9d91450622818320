-- Everything here follows from the log and can be made again from it. Times are those of the events.

-- How far the log has been read. Rows and position change in one transaction; the position is also the fence: whoever
-- finds another one there than the one it started from has been overtaken.
CREATE TABLE projections (
    name       text PRIMARY KEY,
    sequence   bigint NOT NULL,
    -- The furthest it ever was: messages up to here that cannot be read have been set aside before, so a rebuild
    -- does not set them aside again.
    judged     bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO projections (name, sequence, judged) VALUES ('read-model', 0, 0);

-- The log in seed 002's form, one row an event. A message published twice stands here twice, as in the log.
CREATE TABLE events (
    sequence       bigint NOT NULL,
    position       integer NOT NULL,
    event_id       uuid NOT NULL,
    ts             timestamptz NOT NULL,
    -- The third token of the subject: an agent, a user or a service.
    owner          text NOT NULL,
    -- The agent it concerns: the owner, or the one that a user's message is addressed to.
    agent          text,
    thread_id      text,
    correlation_id uuid NOT NULL,
    causation_id   uuid,
    type           text NOT NULL,
    source         text NOT NULL,
    subject        text NOT NULL,
    event          jsonb NOT NULL,
    PRIMARY KEY (sequence, position)
);
CREATE INDEX events_of_agent ON events (agent, sequence, position) WHERE agent IS NOT NULL;
CREATE INDEX events_of_thread ON events (thread_id, sequence, position) WHERE thread_id IS NOT NULL;
CREATE INDEX events_of_chain ON events (correlation_id, sequence, position);
CREATE INDEX events_by_time ON events (ts);

CREATE TABLE agents (
    agent      text PRIMARY KEY,
    profile    jsonb NOT NULL,
    sequence   bigint NOT NULL,
    defined_at timestamptz NOT NULL
);

CREATE TABLE threads (
    agent         text NOT NULL,
    thread_id     text NOT NULL,
    user_id       text NOT NULL,
    kind          text NOT NULL,
    status        text NOT NULL,
    title         text NOT NULL,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    last_sequence bigint NOT NULL,
    PRIMARY KEY (agent, thread_id)
);
CREATE INDEX threads_by_age ON threads (agent, last_sequence);

-- Conversations: what users sent, what agents said, and what went wrong on the way.
CREATE TABLE messages (
    event_id       uuid PRIMARY KEY,
    sequence       bigint NOT NULL,
    position       integer NOT NULL,
    ts             timestamptz NOT NULL,
    correlation_id uuid NOT NULL,
    role           text NOT NULL CHECK (role IN ('user', 'agent', 'failure')),
    -- For a user's message: whom it is addressed to, and from its delivery on, whom it was delivered to.
    agent          text,
    user_id        text,
    thread_id      text,
    -- The message sent, or the one that is answered.
    message_id     text,
    text           text NOT NULL,
    -- Whether it ends the turn.
    final          boolean NOT NULL,
    -- Sequence of the delivery to an agent, for a user's message.
    delivered      bigint
);
CREATE UNIQUE INDEX messages_sent ON messages (user_id, message_id) WHERE role = 'user';
CREATE INDEX messages_of_agent ON messages (agent, sequence, position);

-- Tool calls. One without an end is in flight.
CREATE TABLE actions (
    action_id      uuid PRIMARY KEY,
    sequence       bigint NOT NULL,
    agent          text NOT NULL,
    thread_id      text,
    correlation_id uuid NOT NULL,
    tool           text NOT NULL,
    arguments      jsonb NOT NULL,
    decided_at     timestamptz NOT NULL,
    invoked_at     timestamptz,
    runner         text,
    executor       text,
    ended_at       timestamptz,
    ok             boolean,
    result         jsonb,
    error_kind     text,
    error_message  text,
    duration_ms    bigint,
    status         text NOT NULL GENERATED ALWAYS AS (
        CASE
            WHEN ok THEN 'done'
            WHEN ended_at IS NOT NULL THEN coalesce(error_kind, 'failed')
            WHEN invoked_at IS NOT NULL THEN 'running'
            ELSE 'asked'
        END
    ) STORED
);
CREATE INDEX actions_in_flight ON actions (agent, sequence) WHERE ended_at IS NULL;

CREATE TABLE processes (
    process_id uuid PRIMARY KEY,
    action_id  uuid,
    agent      text NOT NULL,
    supervisor text NOT NULL,
    pid        bigint,
    program    text,
    arguments  jsonb,
    started_at timestamptz,
    ended_at   timestamptz,
    outcome    text,
    code       integer,
    signal     integer,
    reason     text
);
CREATE INDEX processes_running ON processes (agent) WHERE ended_at IS NULL;
