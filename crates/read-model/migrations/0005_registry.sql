-- What read models there are, and how far each has read the log. The rows themselves stand in a schema for each
-- generation (`model/`): a read model is never changed in place, another generation is built beside it from the log.
-- This table and the next change by expanding: replicas of the version before go on with them.

-- For words that are misspelt. Trusted since Postgres 13: whoever may create in the database may create it.
CREATE EXTENSION IF NOT EXISTS pg_trgm;

-- One building of a read model from the log.
CREATE TABLE generations (
    generation bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- `read-model`: the tables; `search`: the documents of the search engine.
    projection text NOT NULL,
    -- Which rows it makes. Services ask the live generation of the version that they know.
    version    integer NOT NULL,
    -- Where its rows are: a schema here, or what the names of indexes end with.
    place      text NOT NULL UNIQUE,
    -- asked:     somebody wants it
    -- filling:   it is read up to where the log ended when it was begun, without indexes
    -- indexing:  its indexes are built, nobody writes
    -- comparing: it is read up to where the live one was, and held against it
    -- differing: it is not what the live one is, and follows the log until somebody decides
    -- ready:     it follows the log, and is about to be swapped in
    -- live:      it answers queries
    -- kept:      it was live before
    -- failed:    it cannot be built, as the reason says
    -- dropping:  somebody wants it gone
    state      text NOT NULL CHECK (state IN ('asked', 'filling', 'indexing', 'comparing', 'differing', 'ready', 'live',
                                              'kept', 'failed', 'dropping')),
    -- Where the log ended when it was begun.
    target     bigint NOT NULL DEFAULT 0,
    -- What the comparison found, or why it failed.
    reason     text NOT NULL DEFAULT '',
    -- Of search: the generation of the tables that its documents are made from.
    source     bigint,
    asked_at   timestamptz NOT NULL DEFAULT now(),
    since      timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX generations_live ON generations (projection, version) WHERE state = 'live';
CREATE UNIQUE INDEX generations_begun ON generations (projection, version)
    WHERE state IN ('asked', 'filling', 'indexing', 'comparing', 'differing', 'ready');

-- How far a generation has read the log: each partition of it on its own. Rows and position change in one transaction;
-- the position is also the fence: whoever finds another one there than the one it started from has been overtaken.
CREATE TABLE positions (
    generation bigint NOT NULL REFERENCES generations ON DELETE CASCADE,
    partition  integer NOT NULL,
    sequence   bigint NOT NULL DEFAULT 0,
    -- It goes no further than this.
    stop_at    bigint,
    -- Messages a second that it read lately.
    rate       double precision NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (generation, partition)
);

-- Messages that nobody else reports and that became dead letters: once, however often the log is read.
CREATE TABLE set_aside (
    sequence bigint PRIMARY KEY,
    subject  text NOT NULL,
    reason   text NOT NULL,
    at       timestamptz NOT NULL DEFAULT now()
);
