-- The rows of one generation, in its schema. Everything here follows from the log and can be made again from it; times
-- are those of the events. Whoever changes what rows there are raises READ_MODEL.version.
-- An index stands here if rows are written by it, and else in indexes.sql.
-- What is filtered, joined or sorted by is a column. A column `definition` holds whatever else the event says that made the
-- row, by the names of the contract: a field that is added to the event and to the row needs no edit here.

-- The log as it stands, for all that is shown of it.
CREATE TABLE log (
    sequence bigint PRIMARY KEY,
    subject  text NOT NULL,
    -- One a line, as kairo_core::header_lines writes them.
    headers  text NOT NULL,
    payload  bytea NOT NULL,
    stored   timestamptz NOT NULL
);

-- What stands in it, one row an event: a decision holds several. A message published twice stands here twice.
CREATE TABLE events (
    sequence       bigint NOT NULL,
    position       integer NOT NULL,
    event_id       uuid NOT NULL,
    ts             timestamptz NOT NULL,
    -- The agent it concerns: the owner, or the one that a user's message is addressed to.
    agent          text,
    thread_id      text,
    correlation_id uuid NOT NULL,
    type           text NOT NULL,
    PRIMARY KEY (sequence, position)
);

-- Messages whose type this version does not know.
CREATE TABLE unknown_types (
    type           text PRIMARY KEY,
    messages       bigint NOT NULL,
    first_sequence bigint NOT NULL,
    last_sequence  bigint NOT NULL
);

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
    -- Whether it is in use, put away or over.
    standing      text NOT NULL,
    title         text NOT NULL,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    last_sequence bigint NOT NULL,
    summary       text NOT NULL DEFAULT '',
    -- Of the event that the title and the summary come from.
    described_at  bigint NOT NULL DEFAULT 0,
    -- Of the event that archived it or took it out again.
    placed_at     bigint NOT NULL DEFAULT 0,
    -- When it was last over: of a thread of work.
    completed_at  timestamptz,
    -- Of the event that last summed up what was oldest of it.
    compacted_at  bigint,
    status        text NOT NULL GENERATED ALWAYS AS (
        CASE WHEN standing = 'active' AND compacted_at IS NOT NULL THEN 'compacted' ELSE standing END
    ) STORED,
    -- Words within names such as those of tools and addresses are words of their own; the functions stand in the migrations.
    words         tsvector NOT NULL GENERATED ALWAYS AS (
        setweight(to_tsvector('simple', search_words(left(title, 10000))), 'A')
        || setweight(to_tsvector('simple', search_words(left(summary, 65536))), 'B')
    ) STORED,
    PRIMARY KEY (agent, thread_id),
    CONSTRAINT threads_standing CHECK (standing IN ('active', 'archived', 'completed'))
);

-- How it is with the team that an agent leads or works in, by the last event of the agent that says so; active without one.
-- Which team that is says the agent's profile.
CREATE TABLE teams (
    agent            text PRIMARY KEY,
    status           text NOT NULL,
    reason           text NOT NULL,
    -- Whether it goes on by itself on the next day.
    over_budget      boolean NOT NULL,
    changed_at       timestamptz NOT NULL,
    changed_sequence bigint NOT NULL
);

-- Whether what an agent worked on for its mission was told its owner.
CREATE TABLE briefings (
    event_id       uuid PRIMARY KEY,
    sequence       bigint NOT NULL,
    agent          text NOT NULL,
    user_id        text NOT NULL,
    -- The conversation in which it was told, and the thread of work that it is about.
    thread_id      text,
    work_thread_id text,
    told           boolean NOT NULL,
    reason         text NOT NULL,
    summary        text NOT NULL,
    briefed_at     timestamptz NOT NULL
);

