//go:build !linux

package traffic

// buildUDP leaves all flows to the portable worker.
func (e *Engine) buildUDP() ([]*stream, error) { return e.streams, nil }
