// Package iperf3 speaks iperf3's protocol (releases 3.0.12 … 3.21 and later) in both
// roles, and the extension that two fullbores add to it
// (docs/wire-extension.md). It agrees on a test, opens the streams, lets
// internal/traffic move the bytes, and exchanges the totals; it prints nothing and
// decides nothing about how results will look.
//
// wire.go, json.go, params.go and results.go are pure functions on bytes.
// client.go and server.go are the two state machines. errors.go is the one table of
// iperf3's numeric error codes and texts.
//
// Facts about the wire are cited as "spec §n"; they were established by experiment with
// the releases named there (docs/wire-extension.md, "Ground").
package iperf3
