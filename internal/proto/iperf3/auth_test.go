package iperf3

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/result"
)

// The tokens that real clients of several releases made open with the recordings' key.
func TestRecordedTokens(t *testing.T) {
	key, _ := testKey(t)
	n := 0
	for _, r := range recordings(t) {
		p := r.params(t)
		if _, has := p.present["authtoken"]; !has {
			continue
		}
		n++
		tok, err := openToken(key, p.AuthToken, true)
		if p.AuthToken == "" {
			if err == nil || !strings.Contains(err.Error(), "3.17") {
				t.Errorf("%s: empty token: %v", r.name, err)
			}
			continue
		}
		pw := "rossi"
		if strings.Contains(r.name, "badpw") {
			pw = "wrong"
		}
		if err != nil || tok.user != "mario" || tok.password != pw || tok.at.Year() < 2026 {
			t.Errorf("%s: %+v, %v", r.name, tok, err)
		}
		// Padding: PKCS#1 up to 3.16, OAEP from 3.17 (spec §12).
		_, err = openToken(key, p.AuthToken, false)
		if old := strings.HasPrefix(r.Meta.Client, "3.12"); (err != nil) != old {
			t.Errorf("%s: without the old padding: %v", r.name, err)
		}
	}
	if n < 8 {
		t.Errorf("%d recordings with tokens", n)
	}
}

func TestTokenRoundTrip(t *testing.T) {
	key, _ := testKey(t)
	pub, err := os.ReadFile("testdata/transcripts/auth-keys/throwaway-test-public.pem")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1796022439, 0)
	for _, pkcs1 := range []bool{false, true} {
		tok, err := NewToken(plan.Auth{Username: "ü", Password: `p"w{}`, PublicKey: pub, PKCS1: pkcs1}, at)
		if err != nil || len(tok) != 344 {
			t.Fatalf("%d characters, %v", len(tok), err)
		}
		got, err := openToken(key, tok, pkcs1)
		if err != nil || got.user != "ü" || got.password != `p"w{}` || !got.at.Equal(at) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	for name, a := range map[string]plan.Auth{
		"blank in the name":     {Username: "a b", Password: "x", PublicKey: pub},
		"blank in the password": {Username: "a", Password: "x y", PublicKey: pub},
		"no key":                {Username: "a", Password: "x"},
		"no PEM":                {Username: "a", Password: "x", PublicKey: []byte("hello")},
		"too long":              {Username: "a", Password: strings.Repeat("x", 300), PublicKey: pub},
	} {
		if tok, err := NewToken(a, at); err == nil {
			t.Errorf("%s: token %q", name, tok)
		} else if strings.Contains(err.Error(), strings.Repeat("x", 300)) {
			t.Errorf("%s: the password is in the error", name)
		}
	}
}

