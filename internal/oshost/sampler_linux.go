package oshost

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// rereader keeps counters' files open: reading one again from its beginning (pread) makes
// the kernel write it anew, at a third of the price of opening it.
type rereader struct {
	tree
	buf []byte
}

func newRereader(root string) rereader { return rereader{tree{root}, make([]byte, 16<<10)} }

// source reads what the Sampler counts.
type source struct {
	rereader
	stat    int // descriptors; −1 = not there
	softnet int
	tasks   int
	threads []threadFile // kept open, ascending by id
	nicName string
	nic     []int // one per nicFiles, nil = no interface
	quotas  []quotaFile
	clocks  map[int]int // descriptors of cores' clock frequencies, opened when first asked for; −1 = not there
}

// quotaFile is the cpu.stat of one control group that has a quota.
type quotaFile struct {
	fd  int
	key []byte // "throttled_usec " (v2) or "throttled_time " (v1)
	per time.Duration
}

// threadFile is the schedstat of one thread.
type threadFile struct {
	id, fd int
	seen   bool
}

// maxThreadFiles bounds the descriptors that the sampler keeps; the files of further
// threads are opened for each sample, at several times the price.
const maxThreadFiles = 256

// nicFiles are the counters of /sys/class/net/*/statistics, in the order of nicCounters.
var nicFiles = [...]string{
	"rx_bytes", "tx_bytes", "rx_packets", "tx_packets", "rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "rx_missed_errors",
}

func openSource(o SamplerOptions, miss func(string, error)) *source {
	s := &source{rereader: newRereader(o.Root), clocks: map[int]int{}}
	s.stat = s.open("proc/stat", 0, miss)
	s.softnet = s.open("proc/net/softnet_stat", 0, miss)
	s.tasks = s.open("proc/self/task", unix.O_DIRECTORY, miss)
	if o.Interface != "" {
		s.nicName = o.Interface
		for _, f := range nicFiles {
			s.nic = append(s.nic, s.open("sys/class/net/"+o.Interface+"/statistics/"+f, 0, miss))
		}
	}
	c := collector{tree: s.tree}
	groups, err := c.cgroups()
	if err != nil {
		miss("control groups", err)
	}
	for _, g := range groups {
		if c.groupQuota(g) == nil {
			continue
		}
		q := quotaFile{fd: s.open(g.dir+"/cpu.stat", 0, miss), key: []byte("throttled_usec "), per: time.Microsecond}
		if g.version == 1 {
			q.key, q.per = []byte("throttled_time "), time.Nanosecond
		}
		s.quotas = append(s.quotas, q)
	}
	return s
}

func (r *rereader) open(p string, flags int, miss func(string, error)) int {
	for {
		fd, err := unix.Open(r.path(p), unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
		switch {
		case err == nil:
			return fd
		case !errors.Is(err, unix.EINTR):
			miss("/"+p, err)
			return -1
		}
	}
}

func (s *source) close() {
	for _, fd := range append([]int{s.stat, s.softnet, s.tasks}, s.nic...) {
		shut(fd)
	}
	for _, q := range s.quotas {
		shut(q.fd)
	}
	for _, t := range s.threads {
		shut(t.fd)
	}
	for _, fd := range s.clocks {
		shut(fd)
	}
	clear(s.clocks)
	s.threads = nil
	s.stat, s.softnet, s.tasks, s.nic, s.quotas = -1, -1, -1, nil, nil
}

func shut(fd int) {
	if fd >= 0 {
		_ = unix.Close(fd) // nothing was written
	}
}

// again reads a file from its beginning until its end or until enough says so; nil when it cannot. The bytes are
// good until the next call.
func (r *rereader) again(fd int, enough func([]byte) bool) []byte {
	if fd < 0 {
		return nil
	}
	n := 0
	for {
		if n == len(r.buf) {
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
		k, err := unix.Pread(fd, r.buf[n:], int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil
		}
		n += k
		if k == 0 || enough != nil && enough(r.buf[:n]) {
			return r.buf[:n]
		}
	}
}

func (s *source) read(r *reading, miss func(string, error)) {
	r.cores = s.readCores(r.cores[:0])
	var u unix.Rusage
	r.process = nil
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err == nil {
		r.process = &processTimes{time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())}
	} else {
		miss("getrusage", err)
	}
	if s.nic != nil {
		if r.nic = s.readNIC(); r.nic == nil {
			miss("counters of "+s.nicName, errors.New("the interface is gone"))
		}
	}
	r.softnet = s.readSoftnet(r.softnet)
	r.threads = s.readThreads(r.threads[:0])
	r.throttled = s.readThrottled()
}

// clock is what a core runs at now, MHz; nil where cpufreq does not tell (most virtual
// machines), which is no loss worth a notice.
func (s *source) clock(core int) *int {
	fd, known := s.clocks[core]
	if !known {
		fd = s.open(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", core), 0, func(string, error) {})
		s.clocks[core] = fd
	}
	khz, _ := number(s.again(fd, ended))
	if khz < 1000 {
		return nil
	}
	mhz := int(khz / 1000)
	return &mhz
}

// readCores reads /proc/stat up to the last cpu line. The total comes first and is skipped;
// guest time is already in user and nice (kernel fs/proc/stat.c).
func (s *source) readCores(out []coreTimes) []coreTimes {
	text := s.again(s.stat, func(b []byte) bool { return bytes.Contains(b, []byte("\nintr")) })
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		if !bytes.HasPrefix(line, []byte("cpu")) {
			break
		}
		if line[3] < '0' || line[3] > '9' {
			continue
		}
		id, rest := number(line[3:])
		var v [8]uint64
		for i := range v {
			v[i], rest = number(rest)
		}
		out = append(out, coreTimes{
			id: int(id), user: v[0] + v[1], system: v[2], idle: v[3], iowait: v[4], irq: v[5], softirq: v[6], steal: v[7],
		})
	}
	return out
}

// number reads a decimal number after blanks, 0 when there is none.
func number(b []byte) (v uint64, rest []byte) {
	i := 0
	for i < len(b) && b[i] == ' ' {
		i++
	}
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		v = v*10 + uint64(b[i]-'0')
	}
	return v, b[i:]
}

