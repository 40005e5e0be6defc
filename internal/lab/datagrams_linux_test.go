package lab_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// caught is what a catcher says about the datagrams of a sprayer. It counts without any
// of the lab's or the product's code.
type caught struct {
	Sent       int     `json:"sent"`
	Received   int     `json:"received"` // distinct
	Lost       int     `json:"lost"`
	Duplicates int     `json:"duplicates"`
	Reordered  int     `json:"reordered"`
	Extent     int     `json:"extent"`
	Bytes      int     `json:"bytes"` // of the distinct ones
	P50        float64 `json:"p50_s"` // delay variation
	P95        float64 `json:"p95_s"`
	Start      float64 `json:"start_s"`
	End        float64 `json:"end_s"`
	Zero       int64   `json:"zero_mono_ns"`
}

// catch receives datagrams on port 5201 until a sprayer, on a TCP connection, says how
// many there were and no more come; buffer is the socket's, bytes.
func catch(buffer string) error {
	size, err := strconv.Atoi(buffer)
	if err != nil {
		return err
	}
	c, err := net.ListenUDP("udp", &net.UDPAddr{Port: 5201})
	if err != nil {
		return err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var errOpt error
	err = raw.Control(func(fd uintptr) {
		errOpt = errors.Join(
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
	})
	if err := errors.Join(err, errOpt); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", ":5201") // the lab waits for this
	if err != nil {
		return err
	}
	control, err := ln.Accept()
	if err != nil {
		return err
	}
	var sent uint32
	told := make(chan error, 1)
	go func() {
		told <- binary.Read(control, binary.BigEndian, &sent)
		// Silence ends the reading below.
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
	}()
	zero := monotonic()
	numbers, delays, bytes, err := readAll(c)
	end := monotonic()
	if err := errors.Join(err, <-told); err != nil {
		return err
	}
	out := tally(int(sent), numbers)
	out.Bytes = bytes / max(1, len(numbers)) * out.Received
	slices.Sort(delays)
	if n := len(delays); n > 0 {
		out.P50 = (delays[n/2] - delays[0]).Seconds()
		out.P95 = (delays[n*95/100] - delays[0]).Seconds()
	}
	out.Zero, out.End = int64(zero), (end - zero).Seconds()
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return err
	}
	return control.Close() // lets the sprayer end
}

// readAll returns the numbers of the datagrams as they came, how long each took by
// CLOCK_REALTIME, and their payload.
func readAll(c *net.UDPConn) (numbers []int, delays []time.Duration, bytes int, err error) {
	buf, oob := make([]byte, 2000), make([]byte, 200)
	for {
		n, oobn, _, _, err := c.ReadMsgUDP(buf, oob)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return numbers, delays, bytes, nil
		}
		if err != nil {
			return nil, nil, 0, err
		}
		if n == 4 {
			continue // a greeting
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil || len(messages) != 1 {
			return nil, nil, 0, fmt.Errorf("no receive stamp: %v, %v", messages, err)
		}
		ts := (*unix.Timespec)(unsafe.Pointer(unsafe.SliceData(messages[0].Data)))
		numbers = append(numbers, int(binary.BigEndian.Uint32(buf)))
		delays = append(delays, time.Duration(ts.Nano())-time.Duration(binary.BigEndian.Uint64(buf[4:])))
		bytes += n
	}
}

// tally counts by the definitions, taken literally.
func tally(sent int, numbers []int) caught {
	out := caught{Sent: sent}
	var distinct []int
	for _, n := range numbers {
		if slices.Contains(distinct[max(0, len(distinct)-500):], n) { // copies are near
			out.Duplicates++
			continue
		}
		for j := max(0, len(distinct)-500); j < len(distinct); j++ {
			if distinct[j] > n {
				out.Reordered++
				out.Extent = max(out.Extent, len(distinct)-j)
				break
			}
		}
		distinct = append(distinct, n)
	}
	out.Received = len(distinct)
	out.Lost = sent - out.Received
	return out
}

// spray sends datagrams of size bytes, one each gap, and tells a catcher how many.
func spray(address, count, size, gap string) error {
	n, errN := strconv.Atoi(count)
	bytes, errSize := strconv.Atoi(size)
	spacing, errGap := time.ParseDuration(gap)
	if err := errors.Join(errN, errSize, errGap); err != nil {
		return err
	}
	control, err := net.Dial("tcp", net.JoinHostPort(address, "5201"))
	if err != nil {
		return err
	}
	c, err := net.Dial("udp", net.JoinHostPort(address, "5201"))
	if err != nil {
		return err
	}
	if _, err := c.Write([]byte("hail")); err != nil {
		return err
	}
	buf := make([]byte, bytes)
	for i, start := 0, time.Now(); i < n; i++ {
		time.Sleep(time.Until(start.Add(time.Duration(i) * spacing)))
		binary.BigEndian.PutUint32(buf, uint32(i))
		binary.BigEndian.PutUint64(buf[4:], uint64(time.Now().UnixNano()))
		if _, err := c.Write(buf); err != nil {
			return err
		}
	}
	if err := binary.Write(control, binary.BigEndian, uint32(n)); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, control) // until the catcher has all of them
	if errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	return err
}

