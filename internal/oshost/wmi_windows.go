package oshost

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// The least of COM that reads WMI: a connection to a namespace, a query, the properties of
// what it returns (wbemcli.h). Windows keeps TCP's settings and what a card's driver made of
// its offloads nowhere else than behind this API, netsh and PowerShell; their text is
// translated, these values are not.

// wmiTimeout bounds the reading of everything: a broken WMI service never answers.
const wmiTimeout = 15 * time.Second

// wmiRead runs queries in a namespace, one result for each. It returns when they are
// answered, when ctx ends or after wmiTimeout; in the latter cases its goroutine lives until
// the service answers, for it cannot be called back.
func wmiRead(ctx context.Context, namespace string, queries []wmiQuery) (winSettings, error) {
	type answer struct {
		rows winSettings
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		rows, err := wmiSession(namespace, queries)
		done <- answer{rows, err}
	}()
	timer := time.NewTimer(wmiTimeout)
	defer timer.Stop()
	select {
	case a := <-done:
		return a.rows, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-timer.C:
		return nil, fmt.Errorf("WMI did not answer within %v", wmiTimeout)
	}
}

var (
	clsidWbemLocator = windows.GUID{Data1: 0x4590f811, Data2: 0x1d3a, Data3: 0x11d0, Data4: [8]byte{0x89, 0x1f, 0, 0xaa, 0, 0x4b, 0x2e, 0x24}}
	iidWbemLocator   = windows.GUID{Data1: 0xdc12a687, Data2: 0x737f, Data3: 0x11cf, Data4: [8]byte{0x88, 0x4d, 0, 0xaa, 0, 0x4b, 0x2e, 0x24}}
)

// Places of the methods in the interfaces' tables (wbemcli.h).
const (
	unknownRelease       = 2
	locatorConnectServer = 3
	servicesExecQuery    = 20
	enumNext             = 4
	objectGet            = 4
)

const (
	comMultithreaded   = 0
	comInproc          = 1          // CLSCTX_INPROC_SERVER
	comChangedMode     = 0x80010106 // RPC_E_CHANGED_MODE: the thread has COM already
	comTooLate         = 0x80010119 // RPC_E_TOO_LATE: the process's security is set already
	comAuthnWinNT      = 10         // RPC_C_AUTHN_WINNT
	comAuthnCall       = 3          // RPC_C_AUTHN_LEVEL_CALL
	comImpersonate     = 3          // RPC_C_IMP_LEVEL_IMPERSONATE: providers act as the caller
	wbemUseMaxWait     = 0x80       // WBEM_FLAG_CONNECT_USE_MAX_WAIT
	wbemForwardOnly    = 0x30       // with RETURN_IMMEDIATELY
	wbemTimedOut       = 0x40004    // WBEM_S_TIMEDOUT
	wbemNotFound       = 0x80041002 // WBEM_E_NOT_FOUND: this release has no such property
	wbemMillisecondsTo = 10_000     // wait for the next object
)

// comCalls are the procedures that are used.
type comCalls struct {
	initialize, uninitialize, security, create, blanket *windows.LazyProc // ole32
	alloc, free, clear                                  *windows.LazyProc // oleaut32
}