func (s *source) readNIC() *nicCounters {
	var v [len(nicFiles)]int64
	for i, fd := range s.nic {
		text := s.again(fd, ended)
		if len(text) == 0 {
			return nil
		}
		n, _ := number(text)
		v[i] = int64(n)
	}
	return &nicCounters{s.nicName, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]}
}

// ended saves the second read of a one-line file.
func ended(b []byte) bool { return b[len(b)-1] == '\n' }

// readSoftnet reads processed, dropped and squeezed, the first three columns, in
// hexadecimal (kernel net/core/net-procfs.c, softnet_seq_show).
func (s *source) readSoftnet(r *softnetCounters) *softnetCounters {
	text := s.again(s.softnet, nil)
	if len(text) == 0 {
		return nil
	}
	if r == nil {
		r = &softnetCounters{}
	}
	r.rows = r.rows[:0]
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		if len(line) < 26 {
			continue
		}
		r.rows = append(r.rows, [3]uint32{hex32(line[0:8]), hex32(line[9:17]), hex32(line[18:26])})
	}
	return r
}

func hex32(b []byte) (v uint32) {
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint32(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint32(c-'a'+10)
		}
	}
	return v
}

// readThreads reads every thread's time on a CPU and time waiting for one, in ns
// (Documentation/scheduler/sched-stats.rst). A thread that ends meanwhile is skipped.
func (s *source) readThreads(out []threadTimes) []threadTimes {
	if s.tasks < 0 {
		return out
	}
	if _, err := unix.Seek(s.tasks, 0, 0); err != nil {
		return out
	}
	for i := range s.threads {
		s.threads[i].seen = false
	}
	var dir [8 << 10]byte
	for {
		n, err := unix.ReadDirent(s.tasks, dir[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			break
		}
		for b := dir[:n]; len(b) > 0; {
			length := int(b[16]) | int(b[17])<<8 // struct linux_dirent64: d_reclen, then d_type and the name
			id, _ := number(b[19:length])
			b = b[length:]
			if id == 0 { // "." and ".."
				continue
			}
			if t, ok := s.readThread(int(id)); ok {
				out = append(out, t)
			}
		}
	}
	s.threads = slices.DeleteFunc(s.threads, func(t threadFile) bool {
		if !t.seen {
			shut(t.fd)
		}
		return !t.seen
	})
	slices.SortFunc(out, func(a, b threadTimes) int { return cmp.Compare(a.id, b.id) })
	return out
}

// readThread reads one thread. A kept file whose thread is gone gives an error even when
// its number is in use again; then it is opened anew.
func (s *source) readThread(id int) (threadTimes, bool) {
	at, kept := slices.BinarySearchFunc(s.threads, id, func(t threadFile, id int) int { return cmp.Compare(t.id, id) })
	if kept {
		if t, ok := s.schedstat(id, s.threads[at].fd); ok {
			s.threads[at].seen = true
			return t, true
		}
	}
	var name [32]byte
	p := append(strconv.AppendInt(name[:0], int64(id), 10), "/schedstat"...)
	fd, err := unix.Openat(s.tasks, string(p), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return threadTimes{}, false
	}
	t, ok := s.schedstat(id, fd)
	switch {
	case !ok || !kept && len(s.threads) >= maxThreadFiles:
		shut(fd)
	case kept:
		shut(s.threads[at].fd)
		s.threads[at] = threadFile{id: id, fd: fd, seen: true}
	default:
		s.threads = slices.Insert(s.threads, at, threadFile{id: id, fd: fd, seen: true})
	}
	return t, ok
}

func (s *source) schedstat(id, fd int) (threadTimes, bool) {
	text := s.again(fd, ended)
	if len(text) == 0 {
		return threadTimes{}, false
	}
	run, rest := number(text)
	wait, _ := number(rest)
	return threadTimes{id: id, run: time.Duration(run), wait: time.Duration(wait)}, true
}

// readThrottled adds up the time that each quota on the way to the root held this
// process; nil when there is no quota.
func (s *source) readThrottled() *time.Duration {
	var sum *time.Duration
	for _, q := range s.quotas {
		text := s.again(q.fd, nil)
		i := bytes.Index(text, q.key)
		if i < 0 {
			continue
		}
		v, _ := number(text[i+len(q.key):])
		d := time.Duration(v) * q.per
		if sum != nil {
			d += *sum
		}
		sum = &d
	}
	return sum
}
