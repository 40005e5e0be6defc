package process

import (
	"os"

	"golang.org/x/sys/windows"
)

// VirtualTerminal makes the console f understand control sequences (colours, the cursor).
// A console does so only when it is asked to, and those before Windows 10 never do: then ok
// is false, as it is where f is no console. restore puts the console's mode back.
func VirtualTerminal(f *os.File) (restore func(), ok bool) {
	h := windows.Handle(f.Fd())
	var mode uint32
	if windows.GetConsoleMode(h, &mode) != nil {
		return func() {}, false
	}
	const wanted = windows.ENABLE_PROCESSED_OUTPUT | windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING
	if mode&wanted == wanted {
		return func() {}, true
	}
	if windows.SetConsoleMode(h, mode|wanted) != nil {
		return func() {}, false
	}
	// A console that ignores what it does not know says so when it is asked again.
	var got uint32
	if windows.GetConsoleMode(h, &got) != nil || got&wanted != wanted {
		_ = windows.SetConsoleMode(h, mode)
		return func() {}, false
	}
	return func() { _ = windows.SetConsoleMode(h, mode) }, true
}
