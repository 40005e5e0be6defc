package oshost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
)

// Recorded reads the inventory of a recorded tree of a Linux host: a folder with
// what was in proc and sys, and kernel.json with the answers of the kernel that are
// in no file. It works on any system that can hold such a tree: Windows cannot (names with
// colons); hand an Inventory on as JSON there.
func Recorded(ctx context.Context, dir string, peer netip.Addr) (*Inventory, error) {
	k, err := loadKernel(dir)
	if err != nil {
		return nil, err
	}
	c := collector{tree: tree{dir}, kernel: k}
	inv := c.inventory(ctx, peer)
	inv.Recorded = true
	return inv, nil
}

// recordedKernel is kernel.json. What is absent was not recorded.
type recordedKernel struct {
	Uname   *names              `json:"uname"`
	Routes  map[string]string   `json:"routes,omitempty"` // peer → interface; "" = default route, else /proc/net/route tells
	Devices map[string]device   `json:"devices,omitempty"`
	Queues  map[string][]string `json:"qdiscs,omitempty"`
	Clock   *clockState         `json:"clock,omitempty"`

	tree tree
}

var errNotRecorded = errors.New("not recorded")

func loadKernel(dir string) (*recordedKernel, error) {
	k := &recordedKernel{tree: tree{dir}}
	data, err := os.ReadFile(filepath.Join(dir, "kernel.json"))
	if errors.Is(err, fs.ErrNotExist) {
		if k.tree.exists("proc") {
			return k, nil
		}
		return nil, fmt.Errorf("oshost: %s: no recorded tree: neither proc nor kernel.json", dir)
	}
	if err == nil {
		err = json.Unmarshal(data, k)
	}
	if err != nil {
		return nil, fmt.Errorf("oshost: recorded tree: %w", err)
	}
	return k, nil
}

func (k *recordedKernel) route(peer netip.Addr) (string, error) {
	key := ""
	if peer.IsValid() {
		key = peer.String()
	}
	if name, ok := k.Routes[key]; ok {
		return name, nil
	}
	if name := k.tree.defaultInterface(); name != "" {
		return name, nil
	}
	return "", errNoRoute
}

var errNoRoute = errors.New("no route")

func (k *recordedKernel) device(name string) (device, error) {
	if d, ok := k.Devices[name]; ok {
		return d, nil
	}
	return device{}, errNotRecorded
}

func (k *recordedKernel) qdiscs(name string) ([]string, error) {
	if q, ok := k.Queues[name]; ok {
		return q, nil
	}
	return nil, errNotRecorded
}

func (k *recordedKernel) clock() (clockState, error) {
	if k.Clock == nil {
		return clockState{}, errNotRecorded
	}
	return *k.Clock, nil
}

func (k *recordedKernel) uname() (names, error) {
	if k.Uname == nil {
		return names{}, errNotRecorded
	}
	return *k.Uname, nil
}
