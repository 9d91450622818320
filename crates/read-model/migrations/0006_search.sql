-- Documents that the search engine refused, and why: they are not found there until they change.
CREATE TABLE refused_documents (
    generation bigint NOT NULL REFERENCES generations ON DELETE CASCADE,
    document   text NOT NULL,
    kind       text NOT NULL,
    agent      text NOT NULL,
    id         text NOT NULL,
    -- Of the message that it was changed by.
    sequence   bigint NOT NULL,
    reason     text NOT NULL,
    at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (generation, document)
);
