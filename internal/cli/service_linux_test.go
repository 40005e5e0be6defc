package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullbore-net/fullbore/internal/service"
)

// host is a machine with systemd, of which only files are real.
type host struct {
	root string
	may  bool // the user may install
	ran  []string
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{root: t.TempDir(), may: true}
	if err := os.MkdirAll(filepath.Join(h.root, "run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *host) serve(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	std := Std{
		In: strings.NewReader(""), Out: &o, Err: &e, Getenv: func(string) string { return "" }, Now: time.Now,
		Executable: func() (string, error) { return "/usr/local/bin/fullbore", nil },
		Services: &service.Manager{Root: h.root, Privileged: h.may, Run: func(_ context.Context, args ...string) error {
			h.ran = append(h.ran, strings.Join(args, " "))
			return nil
		}},
	}
	code = Main(t.Context(), append([]string{"fullbore", "serve"}, args...), std)
	return code, o.String(), e.String()
}

func (h *host) unit() string {
	data, _ := os.ReadFile(filepath.Join(h.root, "etc/systemd/system/fullbore.service"))
	return string(data)
}

func TestInstallService(t *testing.T) {
	h := newHost(t)
	code, out, errs := h.serve(t, "--install-service", "--listen", ":5201", "--listen=:5202", "-q", "--max-rate", "2.35G", "--allow", "10.0.0.0/8,192.0.2.0/24", "-A", "0,1", "--max-time", "90s")
	if code != exitOK || !strings.Contains(out, "it runs") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	want := "ExecStart=/usr/local/bin/fullbore serve --listen=:5201 --listen=:5202 --quiet=true --max-rate=2.35G --allow=10.0.0.0/8,192.0.2.0/24 --affinity=0,1 --max-time=90s\n"
	if !strings.Contains(h.unit(), want) || !strings.Contains(h.unit(), "CapabilityBoundingSet=\n") {
		t.Error(h.unit())
	}
	if len(h.ran) != 3 {
		t.Errorf("ran %q", h.ran)
	}
	if code, out, errs = h.serve(t, "--uninstall-service"); code != exitOK || !strings.Contains(out, "removed") || h.unit() != "" {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

func TestInstallServiceFilesAndPorts(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"key.pem", "users.csv"} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := newHost(t)
	code, out, errs := h.serve(t, "--install-service", "--listen", "127.0.0.1:801", "--listen", ":800", "--rsa-private-key", "key.pem", "--authorized-users", "users.csv")
	if code != exitOK {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	for _, line := range []string{
		"--rsa-private-key=${CREDENTIALS_DIRECTORY}/file1 --authorized-users=${CREDENTIALS_DIRECTORY}/file2\n",
		"LoadCredential=file1:" + filepath.Join(dir, "key.pem") + "\n",
		"LoadCredential=file2:" + filepath.Join(dir, "users.csv") + "\n",
		"AmbientCapabilities=CAP_NET_BIND_SERVICE\n",
	} {
		if !strings.Contains(h.unit(), line) {
			t.Errorf("no %q in\n%s", line, h.unit())
		}
	}
}

func TestPrintService(t *testing.T) {
	h := newHost(t)
	code, out, errs := h.serve(t, "--install-service=print", "--quiet")
	if code != exitOK || !strings.HasPrefix(out, "[Unit]\n") || !strings.Contains(errs, "systemctl enable --now") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	h.may = false
	code, out, errs = h.serve(t, "--install-service", "--quiet")
	if code != exitRefused || !strings.HasPrefix(out, "[Unit]\n") || !strings.Contains(errs, "needs root") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if h.unit() != "" || len(h.ran) > 0 {
		t.Errorf("something was installed; ran %q", h.ran)
	}
	if code, _, errs = h.serve(t, "--uninstall-service"); code != exitOK || errs != "" { // there is none
		t.Errorf("%d %s", code, errs)
	}
}

func TestServiceUsage(t *testing.T) {
	h := newHost(t)
	for _, args := range [][]string{
		{"--install-service=maybe"},
		{"--install-service", "--open-firewall"},
		{"--install-service", "--one-off"},
		{"--install-service", "--listen", "5201"},
		{"--uninstall-service", "--listen", ":5201"},
		{"--service-log", "x.log"},
	} {
		if code, out, errs := h.serve(t, args...); code != exitUsage || out != "" || errs == "" {
			t.Errorf("%q: %d %s%s", args, code, out, errs)
		}
	}
	if h.unit() != "" || len(h.ran) > 0 {
		t.Errorf("something was installed; ran %q", h.ran)
	}
	if code, _, errs := h.serve(t, "--run-as-service"); code != exitRefused || !strings.Contains(errs, "only Windows") {
		t.Errorf("%d %s", code, errs)
	}
}
