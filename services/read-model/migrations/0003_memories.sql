-- What agents remember. Told for the first time by the version that makes this table, so nothing is read again for it.

-- For words that are misspelt. Trusted since Postgres 13: whoever may create in the database may create it.
CREATE EXTENSION IF NOT EXISTS pg_trgm;

CREATE TABLE memories (
    agent            text NOT NULL,
    -- The same memory again replaces what it said.
    memory_id        uuid NOT NULL,
    -- The event that says it, and where in the log it stands.
    event_id         uuid NOT NULL,
    sequence         bigint NOT NULL,
    position         integer NOT NULL,
    updated_at       timestamptz NOT NULL,
    thread_id        text,
    -- Whom it was written for; none for all.
    user_id          text,
    kind             text NOT NULL,
    subject          text NOT NULL,
    content          text NOT NULL,
    keywords         text[] NOT NULL,
    -- The day it is about, in the agent's time zone.
    day              date,
    source_event_ids text[] NOT NULL,
    -- [{"name": …, "sealed": base64}]: what only the holder of the key can read.
    secrets          jsonb NOT NULL,
    -- Subject and keywords, by which misspelt words are found.
    named            text NOT NULL,
    -- The beginning of a long content: an index holds no more than a megabyte of a row.
    words            tsvector NOT NULL GENERATED ALWAYS AS (
        setweight(to_tsvector('simple', named), 'A') || setweight(to_tsvector('simple', left(content, 100000)), 'B')
    ) STORED,
    PRIMARY KEY (agent, memory_id)
);
CREATE INDEX memories_of_agent ON memories (agent, day, sequence, position);
CREATE INDEX memories_by_place ON memories (day, sequence, position);
CREATE INDEX memories_by_word ON memories USING gin (words);
CREATE INDEX memories_by_name ON memories USING gin (named gin_trgm_ops);
