package osnet

import "golang.org/x/sys/unix"

// awaitLookups waits until every packet that is being delivered at this moment has been
// queued: that happens within one RCU read section (net/ipv4/ip_input.c,
// ip_local_deliver_finish), and membarrier's global command waits for all of those
// (synchronize_rcu; Linux 4.3), which takes some milliseconds. A kernel that refuses it
// leaves a gap of a microsecond.
func awaitLookups() {
	const global = 1 // MEMBARRIER_CMD_GLOBAL
	_, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0)
}
