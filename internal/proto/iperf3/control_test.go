package iperf3

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// TestEarlyFrame: a client does not take the letter H of another protocol for a frame
// and wait for the rest of it.
func TestEarlyFrame(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	c := newControl(near, true, MaxResults, nil, nil)
	defer c.close()
	if _, err := far.Write([]byte("H")); err != nil {
		t.Fatal(err)
	}
	if m, err := c.next(context.Background(), time.Hour); !errors.Is(err, errEarlyFrame) {
		t.Errorf("%+v, %v", m, err)
	}
	if got := string(c.firstBytes()); got != "H" {
		t.Errorf("first bytes %q", got)
	}
}
