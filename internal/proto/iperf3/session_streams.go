package iperf3

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"io"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
)

// wanted is the number of streams of both directions.
func (t *session) wanted() int {
	n := t.plan.Streams
	if t.plan.Direction == plan.Both {
		n *= 2
	}
	return n
}

func (t *session) indexed() bool { return t.hello.Has(ext.FeatureIndex) }

// proves reports that streams may come from another address than the control connection,
// if they prove that what is sent to it arrives.
func (t *session) proves() bool { return t.indexed() && t.hello.Has(ext.FeatureToken) }

// prove puts a token on a stream's connection, says so on the control connection, and
// waits until it comes back.
func (t *session) prove(a arrival) bool {
	var p proof
	_, _ = rand.Read(p[:])
	if _, err := a.nc.Write(p.challenge()); err != nil {
		return false
	}
	if t.ready(ext.ReadyFrame{Prove: []int{int(a.order)}}) != nil {
		return false
	}
	var got proof
	if _, err := io.ReadFull(a.nc, got[:]); err != nil || !p.valid(&got) {
		t.s.visitors.note(peerOf(a.nc), "stream from another address than its control connection, without proof", "test", t.name())
		return false
	}
	return true
}

// ready sends a frame about the streams.
func (t *session) ready(f ext.ReadyFrame) error {
	doc, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return t.ctl.send(AppendFrame(nil, FrameReady, doc), t.s.to.Answer)
}

// sayReady tells a client that asked for it that all streams are there.
func (t *session) sayReady() error {
	if !t.hello.Has(ext.FeatureToken) {
		return nil
	}
	if err := t.ready(ext.ReadyFrame{Ready: true}); err != nil {
		return t.closedError(err)
	}
	return nil
}

// offer hands a stream's connection over; the cookie is read. It closes what the test
// does not want. foreign = it comes from another address than the control connection.
func (t *session) offer(a arrival, foreign bool) {
	if t.indexed() {
		var idx [IndexSize]byte
		if _, err := io.ReadFull(a.nc, idx[:]); err != nil {
			_ = a.nc.Close()
			return
		}
		a.order = int64(binary.BigEndian.Uint32(idx[:]))
		if !foreign && t.offerPing(a.nc, a.order) {
			return
		}
		if a.order >= int64(t.wanted()) {
			t.s.farewell(a.nc, []byte{0xff})
			return
		}
	}
	if foreign && !t.prove(a) {
		_ = a.nc.Close()
		return
	}
	_ = a.nc.SetDeadline(time.Time{})
	select {
	case t.arrivals <- a:
	case <-t.noMore:
		t.s.farewell(a.nc, []byte{0xff})
	}
}
