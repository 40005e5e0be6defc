//go:build !linux

package probe

// hostIdentity: no identity of a boot that any process may read is known here.
func hostIdentity() string { return "" }
