// Package ext is the extension that two fullbores speak on a connection of a protocol that
// knows nothing of it (design §5; docs/wire-extension.md): frames and what is in them, and a
// sender of events that never makes a test wait. It is the same on every protocol; where on
// the connection frames may stand, and who offers first, is the protocol's own business.
//
// Nothing here opens, reads or closes a connection. What comes from the other end is a stranger's:
// FromWire and Printable make it safe to keep and to show.
package ext
