-- +goose Up
CREATE TABLE runs (
    id        TEXT PRIMARY KEY,
    started   INTEGER NOT NULL, -- ms since 1970, UTC
    kind      TEXT NOT NULL,
    host      TEXT NOT NULL,
    label     TEXT NOT NULL,
    note      TEXT NOT NULL,
    settings  TEXT NOT NULL,
    keep      INTEGER NOT NULL, -- 1: not to be pruned
    bytes     INTEGER NOT NULL, -- of this row and of its document
    record    TEXT NOT NULL     -- JSON of store.Record
) WITHOUT ROWID;
CREATE INDEX runs_started ON runs (started, id);
CREATE INDEX runs_bytes ON runs (keep, bytes);
CREATE TABLE documents (
    id   TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    form TEXT NOT NULL, -- 'run' or 'report'
    data BLOB NOT NULL  -- gzip of the JSON document
);
CREATE TABLE parts ( -- the runs of a report
    id     TEXT NOT NULL,
    parent TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    PRIMARY KEY (id, parent)
) WITHOUT ROWID;
CREATE INDEX parts_parent ON parts (parent);
CREATE TABLE tags (
    id  TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    PRIMARY KEY (id, tag)
) WITHOUT ROWID;
