package osnet

import (
	"errors"
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// overlapped waits with events, not with a completion port: the sockets of package net
// belong to the runtime's port already, and a socket has one. An event whose lowest bit is
// set keeps a call's end from that port (GetQueuedCompletionStatus, "Remarks").
type overlapped struct {
	h    windows.Handle // the connection's; valid until Close of it
	send bool

	memory uintptr // of buffers and calls: the system writes there while a call is under way
	calls  []overlappedCall
	waits  [2]windows.Handle // the oldest call's event, and that of Wake
	head   int               // the oldest call
	n      int               // calls under way or not yet waited for
}

// overlappedCall is what the system knows of a call, and its buffer. It lies in memory that
// is not Go's, like the buffer: what the system writes to must outlive even a leak.
type overlappedCall struct {
	o     windows.Overlapped
	event windows.Handle
	buf   *byte
	moved uint32
	ended bool // at once: moved is true
}

func (o *overlapped) open(c *Conn, send bool, depth, size int, alike bool, fill func([]byte)) error {
	if err := c.control(func(fd uintptr) error {
		o.h = windows.Handle(fd)
		return nil
	}); err != nil {
		return err
	}
	o.send = send
	const page = 4096
	head := (depth*int(unsafe.Sizeof(overlappedCall{})) + page - 1) &^ (page - 1)
	each := (size + page - 1) &^ (page - 1)
	buffers := depth
	if alike {
		buffers = 1
	}
	memory, err := windows.VirtualAlloc(0, uintptr(head+each*buffers), windows.MEM_COMMIT|windows.MEM_RESERVE, windows.PAGE_READWRITE)
	if err != nil {
		return err
	}
	o.memory = memory
	start := *(*unsafe.Pointer)(unsafe.Pointer(&o.memory)) // vet takes a plain conversion for a mistake
	o.calls = unsafe.Slice((*overlappedCall)(start), depth)
	for i := range buffers {
		if fill != nil {
			fill(unsafe.Slice((*byte)(unsafe.Add(start, head+i*each)), size))
		}
	}
	for i := range o.calls {
		o.calls[i].buf = (*byte)(unsafe.Add(start, head+i%buffers*each))
		if o.calls[i].event, err = windows.CreateEvent(nil, 0, 0, nil); err != nil {
			o.close()
			return err
		}
	}
	if o.waits[1], err = windows.CreateEvent(nil, 0, 0, nil); err != nil {
		o.close()
	}
	return err
}

func (o *overlapped) pending() int { return o.n }

func (o *overlapped) begin(n int) error {
	c := &o.calls[(o.head+o.n)%len(o.calls)]
	c.o = windows.Overlapped{HEvent: c.event | 1}
	c.moved, c.ended = 0, false
	buf := windows.WSABuf{Len: uint32(n), Buf: c.buf}
	var err error
	if o.send {
		err = windows.WSASend(o.h, &buf, 1, &c.moved, 0, &c.o, nil)
	} else {
		var flags uint32
		err = windows.WSARecv(o.h, &buf, 1, &c.moved, &flags, &c.o, nil)
	}
	switch {
	case err == nil:
		c.ended = true
	case !errors.Is(err, windows.ERROR_IO_PENDING):
		return err
	}
	o.n++
	return nil
}

// wait looks before it waits: an event may be left set by a call that ended at once.
func (o *overlapped) wait(ns int64) (int, []byte, error) {
	c := &o.calls[o.head]
	var err error
	for !c.ended {
		var flags uint32
		err = windows.WSAGetOverlappedResult(o.h, &c.o, &c.moved, false, &flags)
		if !errors.Is(err, windows.ERROR_IO_INCOMPLETE) {
			break
		}
		o.waits[0] = c.event
		s, werr := windows.WaitForMultipleObjects(o.waits[:], false, waitMillis(ns))
		switch {
		case werr != nil:
			return 0, nil, werr
		case s != windows.WAIT_OBJECT_0:
			return 0, nil, ErrWoken
		}
	}
	o.head = (o.head + 1) % len(o.calls)
	o.n--
	if err != nil && !isCancelled(err) {
		return int(c.moved), nil, err
	}
	n := int(c.moved)
	if n > 0 {
		err = nil // cancelled too late, or half done
	}
	return n, unsafe.Slice(c.buf, n), err
}

// waitMillis rounds up: a wait that is too short is made again, and burns a CPU.
func waitMillis(ns int64) uint32 {
	if ns < 0 {
		return windows.INFINITE
	}
	return uint32(min((ns+int64(time.Millisecond)-1)/int64(time.Millisecond), math.MaxInt32))
}

func (o *overlapped) wake() { _ = windows.SetEvent(o.waits[1]) }

// cancel leaves the runtime's own calls on the connection alone. An error says that a call
// is not under way any more. The newest goes first, so that none begins in another's place.
func (o *overlapped) cancel() {
	for i := o.n - 1; i >= 0; i-- {
		if c := &o.calls[(o.head+i)%len(o.calls)]; !c.ended {
			_ = windows.CancelIoEx(o.h, &c.o)
		}
	}
}

// cancelWait is how long Close waits for a cancelled call; the system ends it at once.
const cancelWait = int64(2 * time.Second)

func (o *overlapped) close() {
	if o.n > 0 {
		o.cancel()
	}
	for begun := time.Now(); o.n > 0; {
		if _, _, err := o.wait(int64(100 * time.Millisecond)); errors.Is(err, ErrWoken) && time.Since(begun) > time.Duration(cancelWait) {
			return // the memory stays: the system may still write to it
		}
	}
	for i := range o.calls {
		if o.calls[i].event != 0 {
			_ = windows.CloseHandle(o.calls[i].event)
		}
	}
	if o.waits[1] != 0 {
		_ = windows.CloseHandle(o.waits[1])
		o.waits[1] = 0
	}
	if o.memory != 0 {
		_ = windows.VirtualFree(o.memory, 0, windows.MEM_RELEASE)
		o.memory, o.calls = 0, nil
	}
}

func isCancelled(err error) bool { return errors.Is(err, windows.ERROR_OPERATION_ABORTED) }