// tick runs until it has not been let run for a quarter of a second, and says for how
// long.
func tick() error {
	last, err := started() // the pause may come before this line does
	if err != nil {
		return err
	}
	for {
		now := time.Now()
		if gap := now.Sub(last); gap > 250*time.Millisecond {
			return json.NewEncoder(os.Stdout).Encode(map[string]any{"gap_s": gap.Seconds()})
		}
		last = now
		time.Sleep(time.Millisecond)
	}
}

// started is when this process began, to 10 ms.
func started() (time.Time, error) {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return time.Time{}, err
	}
	const startTime = 22 - 3 // of the fields behind the name, the first of which is the third (proc(5))
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	ticks, err := strconv.ParseInt(fields[startTime], 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{}, err
	}
	const perSecond = 100 // USER_HZ
	return time.Now().Add(-time.Duration(up.Nano()) + time.Duration(ticks)*time.Second/perSecond), nil
}

// deaf sends datagrams to a socket of its own and reads none.
func deaf(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	if err := c.SetReadBuffer(4096); err != nil {
		return err
	}
	for range n {
		if _, err := c.WriteTo(make([]byte, 1000), c.LocalAddr()); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"sent": n})
}

// play plays a scenario and fails the test when it is wrong.
func play(t *testing.T, text string) lab.Play {
	t.Helper()
	got, err := lab.Run(testContext(t), parse(t, text), options(t))
	if err != nil {
		t.Fatal(err)
	}
	last := got.Plays[len(got.Plays)-1]
	if got.Verdict == lab.Wrong {
		t.Errorf("wrong: %q\nserver: %s", got.Reasons, last.Server.Stdout)
	}
	t.Logf("%s after %d plays", got.Verdict, len(got.Plays))
	return last
}

// TestRunFaults: what a receiver counts is what the link says it did, with every fault
// at once. The delay variation of the jitter is some 2 and 4 ms.
func TestRunFaults(t *testing.T) {
	needNamespaces(t)
	p := play(t, `
name: a link with every fault
topology: link
cc: cubic
path:
  rtt: 6ms
  seed: 11
  up:
    loss: 1%
    jitter: 0-4ms
    keep_order: true
    reorder: 2%/3
    duplicate: 2%
    bursts: {p: 0.5%, r: 30%}
    outage: {at: 500ms, for: 20ms}
    hole: 1400
    faults_on: datagrams
  down: {}
server: fullbore catch 134217728
client: fullbore spray $SERVER 3000 1200 500us
expect:
  exit: 0
  udp:
    - direction: up
      document: server
      sent: sent
      received: received
      lost: lost
      duplicates: duplicates
      reordered: reordered
      extent: extent
      pdv_p50: p50_s
      pdv_p95: p95_s
      within: 1ms
  goodput:
    - {direction: up, transport: udp, document: server, bytes: bytes, start: start_s, end: end_s, zero: zero_mono_ns, tolerance: 0.1%}
`)
	d := &p.Link.Directions[0]
	if len(d.Datagrams) != 1 {
		t.Fatalf("%d flows on the link, want one: the greeting is none", len(d.Datagrams))
	}
	f, s := &d.Datagrams[0], d.Link
	if s.Loss.Packets == 0 || s.Burst.Packets == 0 || s.Reordered.Packets == 0 || s.Duplicated.Packets == 0 {
		t.Errorf("a fault did not take place, so nothing was shown about it: %+v", s)
	}
	if dropped := s.Loss.Packets + s.Burst.Packets + s.Outage.Packets; f.In != 3000 || f.Lost != dropped {
		t.Errorf("in %d, lost %d; the schedule dropped %d", f.In, f.Lost, dropped)
	}
}