func newComCalls() (*comCalls, error) {
	ole, aut := windows.NewLazySystemDLL("ole32.dll"), windows.NewLazySystemDLL("oleaut32.dll")
	c := &comCalls{
		initialize: ole.NewProc("CoInitializeEx"), uninitialize: ole.NewProc("CoUninitialize"),
		security: ole.NewProc("CoInitializeSecurity"), create: ole.NewProc("CoCreateInstance"), blanket: ole.NewProc("CoSetProxyBlanket"),
		alloc: aut.NewProc("SysAllocString"), free: aut.NewProc("SysFreeString"), clear: aut.NewProc("VariantClear"),
	}
	for _, p := range []*windows.LazyProc{c.initialize, c.uninitialize, c.security, c.create, c.blanket, c.alloc, c.free, c.clear} {
		if err := p.Find(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// hresults are the failures that people meet (wbemcli.h, winerror.h).
var hresults = map[uint32]string{
	0x80041003: "access denied", 0x80070005: "access denied", 0x8004100e: "there is no such namespace",
	0x80041010: "there is no such class", 0x80041013: "its provider does not load", 0x80041014: "a component does not start",
	0x800706ba: "the service is not there", 0x80040154: "not installed",
}

// hresult turns a call's result into an error; positive ones are successes of a kind.
func hresult(what string, r uintptr) error {
	if int32(r) >= 0 {
		return nil
	}
	text := hresults[uint32(r)]
	if text == "" {
		text = "failed"
	}
	return fmt.Errorf("%s: %s (0x%08x)", what, text, uint32(r))
}

// comObject is an interface pointer: it points to a pointer to a table of methods.
type comObject struct{ methods *[32]uintptr }

// call calls a method; the object is its first argument.
//
//go:uintptrescapes
func (o *comObject) call(method int, args ...uintptr) uintptr {
	r, _, _ := syscall.SyscallN(o.methods[method], append([]uintptr{uintptr(unsafe.Pointer(o))}, args...)...)
	return r
}

func (o *comObject) release() { o.call(unknownRelease) }

// bstr is a string that COM owns; whoever makes it frees it.
func (c *comCalls) bstr(s string) (uintptr, error) {
	p, err := windows.UTF16PtrFromString(s)
	if err != nil {
		return 0, err
	}
	b, _, _ := c.alloc.Call(uintptr(unsafe.Pointer(p)))
	if b == 0 {
		return 0, errors.New("no memory for a string")
	}
	return b, nil
}

func (c *comCalls) freeString(b uintptr) { _, _, _ = c.free.Call(b) }

// wmiSession does the work on the calling thread, which must be locked.
func wmiSession(namespace string, queries []wmiQuery) (winSettings, error) {
	c, err := newComCalls()
	if err != nil {
		return nil, err
	}
	r, _, _ := c.initialize.Call(0, comMultithreaded)
	if err := hresult("CoInitializeEx", r); err != nil && uint32(r) != comChangedMode {
		return nil, err
	} else if err == nil {
		defer func() { _, _, _ = c.uninitialize.Call() }()
	}
	const everybody = ^uintptr(0) // as many authentication services as COM likes
	r, _, _ = c.security.Call(0, everybody, 0, 0, 0, comImpersonate, 0, 0, 0)
	if err := hresult("CoInitializeSecurity", r); err != nil && uint32(r) != comTooLate {
		return nil, err
	}
	services, err := c.connect(namespace)
	if err != nil {
		return nil, err
	}
	defer services.release()
	out := winSettings{}
	var errs []error
	for _, q := range queries {
		rows, err := c.query(services, q)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", q.class, err))
			continue
		}
		out[q.class] = rows
	}
	return out, errors.Join(errs...)
}

func (c *comCalls) connect(namespace string) (*comObject, error) {
	var locator, services *comObject
	r, _, _ := c.create.Call(uintptr(unsafe.Pointer(&clsidWbemLocator)), 0, comInproc,
		uintptr(unsafe.Pointer(&iidWbemLocator)), uintptr(unsafe.Pointer(&locator)))
	if err := hresult("WbemLocator", r); err != nil {
		return nil, err
	}
	defer locator.release()
	name, err := c.bstr(namespace)
	if err != nil {
		return nil, err
	}
	defer c.freeString(name)
	r = locator.call(locatorConnectServer, name, 0, 0, 0, wbemUseMaxWait, 0, 0, uintptr(unsafe.Pointer(&services)))
	if err := hresult(namespace, r); err != nil {
		return nil, err
	}
	return services, c.trust(services)
}

// trust lets the service act as this user: without it providers refuse.
func (c *comCalls) trust(proxy *comObject) error {
	r, _, _ := c.blanket.Call(uintptr(unsafe.Pointer(proxy)), comAuthnWinNT, 0, 0, comAuthnCall, comImpersonate, 0, 0)
	const noProxy = 0x80004002 // E_NOINTERFACE: the object is in this process (Wine)
	if uint32(r) == noProxy {
		return nil
	}
	return hresult("CoSetProxyBlanket", r)
}

func (c *comCalls) query(services *comObject, q wmiQuery) ([]wmiRow, error) {
	language, err := c.bstr("WQL")
	if err != nil {
		return nil, err
	}
	defer c.freeString(language)
	text, err := c.bstr("SELECT * FROM " + q.class) // a property that a release lacks must not fail the rest
	if err != nil {
		return nil, err
	}
	defer c.freeString(text)
	var rows *comObject
	if err := hresult("query", services.call(servicesExecQuery, language, text, wbemForwardOnly, 0, uintptr(unsafe.Pointer(&rows)))); err != nil {
		return nil, err
	}
	defer rows.release()
	if err := c.trust(rows); err != nil {
		return nil, err
	}
	out := []wmiRow{}
	for {
		var one *comObject
		var n uint32
		r := rows.call(enumNext, wbemMillisecondsTo, 1, uintptr(unsafe.Pointer(&one)), uintptr(unsafe.Pointer(&n)))
		switch err := hresult("next", r); {
		case err != nil:
			return nil, err
		case uint32(r) == wbemTimedOut:
			return nil, errors.New("no answer")
		case n == 0:
			return out, nil
		}
		row, err := c.row(one, q.props)
		one.release()
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
}

// variant is VARIANT (oaidl.h): a kind, then a value of up to two machine words.
type variant struct {
	kind  uint16
	_     [3]uint16
	value [2]uint64
}

// Kinds of variant that WMI returns (wtypes.h); uint8 comes as ui1, uint16 and uint32 as i4,
// 64-bit numbers as text.
const (
	kindI2, kindI4, kindText, kindBool, kindUI1, kindUI2, kindUI4 = 2, 3, 8, 11, 17, 18, 19
)

func (c *comCalls) row(o *comObject, props []string) (wmiRow, error) {
	row := wmiRow{}
	for _, p := range props {
		name, err := windows.UTF16PtrFromString(p)
		if err != nil {
			return nil, err
		}
		var v variant
		r := o.call(objectGet, uintptr(unsafe.Pointer(name)), 0, uintptr(unsafe.Pointer(&v)), 0, 0)
		if uint32(r) == wbemNotFound {
			continue
		}
		if err := hresult(p, r); err != nil {
			return nil, err
		}
		if value, ok := v.read(); ok {
			row[p] = value
		}
		_, _, _ = c.clear.Call(uintptr(unsafe.Pointer(&v)))
	}
	return row, nil
}

// read returns false for what is null or of a kind that is not used here.
func (v *variant) read() (wmiValue, bool) {
	number := func(n int64) (wmiValue, bool) { return wmiValue{Number: &n}, true }
	word := v.value[0]
	switch v.kind {
	case kindI2:
		return number(int64(int16(word)))
	case kindI4:
		return number(int64(int32(word)))
	case kindUI1:
		return number(int64(uint8(word)))
	case kindUI2:
		return number(int64(uint16(word)))
	case kindUI4:
		return number(int64(uint32(word)))
	case kindBool: // VARIANT_TRUE is −1
		if uint16(word) != 0 {
			return number(1)
		}
		return number(0)
	case kindText:
		return wmiValue{Text: windows.UTF16PtrToString(*(**uint16)(unsafe.Pointer(&v.value[0])))}, true
	}
	return wmiValue{}, false
}
