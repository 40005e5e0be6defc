package traffic

import (
	"math"
	"sync"
	"time"

	"github.com/fullbore-net/fullbore/internal/datagram"
	"github.com/fullbore-net/fullbore/internal/delay"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/result"
)

// udpReceiver is what a flow that receives datagrams has beyond a stream.
type udpReceiver struct {
	e        *Engine
	bare     bool // no account: acc and meter are nil
	size     int
	wide     bool
	extended bool
	nonce    uint64

	// mu guards what follows and, for this flow, the counter: the worker holds it for one
	// batch, the sampler for one look. One uncontended lock a batch is less than the ten
	// atomic stores it replaces, and all numbers of a look are of the same moment.
	mu    sync.Mutex
	acc   *datagram.Account
	meter *delay.Meter // of the measured time; another before the end of Omit; nil when thinned
	lean  leanJitter   // instead of it
	got   received
	high  int64 // the highest sequence number
	quiet int64 // when the last datagram of this test came, tail included; ns since t0

	clock stampClock // the worker's
	took  int        // likewise: datagrams of the call under way
	bad   error      // likewise: what Verify found

	omitted *result.Quantiles // the sampler's: of the last omitted row
}

// received is what the account does not count.
type received struct {
	foreign  int64
	distinct int64 // bytes within the rate window, each datagram once
	tail     int64 // distinct datagrams after it
	head     int64 // distinct datagrams before it: they waited in the socket for the start
	largest  int64 // datagrams in one message
	bytes    int64 // of the largest message
	kernel   int64 // datagrams timed by the kernel
	user     int64 // and by this program
	bare     int64 // datagrams without a header within the rate window
}

func newUDPReceiver(e *Engine) *udpReceiver {
	u := &e.cfg.UDP
	if u.Bare {
		return &udpReceiver{e: e, bare: true}
	}
	r := &udpReceiver{
		e: e, size: e.cfg.BlockSize, wide: u.Wide, extended: e.extended(), nonce: u.Nonce,
		acc: datagram.NewAt(u.Wide, u.FirstSeq), high: int64(u.FirstSeq) - 1,
	}
	if !e.thin() {
		r.meter = delay.NewMeter(e.samples())
	}
	return r
}

// receiveSize is the room for a message: a byte more than the test's datagrams, so that a
// longer one is seen to be no such, or for any that is possible.
func (e *Engine) receiveSize(joined bool) int {
	switch {
	case joined:
		return 64 << 10
	case e.cfg.UDP.Bare:
		return largestDatagram
	}
	return e.cfg.BlockSize + 1
}

// largestDatagram is UDP's over IPv6, bytes.
const largestDatagram = 65535 - 8

// samples is how many delays a meter keeps for its quantiles. A meter takes about
// 100 KiB beside them, so the flows of a thinned run have none.
func (e *Engine) samples() int { return min(max(65536/len(e.streams), 512), delay.DefaultSamples) }

// jitter is iperf3's. The caller holds mu.
func (u *udpReceiver) jitter() float64 {
	if u.meter == nil {
		return u.lean.j / 1e9
	}
	return u.meter.Compat()
}

// leanJitter is iperf3's jitter and nothing else (spec protocol §8.1), ns. A change of
// delay by more than a second beyond the time that passed is a clock that was set.
type leanJitter struct {
	known          bool
	sent, received int64
	j              float64
}

func (l *leanJitter) arrive(sent, received int64) {
	gap, elapsed := sent-l.sent, received-l.received
	d := float64(elapsed) - float64(gap)
	if l.known && math.Abs(d) <= 1e9+math.Min(math.Abs(float64(gap)), math.Abs(float64(elapsed))) {
		l.j += (math.Abs(d) - l.j) / 16
	}
	l.known, l.sent, l.received = true, sent, received
}

