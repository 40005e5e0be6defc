//go:build darwin || freebsd

package osnet

// awaitLookups cannot wait for the other processors here.
func awaitLookups() {}
