-- +goose Up
CREATE TABLE originals ( -- files that runs were imported from
    id   TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    data BLOB NOT NULL -- gzip of the file
);