// arrived counts one message read at now: one datagram or, with segment > 0, several of
// that length. stamp is the kernel's, CLOCK_REALTIME, 0 = none. It returns how many
// bytes count for the rate. The caller holds mu.
func (s *stream) arrived(data []byte, segment int, stamp, now int64) (counted int) {
	u := s.rx
	at, stamp := u.arrival(stamp, now)
	inTime := at <= u.e.u.stop.Load() && (at >= 0 || u.e.cfg.Limited)
	if u.bare {
		return u.count(s, u.uncounted(s, data, segment, stamp, inTime), at, inTime)
	}
	if segment <= 0 || segment >= len(data) {
		if u.one(data, at, inTime) {
			counted = len(data)
		}
		u.timed(1, stamp)
		u.sized(1, len(data))
		return u.count(s, counted, at, inTime)
	}
	n := 0
	for rest := data; len(rest) > 0; n++ {
		d := rest[:min(segment, len(rest))]
		rest = rest[len(d):]
		if u.one(d, at, inTime) {
			counted += len(d)
		}
	}
	u.timed(n, stamp)
	u.sized(n, len(data))
	return u.count(s, counted, at, inTime)
}

// uncounted takes a message without headers into account and returns its bytes.
func (u *udpReceiver) uncounted(s *stream, data []byte, segment int, stamp int64, inTime bool) int {
	n := 1
	if segment > 0 && segment < len(data) {
		n = (len(data) + segment - 1) / segment
	}
	if inTime {
		u.got.bare += int64(n)
		u.took += n
	}
	u.timed(n, stamp)
	u.sized(n, len(data))
	if u.e.cfg.Verify && u.bad == nil {
		head := 0
		if u.e.cfg.Message == Jitter {
			head = min(MessageHeader, len(data))
		}
		u.bad = s.corrupt(data[head:], s.ctr.bytes.Load()+int64(head))
	}
	return len(data)
}

// arrival is when a message came, by the kernel's stamp if that can be true; told is 0 when
// not.
func (u *udpReceiver) arrival(stamp, now int64) (at, told int64) {
	if stamp != 0 {
		if t, ok := u.clock.at(stamp, now); ok {
			return t, stamp
		}
	}
	return now, 0
}

func (u *udpReceiver) timed(n int, stamp int64) {
	if stamp != 0 {
		u.got.kernel += int64(n)
	} else {
		u.got.user += int64(n)
	}
}

func (u *udpReceiver) sized(n, bytes int) {
	if int64(n) > u.got.largest {
		u.got.largest = int64(n)
	}
	if n > 1 && int64(bytes) > u.got.bytes {
		u.got.bytes = int64(bytes)
	}
}

func (u *udpReceiver) count(s *stream, n int, at int64, inTime bool) int {
	if n == 0 {
		return 0
	}
	u.quiet = max(u.quiet, at)
	if !inTime {
		return 0
	}
	s.ctr.add(n, max(at, s.ctr.last.Load()))
	return n
}

// one takes one datagram into account and reports whether it is of this test.
func (u *udpReceiver) one(b []byte, at int64, inTime bool) bool {
	if len(b) != u.size || !datagram.Plausible(b, u.wide) {
		u.got.foreign++
		return false
	}
	seq, sent := datagram.Header(b, u.wide)
	if u.extended {
		var nonce uint64
		if sent, nonce = datagram.Ext(b); nonce != u.nonce {
			u.got.foreign++
			return false
		}
	}
	kind := u.acc.Arrive(seq)
	switch {
	case kind == datagram.Foreign:
		return false
	case kind == datagram.First && u.wide:
		u.high = int64(seq)
	case kind == datagram.First:
		u.high += int64(uint32(seq) - uint32(u.high))
	}
	switch {
	case !kind.Distinct():
	case inTime:
		u.got.distinct += int64(len(b))
	case at < 0:
		u.got.head++
	default:
		u.got.tail++
	}
	if !inTime && at >= 0 {
		return true
	}
	if inTime {
		u.took++
	}
	if u.meter == nil {
		u.lean.arrive(sent, at)
		return true
	}
	u.meter.Arrive(u.high, kind.Distinct(), kind == datagram.First, sent, u.e.monoAt(at))
	return true
}

// stampClock brings the kernel's stamps, which are of the time of day, onto the
// engine's clock. The time of day may be set while a test runs: then the offset jumps,
// and what the kernel stamped around the jump is timed by the reader.
type stampClock struct {
	offset int64 // engine time − CLOCK_REALTIME
	read   int64 // when it was read, ns since t0
	known  bool
	doubt  bool // it jumped at the last reading
}