-- Conversations: what users sent, what agents said, and what went wrong on the way. What the event of a user's message
-- says, its delivery and the thread it was put into stand in different partitions, which are read in any order: each
-- fills in its own columns, whether the row is there or not.
CREATE TABLE messages (
    event_id         uuid PRIMARY KEY,
    -- None until the message itself was read.
    sequence         bigint,
    position         integer NOT NULL DEFAULT 0,
    ts               timestamptz,
    correlation_id   uuid,
    role             text NOT NULL DEFAULT 'user' CHECK (role IN ('user', 'agent', 'failure')),
    user_id          text,
    -- The message sent, or the one that is answered.
    message_id       text,
    text             text NOT NULL DEFAULT '',
    -- Images and audio that belong to it, named by the digests of their bytes: [{media_type, digest, size, name}].
    parts            jsonb NOT NULL DEFAULT '[]',
    -- Whether it ends the turn.
    final            boolean NOT NULL DEFAULT false,
    -- How the model's answer ended, and why the turn failed; both empty for a complete answer.
    ending           text NOT NULL DEFAULT '',
    failure          text NOT NULL DEFAULT '',
    -- Whom a user's message is addressed to, or who speaks; and the thread that was named.
    addressed_to     text,
    named_thread     text,
    -- Of the delivery to an agent, for a user's message: to whom, into which thread, and where in the log.
    delivered_to     text,
    delivered_thread text,
    delivered        bigint,
    -- The thread that the agent put it into, and where in the log.
    placed_thread    text,
    placed           bigint,
    agent            text GENERATED ALWAYS AS (coalesce(delivered_to, addressed_to)) STORED,
    -- What a user calls a thread is made into its id when the message is delivered.
    thread_id        text GENERATED ALWAYS AS (coalesce(delivered_thread, placed_thread, named_thread)) STORED,
    -- What happened to it last, or is told of it last.
    changed          bigint GENERATED ALWAYS AS (greatest(sequence, delivered, placed)) STORED,
    words            tsvector NOT NULL GENERATED ALWAYS AS (
        to_tsvector('simple', search_words(left(text, 65536)))
    ) STORED
);

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
    ) STORED,
    -- The process it became, if it became one.
    process_id          uuid,
    -- How far it says it is: 0 to 1, where it said. Of what it said the newest by its own clock is in force.
    fraction            double precision,
    progress_message    text,
    progress_at         timestamptz,
    -- When it was first asked to end, and by which action.
    cancel_requested_at timestamptz,
    cancel_requested_by uuid,
    -- Of its result.
    ended_sequence      bigint,
    -- What a human found out about an action in doubt.
    verdict             text CHECK (verdict IN ('happened', 'did_not_happen')),
    resolved_by         text,
    resolution_note     text,
    resolution_entered_by text,
    resolved_at         timestamptz
);

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
    reason     text,
    -- Of the first event about it.
    sequence            bigint NOT NULL,
    tool                text,
    background          boolean NOT NULL,
    fraction            double precision,
    progress_message    text,
    progress_at         timestamptz,
    -- The end of what it had written by then; once it has ended, see stdout_tail and stderr_tail.
    tail                text,
    cancel_requested_at timestamptz,
    cancel_requested_by uuid,
    -- What it used, where that is known.
    wall_ms             bigint,
    user_ms             bigint,
    system_ms           bigint,
    max_rss_bytes       bigint,
    -- The end of what it wrote, and how many bytes that was in all.
    stdout_tail         text,
    stderr_tail         text,
    stdout_bytes        bigint,
    stderr_bytes        bigint
);

CREATE TABLE memories (
    agent      text NOT NULL,
    -- The same memory again replaces what it said.
    memory_id  uuid NOT NULL,
    -- The event that says it, and where in the log it stands.
    event_id   uuid NOT NULL,
    sequence   bigint NOT NULL,
    position   integer NOT NULL,
    updated_at timestamptz NOT NULL,
    thread_id  text,
    -- Whom it was written for; none for all.
    user_id    text,
    kind       text NOT NULL,
    subject    text NOT NULL,
    content    text NOT NULL,
    -- The day it is about, in the agent's time zone.
    day        date,
    -- What is only shown of it: keywords, the events it came from, and secrets, which only the holder of the key can read.
    definition jsonb NOT NULL,
    -- Subject and keywords, by which misspelt words are found.
    named      text NOT NULL,
    -- The beginning of a long content: an index holds no more than a megabyte of a row.
    words      tsvector NOT NULL GENERATED ALWAYS AS (
        setweight(to_tsvector('simple', search_words(named)), 'A')
        || setweight(to_tsvector('simple', search_words(left(content, 100000))), 'B')
    ) STORED,
    -- The stems of its words in English, German and Spanish, by which other forms of a word are found.
    forms      tsvector NOT NULL GENERATED ALWAYS AS (
        to_tsvector('english', search_spaced(named || ' ' || left(content, 100000)))
        || to_tsvector('german', search_spaced(named || ' ' || left(content, 100000)))
        || to_tsvector('spanish', search_spaced(named || ' ' || left(content, 100000)))
    ) STORED,
    PRIMARY KEY (agent, memory_id)
);

