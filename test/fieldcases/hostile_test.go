//go:build linux

package fieldcases

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // iperf3's padding
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/lab"
)

// keys is what a login needs: the server's files and the client's.
type keys struct {
	private, public, users string
	key                    *rsa.PrivateKey
}

const (
	user     = "u"
	password = "pw-not-to-be-logged"
)

func newKeys(b *bench) keys {
	b.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	b.check(err)
	dir := b.TempDir()
	k := keys{filepath.Join(dir, "private.pem"), filepath.Join(dir, "public.pem"), filepath.Join(dir, "users"), key}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	b.check(err)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	b.check(err)
	hash := sha256.Sum256([]byte("{" + user + "}" + password))
	b.check(os.WriteFile(k.private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	b.check(os.WriteFile(k.public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600))
	b.check(os.WriteFile(k.users, []byte("# who may\n"+user+","+hex.EncodeToString(hash[:])+"\n"), 0o600))
	return k
}

// token is a login as openssl would make it, at a time of our choice.
func (k keys) token(b *bench, off time.Duration) string {
	b.Helper()
	plain := fmt.Sprintf("user: %s\npwd:  %s\nts:   %d", user, password, time.Now().Add(off).Unix())
	sealed, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, &k.key.PublicKey, []byte(plain), nil)
	b.check(err)
	return base64.StdEncoding.EncodeToString(sealed)
}

// login plays a client that logs in with a clock that is off. It says whether the
// server takes it.
func (k keys) login(b *bench, off time.Duration) bool {
	b.Helper()
	w := b.hello("")
	defer w.Close()
	b.check(w.sendDoc(params(`"authtoken":"` + k.token(b, off) + `"`)))
	state, err := w.state()
	b.check(err)
	if state == createStreams {
		return true
	}
	rest, err := w.rest(5 * time.Second)
	b.check(err)
	if code, ok := refused(append([]byte{state}, rest...)); !ok || code != 142 {
		b.Errorf("%v off: answer %x %x", off, state, rest)
	}
	return false
}

var difference = regexp.MustCompile(`time difference -?30 ?s`)

// F50: clocks differ, and the login says so.
func TestLoginClock(t *testing.T) {
	t.Parallel()
	b := pair(t)
	k := newKeys(b)
	auth := []string{"--rsa-private-key-path", k.private, "--authorized-users-path", k.users}
	srv := b.serve(auth...)
	for off, want := range map[time.Duration]bool{0: true, 5 * time.Second: true, -5 * time.Second: true, 30 * time.Second: false, -30 * time.Second: false} {
		before := len(difference.FindAllString(srv.Stderr(), -1))
		if got := k.login(b, off); got != want {
			t.Errorf("clock off by %v: accepted = %v", off, got)
		}
		if !want {
			b.until("the log says why", func() bool { return len(difference.FindAllString(srv.Stderr(), -1)) > before || ended(srv) })
		}
	}

	// The real client: right, and with a wrong password.
	run := func(password string) lab.Result {
		p := b.startCmd(b.net.Near, lab.Command{
			Args: []string{program, "iperf3", "-c", b.addr, "-p", port, "-n", "64K", "--username", user, "--rsa-public-key-path", k.public},
			Env:  []string{"IPERF3_PASSWORD=" + password},
		})
		code, err := p.Wait(b.ctx(time.Minute))
		b.check(err)
		return lab.Result{Code: code, Stdout: p.Stdout(), Stderr: p.Stderr()}
	}
	if r := run(password); r.Code != 0 {
		t.Errorf("login: exit %d: %s", r.Code, r.Stderr)
	}
	r := run("wrong")
	if r.Code != 1 {
		t.Errorf("wrong password: exit %d", r.Code)
	}
	b.says(r.Stderr, "authorization failed")
	b.fails([]string{"authorization failed"}, "-n", "64K") // no login at all
	if log := srv.Stdout() + srv.Stderr(); strings.Contains(log, password) || strings.Contains(log, "wrong") && strings.Contains(log, "pwd") {
		t.Errorf("the log holds a password: %s", log)
	}
	if ended(srv) {
		t.Fatal("the server is gone")
	}
	b.check(srv.Signal(os.Interrupt))
	<-srv.Done()

	srv = b.serve(append(auth, "--time-skew-threshold", "60")...)
	if !k.login(b, 30*time.Second) {
		t.Errorf("threshold 60: clock off by 30 s was refused: %s", srv.Stderr())
	}
}

// promptly is a test that must be served at once.
func (b *bench) promptly(limit time.Duration) {
	b.Helper()
	begin := time.Now()
	b.good("-n", "64K")
	if took := time.Since(begin); took > limit {
		b.Errorf("the next test took %v, want %v", took, limit)
	}
}

// F51: parameters of the wrong JSON type.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	for i, c := range []struct{ doc, field string }{
		{params(`"congestion":{"a":1}`), "congestion"},
		{params(`"title":5,"extra_data":[1]`), "title"},
		{params(`"extra_data":[1]`), "extra_data"},
		{strings.Replace(params(""), "131072", `"x"`, 1), "len"},
		{params(`"authtoken":7`), "authtoken"},
		{strings.Replace(params(""), `"parallel":1`, `"parallel":[1]`, 1), "parallel"},
		{"[1,2]", ""},
		{"", ""},
		{`"text"`, ""},
		{"\xff\xfe", ""},
	} {
		// The log says little about one visitor in a short time: each has its own address.
		from := fmt.Sprintf("10.77.0.%d", 100+i)
		b.check(b.net.Near.AddAddress(lab.PairNear, from+"/24"))
		begin := len(srv.Stderr())
		w := b.hello(from)
		b.check(w.sendDoc(c.doc))
		answer, err := w.rest(5 * time.Second)
		if err != nil {
			t.Errorf("%q: %v", c.doc, err)
		}
		if code, ok := refused(answer); len(answer) > 0 && (!ok || code == 0) {
			t.Errorf("%q: answer %x, want an error or nothing", c.doc, answer)
		}
		b.until("the log has a line", func() bool { return strings.Contains(srv.Stderr()[begin:], "\n") || ended(srv) })
		b.says(srv.Stderr()[begin:], c.field, from)
		if ended(srv) {
			t.Fatalf("%q: the server is gone", c.doc)
		}
		b.promptly(time.Second)
	}
}

