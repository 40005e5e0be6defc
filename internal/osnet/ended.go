package osnet

import "errors"

// PeerClosed reports, without taking anything, that the peer has closed or reset a stream and
// that nothing it sent waits to be read. On systems without such a look it returns an error
// wrapping errors.ErrUnsupported.
func (c *Conn) PeerClosed() (closed bool, err error) {
	if !c.isTCP() {
		return false, errors.ErrUnsupported
	}
	return c.peerClosed()
}