-- All that memories said, a row for each event that says it.
CREATE TABLE memory_versions (
    event_id   uuid PRIMARY KEY,
    sequence   bigint NOT NULL,
    position   integer NOT NULL,
    agent      text NOT NULL,
    memory_id  uuid NOT NULL,
    updated_at timestamptz NOT NULL,
    thread_id  text,
    -- Whom it was written for; none for all.
    user_id    text,
    kind       text NOT NULL,
    subject    text NOT NULL,
    content    text NOT NULL,
    day        date,
    -- As in memories.
    definition jsonb NOT NULL
);

-- The inner state of agents: all that was written under each key, and when it was deleted.
CREATE TABLE inner_state_changes (
    event_id   uuid PRIMARY KEY,
    sequence   bigint NOT NULL,
    position   integer NOT NULL,
    agent      text NOT NULL,
    -- Whose it is; empty for all.
    user_id    text NOT NULL,
    key        text NOT NULL,
    content    text NOT NULL,
    deleted    boolean NOT NULL,
    updated_at timestamptz NOT NULL,
    thread_id  text,
    -- What is only shown of it: related keys, marks, and secrets, which only the holder of the key can read.
    definition jsonb NOT NULL
);

-- As it is now. What was deleted stays, so that it is found out of date elsewhere.
CREATE TABLE inner_state (
    agent      text NOT NULL,
    user_id    text NOT NULL,
    key        text NOT NULL,
    event_id   uuid NOT NULL,
    sequence   bigint NOT NULL,
    position   integer NOT NULL,
    content    text NOT NULL,
    deleted    boolean NOT NULL,
    updated_at timestamptz NOT NULL,
    thread_id  text,
    definition jsonb NOT NULL,
    words      tsvector NOT NULL GENERATED ALWAYS AS (
        setweight(to_tsvector('simple', search_words(key)), 'A')
        || setweight(to_tsvector('simple', search_words(left(content, 65536))), 'B')
    ) STORED,
    PRIMARY KEY (agent, user_id, key)
);

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

CREATE TABLE chain_steps (
    chain_id       uuid NOT NULL,
    step           integer NOT NULL,
    -- Steps of a group run at once.
    group_no       integer NOT NULL,
    event          text NOT NULL,
    -- As they were written, with references not filled in.
    params         jsonb NOT NULL,
    -- With the references filled in, once it was asked about, begun or ended.
    filled         jsonb,
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
    -- Of the event that ended it, where a decision did: the place of that event in the decision.
    ended_position integer,
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
    -- What is only shown of it: in the words it was asked for, when it is due, of a scheduled task.
    definition       jsonb NOT NULL,
    -- What it waits for: of a hook.
    trigger          text,
    condition        text,
    -- The steps it runs.
    action           jsonb NOT NULL,
    created_at       timestamptz NOT NULL,
    -- Of the last event about it, as are the next two.
    changed_sequence bigint NOT NULL,
    changed_at       timestamptz NOT NULL,
    status           text NOT NULL,
    reason           text,
    next_at          timestamptz,
    occurrence       bigint,
    fired            bigint NOT NULL DEFAULT 0,
    -- Of a queued task: what came of it, in which thread it is worked on, and the message by which it was put first.
    result           text,
    work_thread_id   text,
    put_first        bigint,
    -- Whether it asks what to do for the agent's mission.
    is_next_run      boolean NOT NULL GENERATED ALWAYS AS (coalesce(definition ->> 'is_next_run' = 'true', false)) STORED,
    -- What the steps, the trigger and the words of a queued task say, without the names of fields.
    steps            text NOT NULL GENERATED ALWAYS AS (
        left(coalesce(trigger, ''), 1000) || ' ' || left(coalesce(condition, ''), 1000) || ' '
        || left(coalesce(definition ->> 'text', ''), 10000) || ' '
        || regexp_replace(left(action::text, 10000), '"[a-z_]+": |\\[bfnrt]', ' ', 'g')
    ) STORED,
    words            tsvector NOT NULL GENERATED ALWAYS AS (
        setweight(to_tsvector('simple', search_words(left(title, 10000))), 'A')
        || setweight(to_tsvector('simple', search_words(
            left(coalesce(trigger, ''), 1000) || ' ' || left(coalesce(condition, ''), 1000) || ' '
            || left(coalesce(definition ->> 'text', ''), 65536) || ' '
            || regexp_replace(left(action::text, 65536), '"[a-z_]+": |\\[bfnrt]', ' ', 'g'))), 'B')
    ) STORED
);

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

