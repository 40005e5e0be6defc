package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// unitFile is where units of the administrator lie.
const unitFile = "/etc/systemd/system/" + Name + ".service"

// unit is the service for systemd (247 and later). It runs as a user that exists only
// while it runs, sees nothing of homes and devices, and may do what a receiver needs:
// sockets, its own threads, reading /proc and /sys.
func unit(s Spec) string {
	capability := ""
	if s.LowPorts {
		capability = "CAP_NET_BIND_SERVICE"
	}
	exec := systemdQuote(s.Program, false)
	var credentials strings.Builder
	n := 0
	for _, a := range s.Args {
		word := systemdQuote(a.Text, false)
		if a.File != "" {
			// The user of the service may not read the file itself; systemd hands it over.
			n++
			id := fmt.Sprintf("file%d", n)
			fmt.Fprintf(&credentials, "LoadCredential=%s:%s\n", id, strings.ReplaceAll(a.File, "%", "%%"))
			word = systemdQuote(a.Text, true) + "${CREDENTIALS_DIRECTORY}/" + id
		}
		exec += " " + word
	}
	var b strings.Builder
	fmt.Fprintf(&b, `[Unit]
Description=%s
Documentation=https://github.com/fullbore-net/fullbore
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart=%s
%sRestart=on-failure
RestartSec=5
# A wrong command line stays wrong.
RestartPreventExitStatus=3
TimeoutStopSec=15

# Room for many tests at once, and for pages that are sent without copying.
LimitNOFILE=65536
LimitMEMLOCK=256M
TasksMax=4096

DynamicUser=yes
CapabilityBoundingSet=%s
`, strings.ReplaceAll(s.Description, "%", "%%"), exec, credentials.String(), capability)
	if capability != "" {
		fmt.Fprintf(&b, "AmbientCapabilities=%s\n", capability)
	} else {
		b.WriteString("PrivateUsers=yes\n") // capabilities would count inside only
	}
	b.WriteString(`NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
UMask=0077

[Install]
WantedBy=multi-user.target
`)
	return b.String()
}

// systemdQuote is a word of ExecStart (systemd.syntax(7), systemd.service(5)): % and $ are
// doubled, anything that is special or blank makes quotes. glued leaves off the quotes of
// a plain word that more is put behind.
func systemdQuote(s string, glued bool) string {
	plain := strings.NewReplacer("%", "%%", "$", "$$").Replace(s)
	special := func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("\"'\\;", r)
	}
	if s != "" && strings.IndexFunc(s, special) < 0 || glued && s == "" {
		return plain
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range plain {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Ready tells systemd, at the socket of sd_notify(3), that the service has begun to do its
// work. With socket "" nobody wants to know.
func Ready(ctx context.Context, socket string) error {
	if socket == "" {
		return nil
	}
	if strings.HasPrefix(socket, "@") { // the abstract namespace
		socket = "\x00" + socket[1:]
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unixgram", socket)
	if err != nil {
		return fmt.Errorf("service: tell systemd: %w", err)
	}
	defer c.Close() //nolint:errcheck // a datagram was sent or not
	if _, err := c.Write([]byte("READY=1")); err != nil {
		return fmt.Errorf("service: tell systemd: %w", err)
	}
	return nil
}

// hidden are the folders below / that the unit hides from the service, so that its program cannot
// be there (systemd.exec(5): ProtectHome, PrivateTmp, PrivateDevices).
var hidden = []string{"home", "root", "run/user", "tmp", "var/tmp", "dev"}

// systemdText is Text for systemd.
func systemdText(s Spec) (file, contents string, steps []string, err error) {
	return unitFile, unit(s), []string{
		"systemctl daemon-reload && systemctl enable --now " + Name,
		"systemctl disable --now " + Name + " && rm " + unitFile + " && systemctl daemon-reload   # to remove it",
	}, nil
}

// systemdInstall is Install for systemd.
func (m Manager) systemdInstall(ctx context.Context, s Spec) ([]string, error) {
	if !m.Privileged {
		return nil, fmt.Errorf("service: installing needs root: %w", ErrPrint)
	}
	if _, err := os.Stat(m.Root + "/run/systemd/system"); err != nil { // sd_booted(3)
		return nil, fmt.Errorf("service: systemd does not run here: %w", ErrPrint)
	}
	for _, dir := range hidden {
		if dir = "/" + dir + "/"; strings.HasPrefix(s.Program, dir) {
			return nil, &LocationError{s.Program, dir, "/usr/local/bin"}
		}
	}
	path := m.Root + unitFile
	_, err := os.Stat(path)
	was := err == nil
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	if err := os.WriteFile(path, []byte(unit(s)), 0o644); err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	done := []string{"wrote " + unitFile}
	if was {
		done = []string{"wrote " + unitFile + " anew"}
	}
	for _, step := range []struct {
		args []string
		says string
	}{
		{[]string{"systemctl", "daemon-reload"}, ""},
		{[]string{"systemctl", "enable", Name}, "it starts with the machine"},
		{[]string{"systemctl", "restart", Name}, "it runs; its lines: journalctl -u " + Name},
	} {
		if err := m.Run(ctx, step.args...); err != nil {
			return done, fmt.Errorf("service: %s: %w", strings.Join(step.args, " "), err)
		}
		if step.says != "" {
			done = append(done, step.says)
		}
	}
	return done, nil
}

// systemdUninstall is Uninstall for systemd.
func (m Manager) systemdUninstall(ctx context.Context) ([]string, error) {
	path := m.Root + unitFile
	switch _, err := os.Stat(path); {
	case errors.Is(err, os.ErrNotExist):
		return []string{"there is no " + unitFile + ": nothing to remove"}, nil
	case err != nil:
		return nil, fmt.Errorf("service: %w", err)
	case !m.Privileged:
		return nil, fmt.Errorf("service: removing needs root: %w", os.ErrPermission)
	}
	if err := m.Run(ctx, "systemctl", "disable", "--now", Name); err != nil {
		return nil, fmt.Errorf("service: systemctl disable: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return []string{"stopped it"}, fmt.Errorf("service: %w", err)
	}
	done := []string{"stopped it", "removed " + unitFile}
	if err := m.Run(ctx, "systemctl", "daemon-reload"); err != nil {
		return done, fmt.Errorf("service: systemctl daemon-reload: %w", err)
	}
	return done, nil
}
