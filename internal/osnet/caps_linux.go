package osnet

import "golang.org/x/sys/unix"

func probe() Caps {
	c := Caps{IPv6: hasIPv6()}
	list, err := congestionAvailable()
	c.Congestion = err == nil && len(list) > 0
	c.MPTCP = canOpen(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	withSocket(unix.AF_INET, unix.SOCK_STREAM, func(fd int) {
		var info [512]byte
		n, err := readTCPInfo(uintptr(fd), info[:])
		if err == nil && n >= minInfo {
			c.TCPInfo, c.Retransmits, c.TCPInfoBytes = true, true, n
		}
		_, err = sendQueue(uintptr(fd))
		c.SendQueue = err == nil
		c.ZeroCopy = setInt(uintptr(fd), unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1) == nil
		c.RcvLowat = setInt(uintptr(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, 2) == nil
		c.UserTimeout = optUserTimeout.set(uintptr(fd), 1000) == nil
		c.BindDevice = unix.BindToDevice(fd, "lo") == nil
		const beyond32 = 8 << 33 // bit/s that need more than 32 bits as bytes
		c.Pacing = setPacing(uintptr(fd), beyond32) == nil
		var got int64
		got, err = pacing(uintptr(fd))
		c.Pacing64 = c.Pacing && err == nil && got == beyond32
	})
	withSocket(unix.AF_INET, unix.SOCK_DGRAM, func(fd int) {
		c.Segment = setSegment(uintptr(fd), 1000) == nil
		c.Coalesce = setCoalesce(uintptr(fd), true) == nil
		c.Stamps = setStamps(uintptr(fd)) == nil
		_, err := socketDrops(uintptr(fd))
		c.Meminfo = err == nil
	})
	withSocket(unix.AF_INET6, unix.SOCK_DGRAM, func(fd int) {
		req := flowRequest{dst: [16]byte{15: 1}, label: labelBytes(0xfb1), action: flowActionGet, share: flowShareAny, flags: flowCreate}
		c.FlowLabel = req.set(uintptr(fd)) == nil
	})
	c.Batch = canBatch()
	c.SendFile, c.Splice = canSendFile(), canSplice()
	usable, err := usableCPUs()
	c.Affinity = err == nil && len(usable) > 0
	c.Discard = probeDiscard()
	return c
}

func canOpen(domain, typ, proto int) bool {
	fd, err := unix.Socket(domain, typ|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

func withSocket(domain, typ int, f func(fd int)) {
	fd, err := unix.Socket(domain, typ|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	f(fd)
	_ = unix.Close(fd)
}

func canSendFile() bool {
	fd, err := unix.MemfdCreate("osnet-probe", unix.MFD_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 1); err != nil {
		return false
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	var off int64
	n, err := unix.Sendfile(pair[0], fd, &off, 1)
	return err == nil && n == 1
}

func canSplice() bool {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return false
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	b := []byte{1}
	n, err := unix.Vmsplice(p[1], []unix.Iovec{{Base: &b[0], Len: 1}}, 0)
	return err == nil && n == 1
}

// probeDiscard tries recv with MSG_TRUNC over loopback: a kernel that has it leaves the
// buffer alone. Where loopback cannot be used (a namespace in which it is down) the
// answer is that of tcp(7): Linux has it since 2.4. A wrong yes costs a copy, no byte.
func probeDiscard() bool {
	const documented = true
	ln, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return documented
	}
	defer unix.Close(ln)
	if unix.Bind(ln, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}) != nil || unix.Listen(ln, 1) != nil {
		return documented
	}
	sa, err := unix.Getsockname(ln)
	if err != nil {
		return documented
	}
	out, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return documented
	}
	defer unix.Close(out)
	// Nothing here takes time on loopback, but a packet filter must not hang the program.
	limit := unix.NsecToTimeval(200e6)
	for _, fd := range []int{ln, out} {
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit)
	}
	if unix.Connect(out, sa) != nil {
		return documented
	}
	in, peer, err := unix.Accept4(ln, unix.SOCK_CLOEXEC)
	if err != nil {
		return documented
	}
	defer unix.Close(in)
	own, err := unix.Getsockname(out)
	if err != nil || peer.(*unix.SockaddrInet4).Port != own.(*unix.SockaddrInet4).Port {
		return documented // somebody else's connection
	}
	_ = unix.SetsockoptTimeval(in, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
	if n, err := unix.Write(out, []byte("abcd")); err != nil || n != 4 {
		return documented
	}
	buf := [4]byte{'*', '*', '*', '*'}
	got, _, err := unix.Recvfrom(in, buf[:], unix.MSG_TRUNC)
	return err == nil && got > 0 && buf == [4]byte{'*', '*', '*', '*'}
}