-- Calls of models, as decisions tell of them: answered or failed.
CREATE TABLE model_calls (
    -- The decision it was made for, and which of its calls it is.
    event_id      uuid NOT NULL,
    call          integer NOT NULL,
    sequence      bigint NOT NULL,
    agent         text NOT NULL,
    thread_id     text,
    -- The user that the decision names; where it names none, it is the one of the thread.
    user_id       text,
    tier          text NOT NULL,
    model         text NOT NULL,
    -- The submodule that was asked; empty for the agent itself.
    module        text NOT NULL,
    decided_at    timestamptz NOT NULL,
    day           date NOT NULL GENERATED ALWAYS AS ((decided_at AT TIME ZONE 'UTC')::date) STORED,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    latency_ms    bigint NOT NULL,
    -- How it failed.
    failed        text,
    -- Of the input, what the model server read from its cache.
    cached_tokens bigint NOT NULL,
    -- Whether the numbers of tokens are an estimate, since the model server told none.
    is_estimate   boolean NOT NULL,
    -- What entered from outside and led to it.
    correlation_id uuid NOT NULL,
    PRIMARY KEY (event_id, call)
);

-- What users sent with an API key: whatever comes of it counts for the key's caps.
CREATE TABLE entries (
    correlation_id uuid PRIMARY KEY,
    -- As in the envelope, such as api_key:mjz5cqn2x7bd3kfa.
    entered_by     text NOT NULL
);

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
    -- Where content comes from that was seen before and that nobody here wrote.
    outside            jsonb NOT NULL,
    verdict            text CHECK (verdict IN ('approved', 'rejected')),
    decided_by         text,
    note               text,
    entered_by         text,
    decided_at         timestamptz,
    decided_sequence   bigint,
    -- What the human approved in place of `arguments`.
    changed_arguments  jsonb,
    -- When it counts as rejected if nobody has answered.
    expires_at         timestamptz,
    expired_sequence   bigint,
    -- When its step or its chain ended without it.
    withdrawn_sequence bigint,
    status             text NOT NULL GENERATED ALWAYS AS (
        CASE
            WHEN decided_sequence < coalesce(least(withdrawn_sequence, expired_sequence), 9223372036854775807) THEN verdict
            WHEN expired_sequence < coalesce(withdrawn_sequence, 9223372036854775807) THEN 'expired'
            WHEN withdrawn_sequence IS NOT NULL THEN 'withdrawn'
            ELSE 'waiting'
        END
    ) STORED
);
CREATE INDEX approvals_of_chain ON approvals (chain_id) WHERE chain_id IS NOT NULL;

-- Threads that were suggested to users.
CREATE TABLE offers (
    offer_id       uuid PRIMARY KEY,
    sequence       bigint NOT NULL,
    position       integer NOT NULL,
    agent          text NOT NULL,
    user_id        text NOT NULL,
    correlation_id uuid NOT NULL,
    -- Where the message goes if it is accepted.
    thread_id      text,
    -- What is only shown of it: which message it is about, what is suggested and why.
    definition     jsonb NOT NULL,
    offered_at     timestamptz NOT NULL,
    choice         text CHECK (choice IN ('accept', 'decline')),
    chosen_by      text,
    chosen_at      timestamptz,
    -- When the message was put into a thread.
    settled_at     timestamptz
);
CREATE INDEX offers_of_turn ON offers (correlation_id);
