//go:build linux

package dropin

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/lab"
	"github.com/fullbore-net/fullbore/internal/render/cjson"
)

// at is a value in a document: "start.test_start.tos".
func at(t *testing.T, doc any, path string) any {
	t.Helper()
	for key := range strings.SplitSeq(path, ".") {
		o, ok := doc.(*cjson.Object)
		if !ok {
			t.Errorf("document has no %s", path)
			return nil
		}
		doc = o.Get(key)
	}
	return doc
}

// number is a number in a document, 0 when there is none.
func number(t *testing.T, doc any, path string) float64 {
	t.Helper()
	n, ok := at(t, doc, path).(float64)
	if !ok {
		t.Errorf("%s is %v, not a number", path, at(t, doc, path))
	}
	return n
}

// one reads the only document of an end.
func one(t *testing.T, who string, got outcome) any {
	t.Helper()
	docs, err := readDocuments(got.stdout)
	if err != nil || len(docs) != 1 {
		t.Fatalf("%s: %d documents, %v\n%s", who, len(docs), err, got)
	}
	return docs[0]
}

// TestUDPOptions: what an option does to a UDP test, as both ends' documents say it.
func TestUDPOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words string
		want  map[string]float64 // at both ends
	}{
		{"-k 5", map[string]float64{"start.test_start.target_bitrate": 1 << 20, "start.test_start.blksize": 1448, "start.test_start.blocks": 5}},
		{"-k 5 -6", map[string]float64{"start.test_start.blksize": 1428}},
		{"-n 100K -b 0", map[string]float64{"start.test_start.target_bitrate": 0, "start.test_start.bytes": 102400}},
		{"-k 40 -b 2M/10", map[string]float64{"start.test_start.target_bitrate": 2e6}},
		{"-k 20 -l 16", map[string]float64{"start.test_start.blksize": 16}},
		{"-k 20 -l 1448 -b 5M -P 3", map[string]float64{"start.test_start.num_streams": 3}},
		{"-k 20 --udp-counters-64bit", nil},
		{"-k 20 --udp-counters-64bit -l 16 --bidir -b 100K", map[string]float64{"start.test_start.bidir": 1}},
		{"-k 20 --repeating-payload", nil},
		{"-k 20 --dont-fragment -l 1472", map[string]float64{"start.test_start.blksize": 1472}},
		{"-n 100K --gsro -b 100M", map[string]float64{"start.test_start.gso": 1, "start.test_start.gro": 1}},
		{"-n 100K --gsro -b 100M -R", map[string]float64{"start.test_start.gso": 1, "start.test_start.reverse": 1}},
		{"-k 20 -Z", nil},
		{"-k 20 -Z -R", nil},
		{"-k 20 --skip-rx-copy", nil},
		{"-k 20 --skip-rx-copy -R", nil},
		{"-k 20 -N -M 1000 -C reno", nil}, // these are TCP's
		{"-k 20 -w 256K", map[string]float64{"start.sock_bufsize": 262144, "start.sndbuf_actual": 524288, "start.rcvbuf_actual": 524288}},
		{"-k 20 -S 0x20", map[string]float64{"start.test_start.tos": 32}},
		{"-k 20 --fq-rate 10M", map[string]float64{"start.test_start.fqrate": 10e6}},
		{"-t 1 -O 1 -b 500K -i 0.5", map[string]float64{"start.test_start.omit": 1, "start.test_start.duration": 1}},
		{"-t 1 -R -P 4 -b 500K", map[string]float64{"start.test_start.reverse": 1, "start.test_start.num_streams": 4}},
	} {
		t.Run(c.words, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "3.21")
			server := b.serve(nil, "-s", "-1", "-J")
			host := far4
			if strings.Contains(c.words, "-6") {
				host = far6
			}
			client := b.client(nil, slices.Concat([]string{"-c", host, "-u", "-J"}, strings.Fields(c.words))...)
			ends := map[string]outcome{"client": client, "server": b.wait(server)}
			for who, got := range ends {
				if got.exit != 0 || got.stderr != "" && !strings.Contains(c.words, "1472") {
					t.Errorf("%s: exit %d, stderr %q", who, got.exit, got.stderr)
				}
				doc := one(t, who, got)
				if p := at(t, doc, "start.test_start.protocol"); p != "UDP" {
					t.Errorf("%s: protocol %v", who, p)
				}
				for path, want := range c.want {
					if who == "server" && path == "start.test_start.fqrate" {
						continue // of the sender
					}
					if n := number(t, doc, path); n != want {
						t.Errorf("%s: %s is %v, want %v", who, path, n, want)
					}
				}
				if who == "client" {
					sent, received := number(t, doc, "end.sum_sent.packets"), number(t, doc, "end.sum_received.packets")
					same := sent == received
					if strings.Contains(c.words, "-O") { // each end omits by its own clock
						same = math.Abs(sent-received) < 0.5*sent
					}
					if sent == 0 || !same || number(t, doc, "end.sum.lost_packets") != 0 {
						t.Errorf("%v datagrams were sent, %v arrived", sent, received)
					}
				}
			}
		})
	}
}

