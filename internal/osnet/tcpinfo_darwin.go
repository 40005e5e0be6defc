package osnet

import (
	"golang.org/x/sys/unix"

	"github.com/fullbore-net/fullbore/result"
)

// tcpInfo reads TCP_CONNECTION_INFO (xnu bsd/netinet/tcp.h): windows in bytes, round
// trips in milliseconds.
func tcpInfo(fd uintptr) (result.TCPInfo, error) {
	ci, err := unix.GetsockoptTCPConnectionInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_CONNECTION_INFO)
	if err != nil {
		return result.TCPInfo{}, err
	}
	var ti result.TCPInfo
	options(&ti, ci.Options)
	var r rawInfo
	ti.WScale = [2]uint8{ci.Snd_wscale, ci.Rcv_wscale}
	ti.MSS = int64(ci.Maxseg)
	ti.Cwnd = int64(ci.Snd_cwnd)
	if ci.Snd_ssthresh < 65535<<14 { // TCP_MAXWIN << TCP_MAX_WINSHIFT: infinite
		ti.Ssthresh = r.keep(uint64(ci.Snd_ssthresh), 1)
	}
	ti.SndWnd = r.keep(uint64(ci.Snd_wnd), 1)
	ti.RcvSpace = int64(ci.Rcv_wnd)
	ti.RTT, ti.RTTVar = int64(ci.Srtt)*1000, int64(ci.Rttvar)*1000
	ti.Retransmits = int64(ci.Txretransmitpackets)
	ti.RetransBytes = r.keep(ci.Txretransmitbytes, 1)
	ti.BytesSent = r.keep(ci.Txbytes, 1)
	ti.BytesReceived = r.keep(ci.Rxbytes, 1)
	ti.SegsOut, ti.SegsIn = int64(ci.Txpackets), int64(ci.Rxpackets)
	return ti, nil
}