// sized is a valid parameter message of n bytes.
func sized(n int) string {
	empty := len(params(`"title":""`))
	return params(`"title":"` + strings.Repeat("t", n-empty) + `"`)
}

// peak is the most memory that a process ever held, bytes.
func peak(b *bench, pid int) float64 {
	b.Helper()
	return memory(b, pid, "VmHWM:")
}

// F52: length bombs, deep nesting, and bytes that drip.
func TestLengthBombs(t *testing.T) {
	t.Parallel()
	b := pair(t)
	srv := b.serve()
	b.promptly(time.Second)
	before := rss(b, srv.Pid())

	cookie := newCookie()
	message := func(doc string) string {
		return cookie + string([]byte{0, 0, byte(len(doc) >> 8), byte(len(doc))}) + doc
	}
	begin := time.Now()
	var bombs []wire
	for range 5 {
		for _, payload := range []string{
			cookie + "\xff\xff\xff\xff",
			cookie + "\x7f\xff\xff\xff" + strings.Repeat("x", 1000),
			message(strings.Repeat("[", 4000)),
			message(strings.Repeat(`{"a":`, 5000)),
		} {
			bombs = append(bombs, b.visit(payload))
		}
	}
	drips := []wire{b.visit(cookie[:1]), b.visit(cookie + "\x00\x00")}
	b.promptly(2 * time.Second)
	for i, w := range bombs {
		if _, err := w.rest(time.Until(begin.Add(11 * time.Second))); err != nil {
			t.Errorf("bomb %d: %v", i, err)
		}
	}

	// One byte every 5 s: what is sent does not buy time.
	for _, at := range []time.Duration{5 * time.Second, 10 * time.Second} {
		b.until("the next byte is due", func() bool { return time.Since(begin) >= at })
		for _, w := range drips {
			_, _ = w.Write([]byte{0}) // it may be closed by now
		}
		b.promptly(2 * time.Second)
	}
	for i, w := range drips {
		if _, err := w.rest(time.Until(begin.Add(13 * time.Second))); err != nil {
			t.Errorf("drip %d: %v", i, err)
		}
	}
	if grown := peak(b, srv.Pid()) - before; grown > 20e6 {
		t.Errorf("memory grew by %.1f MB", grown/1e6)
	}

	// The limit itself.
	w := b.hello("")
	b.check(w.sendDoc(sized(4096)))
	b.check(w.expect(createStreams))
	b.check(w.Close())
	b.until("the server is free", func() bool { return b.client("-n", "64K").Code == 0 || ended(srv) })
	begun := len(srv.Stderr())
	b.check(b.net.Near.AddAddress(lab.PairNear, ghost+"/24")) // the log has heard enough of the first
	w = b.hello(ghost)
	b.check(w.sendDoc(sized(8193)))
	answer, err := w.rest(10 * time.Second)
	b.check(err)
	if code, ok := refused(answer); !ok || code != 114 {
		t.Errorf("8193 bytes: answer %x", answer)
	}
	b.until("the log says why", func() bool { return strings.Contains(srv.Stderr()[begun:], "8193") || ended(srv) })
	if ended(srv) {
		t.Error("the server is gone")
	}
}

