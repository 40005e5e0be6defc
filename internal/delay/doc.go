// Package delay turns time stamps into delay figures: RFC 3550 jitter, IPDV (RFC 3393)
// and PDV (RFC 5481) of one-way streams whose clocks do not agree, mergeable histograms,
// and what can be known of the other end's clock (methods M-DELAY, M-CLOCK). It is pure:
// no sockets, no clocks of its own.
package delay