// TestUDPDefaultRate: a rate that nobody asked for is 1 Mibit/s (spec iperf3-cli §2).
func TestUDPDefaultRate(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.21")
	b.serve(nil, "-s", "-1")
	got := b.client(nil, "-c", far4, "-u", "-t", "2", "-J")
	doc := one(t, "client", got)
	if bps := number(t, doc, "start.target_bitrate"); bps != 1<<20 {
		t.Errorf("%v bit/s are asked for", bps)
	}
	// A busy machine may keep the sender from it, never above it.
	if bps := number(t, doc, "end.sum_sent.bits_per_second"); bps == 0 || bps > 1.1e6 {
		t.Errorf("%v bit/s", bps)
	}
}

// TestUDPServerOutput: --get-server-output brings the server's half.
func TestUDPServerOutput(t *testing.T) {
	t.Parallel()
	for _, reverse := range []bool{false, true} {
		b := newBench(t, "3.21")
		b.serve(nil, "-s", "-1")
		words := []string{"-c", far4, "-u", "-k", "20", "-b", "500K", "--get-server-output"}
		head, row := "\nServer output:\nAccepted connection from "+near4+", port ", "Jitter    Lost/Total Datagrams\n[  5]   0.00-"
		if reverse {
			words, row = append(words, "-R"), "Total Datagrams\n[  5]   0.00-"
		}
		got := b.client(nil, words...)
		if got.exit != 0 || got.stderr != "" {
			t.Errorf("%s", got)
		}
		_, output, _ := strings.Cut(got.stdout, head)
		b.says(output, row, "\n\n\niperf Done.\n")
	}
}

// TestUDPClientPorts is TestClientPorts over UDP.
func TestUDPClientPorts(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.21")
	server := b.serve(nil, "-s", "-1")
	got := b.client(nil, "-c", far4, "-u", "-n", "32K", "-P", "2", "--bidir", "-B", lab.NearIPv4, "--cport", "6001")
	if got.exit != 0 {
		t.Fatalf("%s", got)
	}
	for i, socket := range []int{5, 7, 9, 11} {
		b.says(got.stdout, fmt.Sprintf("\n[%3d] local %s port %d connected to %s port 5201\n", socket, lab.NearIPv4, 6001+i, far4))
	}
	out := b.wait(server)
	b.says(out.stdout, "Accepted connection from "+lab.NearIPv4+", port ")
	for i, socket := range []int{5, 6, 9, 11} {
		b.says(out.stdout, fmt.Sprintf("\n[%3d] local %s port 5201 connected to %s port %d\n", socket, far4, lab.NearIPv4, 6001+i))
	}
}

// TestFileServerRefusesUDP: a server that takes a file takes no UDP test.
func TestFileServerRefusesUDP(t *testing.T) {
	t.Parallel()
	b := newBench(t, "3.21")
	b.files()
	server := b.serve(nil, "-s", "-1", "-F", filepath.Join(b.dir, "out"))
	got := b.client(nil, "-c", far4, "-u", "-t", "1")
	if got.exit != 1 {
		t.Errorf("%s", got)
	}
	b.says(got.stderr, "cannot transfer file using UDP")
	if out := b.wait(server); !strings.Contains(out.stderr, "cannot transfer file using UDP") {
		t.Errorf("server: %s", out)
	}
}

