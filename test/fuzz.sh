#!/bin/sh
# Runs every fuzz target of the tree for the given time each.
set -eu
time=${1:-60s}
for pkg in $(go list ./...); do
	dir=$(go list -f '{{.Dir}}' "$pkg")
	for f in $(grep -hoE '^func (Fuzz[A-Za-z0-9_]+)' "$dir"/*_test.go 2>/dev/null | awk '{print $2}'); do
		echo "fuzz $pkg $f"
		go test "$pkg" -run '^$' -fuzz "^$f\$" -fuzztime "$time"
	done
done
