package browser

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Page is one page that was opened.
type Page struct {
	b       *Browser
	session string
	address string

	mu       sync.Mutex
	loaded   chan struct{}
	once     sync.Once
	console  []string // errors and warnings, exceptions, what a policy blocked
	requests []string // of everything but the page itself
}

// Open opens an address and waits until it is loaded.
func (b *Browser) Open(address string) (*Page, error) {
	var target struct{ TargetID string }
	if err := b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var attached struct{ SessionID string }
	if err := b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	p := &Page{b: b, session: attached.SessionID, address: address, loaded: make(chan struct{})}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page.enable", "Runtime.enable", "Log.enable", "Network.enable"} {
		if err := p.call(domain, nil, nil); err != nil {
			return nil, err
		}
	}
	var nav struct{ ErrorText string }
	if err := p.call("Page.navigate", map[string]any{"url": address}, &nav); err != nil {
		return nil, err
	}
	if nav.ErrorText != "" {
		return nil, fmt.Errorf("open %s: %s", address, nav.ErrorText)
	}
	select {
	case <-p.loaded:
		return p, nil
	case <-b.done:
		return nil, errors.New("open: the browser ended")
	case <-time.After(answerTime):
		return nil, fmt.Errorf("open %s: not loaded within %v", address, answerTime)
	}
}

func (p *Page) call(method string, params, out any) error {
	return p.b.call(p.session, method, params, out)
}

// event notes what the page does.
func (p *Page) event(method string, params json.RawMessage) {
	var e struct {
		Type  string
		Args  []struct{ Value any }
		Entry struct{ Level, Text, URL string }
		Exc   struct {
			Text      string
			Exception struct{ Description string }
		} `json:"exceptionDetails"`
		Request struct{ URL string }
		Message string
	}
	_ = json.Unmarshal(params, &e) // what does not fit stays empty
	p.mu.Lock()
	defer p.mu.Unlock()
	switch method {
	case "Page.loadEventFired":
		p.once.Do(func() { close(p.loaded) })
	case "Runtime.consoleAPICalled":
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			p.console = append(p.console, fmt.Sprint(e.Type, ": ", e.Args))
		}
	case "Runtime.exceptionThrown":
		p.console = append(p.console, "exception: "+e.Exc.Text+" "+e.Exc.Exception.Description)
	case "Log.entryAdded":
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			p.console = append(p.console, e.Entry.Level+": "+e.Entry.Text+" "+e.Entry.URL)
		}
	case "Page.javascriptDialogOpening":
		p.console = append(p.console, "dialog: "+e.Message)
	case "Network.requestWillBeSent":
		u := e.Request.URL
		if u != p.address && !strings.HasPrefix(u, "data:") {
			p.requests = append(p.requests, u)
		}
	}
}

// Console returns what was complained about so far.
func (p *Page) Console() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.console...)
}

// Requests returns what was asked for beside the page itself.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...)
}

// Media sets "screen" or "print" and the colour scheme that the reader prefers, and the
// width of the window in CSS pixels.
func (p *Page) Media(media, scheme string, width int) error {
	err := p.call("Emulation.setEmulatedMedia", map[string]any{
		"media": media, "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil)
	if err != nil {
		return err
	}
	return p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Screenshot is a PNG of the whole page.
func (p *Page) Screenshot() ([]byte, error) {
	var out struct{ Data []byte }
	var m struct {
		Size struct{ Width, Height float64 } `json:"cssContentSize"`
	}
	if err := p.call("Page.getLayoutMetrics", nil, &m); err != nil {
		return nil, err
	}
	err := p.call("Page.captureScreenshot", map[string]any{
		"format": "png", "captureBeyondViewport": true, "optimizeForSpeed": true,
		"clip": map[string]any{"x": 0, "y": 0, "width": m.Size.Width, "height": min(m.Size.Height, 16000), "scale": 1},
	}, &out)
	return out.Data, err
}

// PDF prints the page as the browser's print dialogue does by default, and counts pages.
func (p *Page) PDF() (data []byte, pages int, err error) {
	// Nothing is emulated: what the browser itself does on paper counts.
	if err := p.call("Emulation.setEmulatedMedia", map[string]any{"media": "", "features": []string{}}, nil); err != nil {
		return nil, 0, err
	}
	if err := p.call("Emulation.clearDeviceMetricsOverride", nil, nil); err != nil {
		return nil, 0, err
	}
	var out struct{ Data []byte }
	if err := p.call("Page.printToPDF", map[string]any{"preferCSSPageSize": true, "printBackground": false, "paperWidth": 8.27, "paperHeight": 11.69}, &out); err != nil {
		return nil, 0, err
	}
	for rest := out.Data; ; {
		i := bytes.Index(rest, []byte("/Type /Page"))
		if i < 0 {
			break
		}
		rest = rest[i+len("/Type /Page"):]
		if len(rest) > 0 && rest[0] != 's' {
			pages++
		}
	}
	return out.Data, pages, nil
}

// Eval evaluates an expression, waits for it if it is a promise, and reads its value into
// out, which may be nil.
func (p *Page) Eval(expression string, out any) error {
	var a struct {
		Result struct{ Value json.RawMessage }
		Exc    *struct {
			Text      string
			Exception struct{ Description string }
		} `json:"exceptionDetails"`
	}
	if err := p.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &a); err != nil {
		return err
	}
	if a.Exc != nil {
		return fmt.Errorf("evaluate: %s %s", a.Exc.Text, a.Exc.Exception.Description)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(a.Result.Value, out)
}
