// Package ntttcp speaks the protocols of NTTTCP: ntttcp-for-linux 1.1 … 1.4 (sync
// messages on the port below the data ports) and NTTTCP for Windows 5.x (a token per
// data connection, 1000 ports above), both without synchronising too, as sender and as
// receiver. It agrees on a test, opens or takes the connections, lets internal/traffic
// move the bytes, and reports them as events; it prints nothing.
//
// wire.go and windows.go are pure functions on bytes, dialog.go is what a receiver answers,
// schedule.go is when what is counted. sender.go and receiver.go are the two state machines.
// A sender is the run's client, a receiver its server; payload always goes up.
// ext_wire.go, ext_link.go and ext_merge.go are what two fullbores tell each other beside that
// (docs/wire-extension.md §12), ext_sender.go and ext_receiver.go each one's part in it; real
// tools meet none of it.
//
// NTTTCP has no login, no version and no stream headers: a data connection belongs to
// whoever at its address is setting up a test.
//
// Facts about the wire are cited as "linux §n" and "windows §n"; they were established by
// recording the originals (testdata/transcripts) and by reading their behaviour.
package ntttcp
