#!/bin/sh
# The tests of whole programs: `make interop`. GO and FULLBORE are make's.
#
# First what waits or compares without a clock, side by side; then the rest, one package at a
# time: what measures has the machine to itself. A new package belongs to the rest until
# somebody has looked what it minds.
set -u
cd "$(dirname "$0")/.." || exit 1
GO=${GO:-go}
out=$(mktemp -d) || exit 1
jobs=
trap 'for j in $jobs; do kill "$j" 2>/dev/null; done; rm -rf "$out"' EXIT
trap 'exit 130' INT TERM

# make lint has vetted the tests.
tests() { "$GO" test -vet=off -timeout 20m -p 1 "$@"; }

# Two of the field cases are two minutes of silence each.
silence='^(TestClientVanishes|TestFrozenReceiver)$/^default$'

# What all of them are made of is compiled once, by all processors.
"$GO" build ./internal/... ./result/... || exit 1

tests -run "$silence" ./test/fieldcases >"$out/1" 2>&1 &
jobs="$jobs $!"
tests ./test/wine/... >"$out/2" 2>&1 &
jobs="$jobs $!"
failed=0
n=0
for j in $jobs; do
	n=$((n + 1))
	wait "$j" || failed=1
	cat "$out/$n"
done
jobs=

# shellcheck disable=SC2046 # one word a package
tests -skip "$silence" $("$GO" list ./test/... | grep -v '/test/wine') || failed=1
exit $failed
