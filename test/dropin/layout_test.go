//go:build linux

package dropin

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
)

// TestRecordings runs every recorded case again: none is left out.
func TestRecordings(t *testing.T) {
	dev := &deviations{all: goldentest.ReadDeviations(t)}
	t.Cleanup(func() { // when all of them are over
		if flag.Lookup("test.run").Value.String() == "" {
			dev.all.CheckLive(t, "iperf3")
		}
	})
	for _, release := range []string{"3.21", "3.12"} {
		t.Run(release+"/errors", func(t *testing.T) {
			t.Parallel()
			failures(t, dev, release)
		})
	}
	for _, r := range recordings(t) {
		t.Run(r.release+"/"+r.name, func(t *testing.T) {
			t.Parallel()
			play(t, dev, r)
		})
	}
}

// play runs one case the way that it needs.
func play(t *testing.T, dev *deviations, r *recording) {
	run := plain
	if special, ok := specials()[r.name]; ok {
		run = special
	}
	run(t, dev, r)
}

// serverWords are the servers of cases whose server was not recorded, where it matters.
var serverWords = map[string][]string{
	"gso_json_clientJ_serverJ":    {"-s", "-1", "-J"},
	"gso_json_clientJ_servertext": {"-s", "-1"},
	"gso_clienttext_serverJ":      {"-s", "-1", "-J"},
	"json_stream_gso":             {"-s", "-1", "-J"},
	"json_stream_gso_text":        {"-s", "-1"},
}

func (r *recording) serverCommand() *command {
	if r.server != nil {
		return r.server
	}
	if words, ok := serverWords[r.name]; ok {
		return &command{words: words}
	}
	return &command{words: []string{"-s", "-1"}}
}

// plain runs a server and a client to their ends.
func plain(t *testing.T, dev *deviations, r *recording) {
	plainOn(newBench(t, r.release), dev, r)
}

func plainOn(b *bench, dev *deviations, r *recording) {
	b.files()
	sc := r.serverCommand()
	server := b.serve(sc.env, sc.words...)
	client := b.client(r.client.env, r.client.words...)
	b.compare(dev, r, "client", client)
	b.compare(dev, r, "server", b.wait(server))
}

// compare compares an end with its recording if there is one; else it must have ended well.
func (b *bench) compare(dev *deviations, r *recording, role string, got outcome) {
	b.Helper()
	cmd := r.client
	if role == "server" {
		cmd = r.server
	}
	if cmd == nil {
		if got.exit != 0 || got.stderr != "" {
			b.Errorf("%s: %s", role, got)
		}
		return
	}
	comparison{bench: b, dev: dev, name: r.name + "." + role}.end(cmd.exit, got)
}

// files makes the files that command lines name.
func (b *bench) files() {
	b.Helper()
	b.check(os.WriteFile(filepath.Join(b.dir, "data.bin"), bytes.Repeat([]byte("0123456789"), 300_000), 0o600))
	login(b)
}

func (b *bench) read(file string) string {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, file))
	b.check(err)
	return string(data)
}

// specials are the cases that need more than a server and a client.
func specials() map[string]func(*testing.T, *deviations, *recording) {
	return map[string]func(*testing.T, *deviations, *recording){
		"version":                      version,
		"tcp_loss":                     onLossyPath,
		"udp_loss":                     onLossyPath,
		"udp_loss_json":                onLossyPath,
		"udp_loss_O1":                  onLossyPath,
		"udp_loss_99":                  nearlyAllLost,
		"lo_udp_V_v4":                  onLoopback,
		"tcp_F":                        fileTransfer,
		"logfile":                      logfile,
		"daemon":                       daemon,
		"server_two_tests":             twoTests,
		"server_two_tests_json":        twoTests,
		"x_client321_server312_json":   mixed,
		"limit_midtest":                limitInTest,
		"idle_timeout_oneoff":          alone,
		"err_server_port_in_use_probe": alone,
		"err_port_in_use":              portTaken,
		"err_port_in_use_json":         portTaken,
		"pidfile_running":              pidfileTaken,
		"auth_nopassword_notty":        noServer,
		"auth_bad":                     badLogin,
		"auth_bad_json":                badLogin,
		"auth_none":                    badLogin,
		"busy":                         busy,
		"busy_json":                    busy,
		"F_missing_with_server":        neverConnects,
		"sctp":                         neverConnects,
		"garbage_client":               garbage,
		"not_iperf3_server":            notIperf3,
		"sigint_client":                signalled,
		"sigint_client_json":           signalled,
		"sigint_client_udp":            signalled,
		"sigint_client_jsonstream":     signalled,
		"sigint_server":                signalled,
		"sigint_server_jsonstream":     signalled,
		"sigterm_server_json":          signalled,
		"sigkill_client_json_server":   signalled,
		"sigkill_server":               signalled,
		"sigkill_server_json":          signalled,
		"sigkill_server_R":             signalled,
		"t0_sigint":                    signalled,
		"server_idle_sigint":           idleSignalled,
		"server_idle_sigterm_json":     idleSignalled,
		"rcv_timeout_R":                dataStops,
		"rcv_timeout_server":           dataStops,
	}
}