// TestUDPWarnings: iperf3's words about sizes, once, on stderr, in every form.
func TestUDPWarnings(t *testing.T) {
	t.Parallel()
	const over = "warning: UDP block size 8192 exceeds TCP MSS 1448, may result in fragmentation / drops\n"
	for _, form := range [][]string{nil, {"-J"}, {"--json-stream"}, {"--logfile", "log"}} {
		b := newBench(t, "3.21")
		b.serve(nil, "-s", "-1")
		got := b.client(nil, append([]string{"-c", far4, "-u", "-l", "8192", "-k", "3"}, form...)...)
		if got.exit != 0 || got.stderr != over {
			t.Errorf("%v: %s", form, got)
		}
	}
	b := newBench(t, "3.21")
	b.serve(nil, "-s", "-1")
	got := b.client(nil, "-c", far4, "-u", "-l", "30000", "-k", "3", "-w", "4K")
	b.says(got.stderr, "warning: UDP block size 30000 exceeds TCP MSS 1448", "warning: Block size 30000 > sending socket buffer size ", "warning: Block size 30000 > receiving socket buffer size ")
}

// TestUDPVerbose: a datagram size that was given is not announced as derived.
func TestUDPVerbose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		said  bool
	}{{nil, true}, {[]string{"-l", "1448"}, false}, {[]string{"-l", "1000"}, false}} {
		b := newBench(t, "3.21")
		b.serve(nil, "-s", "-1")
		got := b.client(nil, append([]string{"-c", far4, "-u", "-V", "-k", "3"}, c.words...)...)
		if got.exit != 0 || strings.Contains(got.stdout, "Setting UDP block size to 1448\n") != c.said {
			t.Errorf("%v: %s", c.words, got)
		}
	}
}

// TestUDPDataStops: who receives datagrams gives up when none come for so long, and says
// so, while the control connection lives.
func TestUDPDataStops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		client, server []string
		reverse        bool
	}{
		{"client", []string{"-R", "--rcv-timeout", "1500"}, nil, true},
		{"server", nil, []string{"--rcv-timeout", "1500"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := ownBench(t, "3.21", gigabit)
			server := b.serve(nil, append([]string{"-s", "-1"}, c.server...)...)
			client := b.start(b.net.Near, nil, append([]string{"-c", far4, "-u", "-t", "60", "-b", "5M"}, c.client...)...)
			from, to := b.net.Near, b.net.Far
			if c.reverse {
				from, to = to, from
			}
			b.flowed(client, from, 1_000_000)
			b.check(to.NFT(t.Context(), "table inet t { chain c { type filter hook input priority 0; udp length > 200 drop; }; }"))
			got, out := b.wait(client), b.wait(server)
			who := out
			if c.reverse {
				who = got
			}
			if got.exit != 1 {
				t.Errorf("client: %s", got)
			}
			b.says(who.stderr, "idle timeout for receiving data", "1.5s")
			b.says(got.stdout, "\n[  5]   0.00-1.0")
		})
	}
}

// TestUDPLimitInTest: a test that asked for no rate and is faster than the server's limit
// is ended.
func TestUDPLimitInTest(t *testing.T) {
	t.Parallel()
	for _, reverse := range []bool{false, true} {
		b := newBench(t, "3.21")
		server := b.serve(nil, "-s", "-1", "--server-bitrate-limit", "5M/1")
		words := []string{"-c", far4, "-u", "-b", "0", "-l", "1400", "-t", "30"}
		if reverse {
			words = append(words, "-R")
		}
		got := b.client(nil, words...)
		if got.exit != 1 {
			t.Errorf("reverse %v: %s", reverse, got)
		}
		b.says(got.stderr, "total required bandwidth is larger than server limit")
		b.says(b.wait(server).stderr, "allowed are 5000000 bit/s")
	}
}