func TestKeys(t *testing.T) {
	key, pkcs1 := testKey(t)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pemOf := func(typ string, b []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: b}) }
	for name, tc := range map[string]struct {
		pem  []byte
		want string
	}{
		"PKCS#1":    {pkcs1, ""},
		"PKCS#8":    {pemOf("PRIVATE KEY", pkcs8), ""},
		"encrypted": {pemOf("ENCRYPTED PRIVATE KEY", pkcs8), "encrypted"},
		"no PEM":    {[]byte("x"), "PEM"},
		"no key":    {pemOf("PRIVATE KEY", []byte("x")), "cannot be read"},
	} {
		got, err := parsePrivateKey(tc.pem)
		if tc.want == "" && (err != nil || !got.Equal(key)) || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	pub := pemOf("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&key.PublicKey))
	if k, err := parsePublicKey(pub); err != nil || !k.Equal(&key.PublicKey) {
		t.Errorf("PKCS#1 public key: %v", err)
	}
}

func TestCheckUser(t *testing.T) {
	hash := func(u, p string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte("{"+u+"}"+p))) }
	file := "# comment\r\n\n" + "no comma\n" + "mario," + hash("mario", "rossi") + "\r\n" + "  luigi , x\n" +
		strings.Repeat("z", 2000) + "," + hash(strings.Repeat("z", 2000), "p") + "\n" +
		"peach," + strings.ToUpper(hash("peach", "p")) + ",more,fields\n" + "last," + hash("last", "p")
	for _, tc := range []struct {
		user, pw string
		want     bool
	}{
		{"mario", "rossi", true},
		{"mario", "wrong", false},
		{"Mario", "rossi", false},
		{"", "", false},
		{"nobody", "x", false},
		{"peach", "p", true},
		{"last", "p", true},
		{strings.Repeat("z", 2000), "p", false},
		{"# comment", "", false},
	} {
		got, err := checkUser(strings.NewReader(file), tc.user, tc.pw)
		if err != nil || got != tc.want {
			t.Errorf("%.10q/%q: %v %v", tc.user, tc.pw, got, err)
		}
	}
	if _, err := checkUser(brokenReader{}, "a", "b"); err == nil {
		t.Error("a file that cannot be read let nobody know")
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

// FuzzOpenToken: no token crashes the server (CVE-2025-54349, CVE-2025-54350).
func FuzzOpenToken(f *testing.F) {
	key, _ := testKey(f)
	for _, r := range recordings(f) {
		f.Add(r.params(f).AuthToken)
	}
	f.Add("====")
	f.Add(strings.Repeat("A", 5000))
	f.Fuzz(func(t *testing.T, tok string) {
		_, _ = openToken(key, tok, false)
		_, _ = parseToken([]byte(tok))
	})
}

// logged keeps what the server logs.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestLogin: who may and who may not, both paddings, clocks that differ (field case F50);
// the log says why, and never the password.
func TestLogin(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	priv := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	pub := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	users := filepath.Join(t.TempDir(), "users.csv")
	if err := os.WriteFile(users, fmt.Appendf(nil, "u,%x\n", sha256.Sum256([]byte("{u}secretpw"))), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1796022439, 0)
	good := &plan.Auth{Username: "u", Password: "secretpw", PublicKey: pub}
	for name, tc := range map[string]struct {
		auth  *plan.Auth
		skew  time.Duration // of the client's clock
		pkcs1 bool          // the server accepts the old padding
		limit time.Duration
		users string
		want  string // in the log; "" = let in
	}{
		"good":               {auth: good},
		"5 s early":          {auth: good, skew: -5 * time.Second},
		"5 s late":           {auth: good, skew: 5 * time.Second},
		"10 s":               {auth: good, skew: 10 * time.Second},
		"30 s early":         {auth: good, skew: -30 * time.Second, want: "time difference 30s"},
		"30 s late":          {auth: good, skew: 30 * time.Second, want: "time difference -30s"},
		"30 s, allowed":      {auth: good, skew: 30 * time.Second, limit: 60 * time.Second},
		"nobody":             {want: "gave no login"},
		"wrong password":     {auth: &plan.Auth{Username: "u", Password: "secretXX", PublicKey: pub}, want: "name or password is wrong"},
		"wrong name":         {auth: &plan.Auth{Username: "v", Password: "secretpw", PublicKey: pub}, want: "name or password is wrong"},
		"old padding":        {auth: &plan.Auth{Username: "u", Password: "secretpw", PublicKey: pub, PKCS1: true}, want: "cannot be decrypted"},
		"old padding, so be": {auth: &plan.Auth{Username: "u", Password: "secretpw", PublicKey: pub, PKCS1: true}, pkcs1: true},
		"new padding too":    {auth: good, pkcs1: true},
		"no users file":      {auth: good, users: "/nonexistent/users", want: "users file cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logged{}
			pol := plan.Serve{PrivateKey: priv, UsersFile: users, PKCS1: tc.pkcs1, TimeSkew: tc.limit, OneOff: true}
			if tc.users != "" {
				pol.UsersFile = tc.users
			}
			ts := startServer(t, &Server{Policy: pol, Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(log, nil))})
			c := ts.client(plan.Plan{Bytes: 1000, Auth: tc.auth})
			c.Now = func() time.Time { return now.Add(tc.skew) }
			run, err := runClient(t, c)
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(log.String(), "user=u") {
					t.Errorf("the log does not say who: %s", log)
				}
			} else {
				wantError(t, err, codeAuth, "auth")
				if run.Err == nil || !run.Err.Reported {
					t.Errorf("%+v", run.Err)
				}
				eventually(t, "the log says nothing", func() bool { return strings.Contains(log.String(), "msg=test") })
				if !strings.Contains(log.String(), tc.want) {
					t.Errorf("log: %s\nwant %q", log, tc.want)
				}
				select { // the one test is not used up by it
				case err := <-ts.result:
					t.Errorf("Serve returned %v", err)
				default:
				}
			}
			if strings.Contains(log.String(), "secret") {
				t.Errorf("the password is in the log: %s", log)
			}
		})
	}
	t.Run("bad key", func(t *testing.T) {
		ts := startServer(t, &Server{Policy: plan.Serve{PrivateKey: []byte("x"), UsersFile: users}})
		err := <-ts.result
		ts.result <- err
		var e *result.Error
		if !errors.As(err, &e) || e.Code != "plan" {
			t.Errorf("Serve returned %v", err)
		}
	})
}