func version(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	b.compare(dev, r, "client", b.client(nil, r.client.words...))
}

func onLossyPath(t *testing.T, dev *deviations, r *recording) {
	plainOn(ownBench(t, r.release, lossy), dev, r)
}

// nearlyAllLost: a firewall at the server drops all but two large datagrams a second.
func nearlyAllLost(t *testing.T, dev *deviations, r *recording) {
	b := ownBench(t, r.release, gigabit)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	b.check(b.net.Far.NFT(ctx, "table inet t { chain c { type filter hook input priority 0; meta l4proto udp udp length > 200 limit rate over 2/second drop; }; }"))
	plainOn(b, dev, r)
}

// onLoopback: both ends are one host.
func onLoopback(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	server := b.serve(nil, r.serverCommand().words...)
	b.compare(dev, r, "client", b.wait(b.start(b.net.Far, nil, r.client.words...)))
	b.compare(dev, r, "server", b.wait(server))
}

// fileTransfer also compares the files.
func fileTransfer(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	plainOn(b, dev, r)
	if b.read("data.bin") != b.read("recv.bin") {
		t.Error("what arrived is not what was sent")
	}
}

// logfile compares what landed in the files, and that nothing of it was printed.
func logfile(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	plainOn(b, dev, r)
	for _, f := range []string{"logfile.cl.log", "logfile.sv.log"} {
		c := comparison{bench: b, dev: dev, name: f}
		c.text(c.golden(".contents.txt"), b.read(strings.TrimPrefix(f, "logfile.")))
	}
}

// daemon: the server goes into the background, writes its pid and its log, and takes
// the pid file away when its test is over.
func daemon(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	b.compare(dev, r, "server", b.wait(b.start(b.net.Far, nil, r.server.words...)))
	b.until("the daemon listens", b.listening)
	pid := b.read("pid")
	if strings.Trim(pid, "0123456789") != "" || pid == "" {
		t.Errorf("pid file: %q", pid)
	}
	if got := b.client(nil, "-c", far4, "-t", "1", "-b", "10M"); got.exit != 0 {
		t.Errorf("client: %s", got)
	}
	b.until("the daemon is gone", func() bool {
		_, err := os.Stat("/proc/" + pid)
		return os.IsNotExist(err)
	})
	if _, err := os.Stat(filepath.Join(b.dir, "pid")); !os.IsNotExist(err) {
		t.Errorf("pid file: %v", err)
	}
	c := comparison{bench: b, dev: dev, name: "daemon"}
	c.text(c.golden(".logfile.contents.txt"), b.read("dm.log"))
}

// twoTests: a server that stays, two clients, then an interrupt.
func twoTests(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, r.release)
	server := b.serve(nil, r.server.words...)
	for range 2 {
		if got := b.client(nil, "-c", far4, "-t", "1", "-b", "10M"); got.exit != 0 {
			t.Errorf("client: %s", got)
		}
	}
	b.until("the second test is over", func() bool {
		out := server.Stdout()
		if r.server.has("-J") {
			return strings.Count(out, "\n}\n") == 2
		}
		return strings.Contains(out, "(test #3)")
	})
	b.signal(server, os.Interrupt)
	b.compare(dev, r, "server", b.wait(server))
}

// mixed: a client of 3.21 and a server of 3.12.
func mixed(t *testing.T, dev *deviations, r *recording) {
	b := newBench(t, "3.12")
	server := b.serve(nil, "-s", "-1")
	b.release = r.release
	b.compare(dev, r, "client", b.client(nil, r.client.words...))
	if got := b.wait(server); got.exit != 0 || got.stderr != "" {
		t.Errorf("server: %s", got)
	}
}
