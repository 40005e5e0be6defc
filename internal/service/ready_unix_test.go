//go:build unix

package service

import (
	"net"
	"path/filepath"
	"testing"
)

func TestReady(t *testing.T) {
	if err := Ready(t.Context(), ""); err != nil {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // a test's
	if err := Ready(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, _, err := c.ReadFrom(b)
	if err != nil || string(b[:n]) != "READY=1" {
		t.Errorf("%q %v", b[:n], err)
	}
	if err := Ready(t.Context(), path+".none"); err == nil {
		t.Error("a socket that is not there takes it")
	}
}
