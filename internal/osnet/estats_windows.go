package osnet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/fullbore-net/fullbore/result"
)

// Since Windows Vista; Wine 8 has the setters only.
var (
	iphlpapi   = windows.NewLazySystemDLL("iphlpapi.dll")
	getEStats4 = iphlpapi.NewProc("GetPerTcpConnectionEStats")
	setEStats4 = iphlpapi.NewProc("SetPerTcpConnectionEStats")
	getEStats6 = iphlpapi.NewProc("GetPerTcp6ConnectionEStats")
	setEStats6 = iphlpapi.NewProc("SetPerTcp6ConnectionEStats")
)

// estatsRow names a connection as the TCP table does, and the calls for its family.
type estatsRow struct {
	row      [52]byte // MIB_TCPROW, MIB_TCP6ROW (tcpmib.h)
	get, set *windows.LazyProc
}

const tcpEstablished = 5 // MIB_TCP_STATE_ESTAB

func newEStatsRow(local, remote result.Addr) (*estatsRow, error) {
	from, err := netip.ParseAddr(local.Host)
	if err != nil {
		return nil, err
	}
	to, err := netip.ParseAddr(remote.Host)
	if err != nil {
		return nil, err
	}
	r := &estatsRow{}
	put := binary.LittleEndian.PutUint32
	port := func(at, p int) { binary.BigEndian.PutUint16(r.row[at:], uint16(p)) } // in the lower half, network order
	put(r.row[0:], tcpEstablished)
	if from.Is4() {
		r.get, r.set = getEStats4, setEStats4
		a, b := from.As4(), to.As4()
		copy(r.row[4:], a[:])
		port(8, local.Port)
		copy(r.row[12:], b[:])
		port(16, remote.Port)
	} else {
		r.get, r.set = getEStats6, setEStats6
		a, b := from.As16(), to.As16()
		copy(r.row[4:], a[:])
		put(r.row[20:], scopeID(from))
		port(24, local.Port)
		copy(r.row[28:], b[:])
		put(r.row[44:], scopeID(to))
		port(48, remote.Port)
	}
	for _, p := range []*windows.LazyProc{r.get, r.set} {
		if err := p.Find(); err != nil { // a Windows without it, unlike systems that have no such thing
			return nil, err
		}
	}
	return r, nil
}

// scopeID is the zone, which package net writes as a number or a name; only a number is known here.
func scopeID(a netip.Addr) uint32 {
	n, _ := strconv.ParseUint(a.Zone(), 10, 32)
	return uint32(n)
}

func collectEStats(local, remote result.Addr) error {
	r, err := newEStatsRow(local, remote)
	if err != nil {
		return err
	}
	for _, e := range estatsStructs {
		if e.enable == 0 || e.static {
			continue
		}
		rw := [8]byte{1} // EnableCollection: TRUE
		if e.enable == 8 {
			rw = [8]byte{1, 0, 0, 0, 1} // TcpBoolOptEnabled, out and in
		}
		code, _, _ := r.set.Call(uintptr(unsafe.Pointer(&r.row[0])), uintptr(e.kind), uintptr(unsafe.Pointer(&rw[0])), 0, uintptr(e.enable), 0)
		if uint32(code) != 0 {
			return fmt.Errorf("%s: %w", e.name, windows.Errno(uint32(code)))
		}
	}
	return nil
}

func readEStats(local, remote result.Addr) ([]result.EStatsStructure, error) {
	r, err := newEStatsRow(local, remote)
	if err != nil {
		return nil, err
	}
	var out []result.EStatsStructure
	for _, e := range estatsStructs {
		var room [64]uint64 // aligned; the largest has 160 bytes
		size := uintptr(e.size())
		var code uintptr
		if e.static {
			code, _, _ = r.get.Call(uintptr(unsafe.Pointer(&r.row[0])), uintptr(e.kind), 0, 0, 0, uintptr(unsafe.Pointer(&room[0])), 0, size, 0, 0, 0)
		} else {
			code, _, _ = r.get.Call(uintptr(unsafe.Pointer(&r.row[0])), uintptr(e.kind), 0, 0, 0, 0, 0, 0, uintptr(unsafe.Pointer(&room[0])), 0, size)
		}
		if uint32(code) != 0 {
			return out, fmt.Errorf("%s: %w", e.name, windows.Errno(uint32(code)))
		}
		out = append(out, e.decode(wordBytes(room[:])[:size]))
	}
	return out, nil
}