const (
	offsetEvery = int64(200 * time.Microsecond)
	// A clock that is slewed drifts by 500 ppm at most (adjtimex(2)); a reading is exact to
	// a microsecond.
	offsetJump   = int64(20 * time.Microsecond)
	offsetSlewed = 1000 // one part in …: twice the most
)

// refresh reads the offset anew if it is time to. Called before a batch's stamps are
// looked at.
func (c *stampClock) refresh(base, now int64) {
	if c.known && now-c.read < offsetEvery {
		return
	}
	c.set(-osnet.RealOffset()-base, now)
}

func (c *stampClock) set(offset, now int64) {
	d := offset - c.offset
	if d < 0 {
		d = -d
	}
	c.doubt = c.known && d > offsetJump+(now-c.read)/offsetSlewed
	c.offset, c.read, c.known = offset, now, true
}

// at converts a stamp; ok is false where it cannot be true.
func (c *stampClock) at(stamp, now int64) (at int64, ok bool) {
	at = stamp + c.offset
	if c.doubt || !c.known || at > now+offsetJump {
		return 0, false
	}
	return min(at, now), true
}

// listening is how far the count of a receiver of datagrams is.
type listening int

const (
	receiving listening = iota
	// silent: enough silence since the last datagram, or since the stop. A thread that was
	// not running all the while does not know what lies in its socket, so the end is a read
	// that finds nothing.
	silent
	heard // over
)

// tail says how far the count after the measured time is.
func (e *Engine) tail(last, now int64) listening {
	stop := e.u.stop.Load()
	if e.cfg.UDP.Bare { // nothing that comes later counts: what has come is to be read
		if now-stop >= int64(tailSilence) {
			return heard
		}
		return silent
	}
	silence := max(tailSilence, e.cfg.UDP.Drain)
	switch {
	case now-stop >= int64(tailMost):
		return heard
	case now-max(stop, last) >= int64(silence):
		return silent
	}
	return receiving
}

// endReceive ends the receivers' rate window now, if it has not ended.
func (e *Engine) endReceive() {
	if e.started.Load() {
		e.u.stop.CompareAndSwap(noStop, max(e.now(), 1))
	}
}

const noStop = int64(1<<63 - 1)

// listens says whether a receiver of datagrams goes on at now; quiet is when the last one
// of its flows came.
func (e *Engine) listens(quiet, now int64) listening {
	if !e.stopRecv.Load() {
		return receiving
	}
	e.endReceive()
	if !e.drain.Load() {
		return heard
	}
	return e.tail(quiet, now)
}

// police ends a run whose senders do not keep to MaxRate: more than it and a second of
// it has come. Reading slower would cost the same network and look like loss.
func (e *Engine) police(now int64) {
	if e.cfg.MaxRate <= 0 || now-e.u.policed.Load() < policeEvery {
		return
	}
	e.u.policed.Store(now)
	var bytes int64
	for _, s := range e.streams {
		if !s.Send {
			bytes += s.ctr.bytes.Load()
		}
	}
	if float64(bytes)*8 > float64(e.cfg.MaxRate)*(seconds(now)+1) {
		e.fire(Budget)
	}
}

// tookDatagrams ends a call at now: its datagrams are calls, and one that was corrupt ends
// the flow. It reports whether the flow goes on.
func (s *stream) tookDatagrams(now int64) bool {
	if n := s.rx.took; n > 0 {
		s.rx.took = 0
		if s.calls != nil {
			s.received(n, now)
		}
	}
	if s.rx.bad != nil {
		s.end(s.rx.bad)
	}
	return s.rx.bad == nil
}

// tookMessage hands on a datagram of the jitter mode.
func (s *stream) tookMessage(data []byte, stamp, now int64) {
	at, told := s.rx.arrival(stamp, now)
	if at <= s.e.u.stop.Load() {
		s.message(data, at, told != 0)
	}
}

// noteDatagrams applies the receivers' rules to n bytes just counted.
func (s *stream) noteDatagrams(n int) {
	if n > 0 && (s.e.watchReceived || s.e.q.budgeted) {
		s.e.noteReceived(n)
	}
}

// leftReceiving marks the flow's end: that of the rate window, or now if it died before.
func (s *stream) leftReceiving() {
	s.ctr.stopped.Store(max(1, min(s.e.u.stop.Load(), s.e.now())))
}
