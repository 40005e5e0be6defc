//go:build !linux

package traffic

// newLink makes the only link there is.
func newLink(s *stream) (link, error) { return newNetLink(s), nil }