var (
	oneMegabit  = regexp.MustCompile(`\b1(\.0+)? ?M|\b1000000\b`)
	fiveMegabit = regexp.MustCompile(`\b5(\.0+)? ?M|\b5000000\b`)
	fiveSeconds = regexp.MustCompile(`\b5 ?s`)
	twentySecs  = regexp.MustCompile(`\b20 ?s`)
)

// F53: limits of the server, said at both ends.
func TestServerLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		server         []string
		over           [][]string // refused
		limit, request *regexp.Regexp
		under          []string
	}{
		{
			"rate",
			[]string{"--server-bitrate-limit", "1M"},
			[][]string{{"-b", "5M", "-t", "3"}, {"-b", "5M", "-t", "3", "-R"}, {"-b", "2.5M", "-P", "2", "-t", "3"}, {"-b", "2.5M", "--bidir", "-t", "3"}, {"-u", "-b", "5M", "-t", "3"}, {"-u", "-R", "-b", "5M", "-t", "3"}},
			oneMegabit, fiveMegabit,
			[]string{"-b", "500K", "-t", "2"},
		},
		{
			"time",
			[]string{"--server-max-duration", "5"},
			[][]string{{"-b", "1M", "-t", "20"}, {"-b", "1M", "-t", "18", "-O", "2"}, {"-u", "-b", "1M", "-t", "20"}},
			fiveSeconds, twentySecs,
			[]string{"-b", "1M", "-t", "1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := pair(t)
			srv := b.serve(append(c.server, "-J")...)
			tests := 0
			for _, args := range c.over {
				begin := time.Now()
				r := b.client(append(args, "-J")...)
				d := b.parse(r.Stdout)
				if took := time.Since(begin); r.Code != 1 || took > 2*time.Second || !d.has("error") {
					t.Fatalf("%v: exit %d after %v, error %v", args, r.Code, took, d.v["error"])
				}
				tests++
				b.until("the server has printed its document", func() bool { return len(b.documents(srv.Stdout())) >= tests || ended(srv) })
				for who, x := range map[string]doc{"client": d, "server": b.documents(srv.Stdout())[tests-1]} {
					text, _ := x.v["error"].(string)
					if !c.limit.MatchString(text) || !c.request.MatchString(text) {
						t.Errorf("%v: the %s does not name limit and request: %q", args, who, text)
					}
					if n := len(x.list("intervals")); n != 0 {
						t.Errorf("%v: the %s has %d intervals", args, who, n)
					}
				}
			}
			text := b.client(c.over[0]...)
			tests++
			if text.Code != 1 || !c.limit.MatchString(text.Stderr) || !c.request.MatchString(text.Stderr) {
				t.Errorf("text: exit %d, %q", text.Code, text.Stderr)
			}
			d := b.json(c.under...)
			tests++
			want := map[string]float64{"rate": 500e3, "time": 1e6}[c.name]
			b.within("bit/s below the limit", d.num("end.sum_received.bits_per_second"), 0.85*want, 1.3*want)
			b.until("the server has printed its document", func() bool { return len(b.documents(srv.Stdout())) >= tests || ended(srv) })
			docs := b.documents(srv.Stdout())
			if len(docs) != tests {
				t.Errorf("the server printed %d documents for %d tests", len(docs), tests)
			}
			if last := docs[len(docs)-1]; last.has("error") || last.num("end.sum_received.bytes") == 0 {
				t.Errorf("the run below the limit was harmed: %v", last.v["error"])
			}
		})
	}
}