// TestRunCounters: counters of nft and of the kernel against claims.
func TestRunCounters(t *testing.T) {
	needNamespaces(t)
	play(t, `
name: counters
topology: pair
cc: cubic
hosts:
  server:
    nft: |
      add table inet t
      add chain inet t i { type filter hook input priority 0; }
      add rule inet t i udp dport 5201 udp length != 12 counter comment "arrived"
server: fullbore catch 4096
client: fullbore spray $SERVER 2000 1000 0s
pause: [{who: server, at: 1ms, for: 50ms}]
expect:
  exit: 0
  nft:
    - {host: server, counter: arrived, document: server, claim: sent}
    - {host: server, counter: arrived, document: server, claim: sent, payload: 1000}
  snmp:
    - {host: server, counter: Udp.RcvbufErrors, document: server, claim: lost, tolerance: 0%}
`)
}

func TestRunPause(t *testing.T) {
	needNamespaces(t)
	play(t, `
name: a client that is paused
topology: pair
cc: cubic
client: fullbore tick
pause: [{who: client, at: 100ms, for: 300ms}]
expect: {exit: 0, json: [gap_s >= 0.25]}
`)
	got, err := lab.Run(testContext(t), parse(t, `
name: a pause that does not come
topology: pair
cc: cubic
client: sh -c exit
pause: [{who: client, at: 1min, for: 300ms}]
expect: {exit: 0}
`), options(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"the client ended before the pause of the client at 1m0s"}
	if got.Verdict == lab.Wrong && !cmp.Equal(want, got.Reasons) || got.Right() {
		t.Errorf("%s: %q, want %q", got.Verdict, got.Reasons, want)
	}
}

// TestRunUnfit: a play does not count when the machine lost datagrams in a socket, or when
// the client says that it could not do its part.
func TestRunUnfit(t *testing.T) {
	needNamespaces(t)
	for _, tt := range []struct{ name, fit, nft, want string }{
		{"a socket without room", "", "[{host: server, counter: arrived, claim: sent}]", " datagrams found no room in a socket of the client"},
		{"what the client says", "fit: [sent == 1]", "[]", "sent == 1: found 3000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := lab.Run(testContext(t), parse(t, `
name: unfit
topology: pair
cc: cubic
hosts:
  server:
    nft: |
      add table inet t
      add chain inet t i { type filter hook input priority 0; }
      add rule inet t i udp dport 5201 counter comment "arrived"
client: fullbore deaf 3000
`+tt.fit+`
expect: {exit: 0, nft: `+tt.nft+`}
`), options(t))
			if err != nil {
				t.Fatal(err)
			}
			if !got.Unfit() || len(got.Plays) != 1+lab.MaxReplays {
				t.Fatalf("%s after %d plays: %q", got.Verdict, len(got.Plays), got.Reasons)
			}
			for _, p := range got.Plays {
				if !slices.ContainsFunc(p.Void, func(s string) bool { return strings.Contains(s, tt.want) }) {
					t.Errorf("void %q, want %q", p.Void, tt.want)
				}
			}
		})
	}
}
