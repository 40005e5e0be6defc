//go:build !linux

package osnet

// packetBatch exists on Linux only: Capabilities().Batch is false elsewhere.
type packetBatch struct{}

func newPacketBatch(*PacketReceiver) *packetBatch               { return nil }
func (*packetBatch) receive(*PacketReceiver) (n int, err error) { return 0, nil }
func (*packetBatch) detach()                                    {}
