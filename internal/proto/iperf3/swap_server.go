package iperf3

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
	"github.com/fullbore-net/fullbore/internal/traffic"
	"github.com/fullbore-net/fullbore/result"
)

// A server that plays the client of a client's test (docs/wire-extension.md §13). It stands in the
// open, so it must not become a way to send anything to anybody else: it connects to the address
// that its control connection comes from and to no other, above the ports of services; it says
// nothing there but a cookie until what answers has named this very conversation; and what it tells
// of a failure is one of five words.

// swapDial is how long such a server waits for its connection.
const swapDial = 4 * time.Second

// swaps reports that this server plays clients' tests. One that keeps to iperf3's ways (a drop-in),
// that ends tests by what they average, or that moves a file, does not.
func (s *Server) swaps() bool {
	p := &s.Policy
	return !p.NoSwap && !s.Plain && p.RateLimit == 0 && p.File == ""
}

// swapping reports that the client wants this end to play its test, and that it does such things.
func (t *session) swapping() bool {
	return t.hello.Has(ext.FeatureSwap) && t.hello.Swap != nil && t.s.swaps()
}

// cookieOf is the cookie that a token is; false = it has not the form of one. Nothing else is
// ever sent to a port that a client names.
func cookieOf(token string) (c Cookie, ok bool) {
	if len(token) != CookieSize-1 || strings.Trim(token, cookieAlphabet) != "" {
		return c, false
	}
	copy(c[:], token)
	return c, true
}

// role is what this end is in the test that the session's events tell of.
func (t *session) role() result.End {
	if t.swapping() {
		return result.Client
	}
	return result.Server
}

// checkSwap is what policy has to say of such a test besides.
func (t *session) checkSwap() error {
	if !t.swapping() {
		return nil
	}
	refuse := func(format string, args ...any) error {
		return &result.Error{Code: "refused", Number: codeRecvParams, Text: "refused: " + fmt.Sprintf(format, args...)}
	}
	w := t.hello.Swap
	_, token := cookieOf(w.Token)
	switch {
	case t.plan.Transport != plan.TCP || t.plan.MPTCP || t.hello.ProbeOnly:
		return refuse("the roles of a TCP test can be exchanged, of no other")
	case t.plan.Duration == 0:
		return refuse("a test with exchanged roles needs a time limit")
	case w.Port < plan.MinSwapPort || w.Port > 65535:
		return refuse("the client is to be reached at port %d, allowed are %d…65535", w.Port, plan.MinSwapPort)
	case !token || w.MaxBytes < 0 || w.MaxRate < 0:
		return refuse("what the client says of its own server makes no sense")
	}
	return nil
}

// swapClient is the client that plays the test: what was asked for, within this server's policy.
func (t *session) swapClient() *Client {
	w := t.hello.Swap
	p := t.plan
	p.Host, p.Port, p.BindHost, p.BindDev = t.peer.String(), w.Port, t.local.Host, t.s.Policy.BindDev
	p.ConnectTimeout = swapDial
	p.Title, p.ExtraData, p.GetServerOutput = "", "", false
	p.MaxBytes, p.MaxRate = w.MaxBytes, lowest(w.MaxRate, t.s.Policy.MaxRate)
	if !t.hello.Has(ext.FeatureEvents) {
		p.Extension = "quiet"
	}
	token, _ := cookieOf(w.Token) // checkSwap saw to its form
	return &Client{
		Plan: p, Tool: t.s.Tool, Version: t.s.Version, SocketBase: t.s.SocketBase, Host: t.sampler(), Facts: t.facts(), Now: t.s.Now,
		Timeouts: t.s.Timeouts, token: &token, swapOf: hex.EncodeToString(t.testID[:]),
	}
}

// swapTest is the data phase and the end of such a test. Its events are those of the test that is
// played, where this end is the client.
func (t *session) swapTest(ctx context.Context) error {
	t.refuseStreams() // none belongs to this conversation
	t.totals = &traffic.Totals{}
	t.ctl.maxDoc.Store(MaxResults)
	if err := t.ctl.sendState(t.s.to.Answer, StateTestStart, StateTestRunning); err != nil {
		return t.closedError(err)
	}
	why, err := t.playSwapped(ctx)
	if err != nil {
		return err
	}
	t.swapped = &ext.Swapped{Why: why}
	t.ending.Store(true)
	return t.swapResults(ctx)
}

// playSwapped plays the test, and ends it with whatever ends the conversation. why is for the client.
func (t *session) playSwapped(ctx context.Context) (why string, err error) {
	pctx, stop := context.WithCancelCause(ctx)
	c := t.swapClient()
	played := make(chan error, 1)
	go func() { played <- c.Run(pctx, t.out) }() // ends with pctx at the latest; always waited for
	end := func(why error) error {
		stop(why)
		<-played
		return why
	}
	defer stop(nil)
	hard := time.NewTimer(t.plan.Omit + t.plan.Duration + swapDial + t.s.to.Grace)
	defer hard.Stop()
	for {
		select {
		case err := <-played:
			return swapWhy(err, c.proved), nil
		case in, ok := <-t.ctl.in:
			over, err := t.word(in, ok)
			switch {
			case err != nil:
				return "", end(err)
			case over:
				_ = end(&result.Error{Code: "client-terminated", Remote: true, Number: codeClientTerm, Text: "the client stopped the test"})
				return ext.SwapBroke, nil
			}
		case <-hard.C:
			return "", end(&result.Error{
				Code: "expired", Number: codeDurationExpired,
				Text: fmt.Sprintf("the test did not end %v after its time: given up", t.s.to.Grace),
			})
		case <-t.overlap:
			t.noteOverlap(t.s.beside())
		case e := <-t.failed:
			return "", end(e)
		case <-ctx.Done():
			return "", end(context.Cause(ctx))
		}
	}
}

// swapWhy is what the client is told of how its test ended for this end; proved = what answered
// was its server.
func swapWhy(err error, proved bool) string {
	e := asResult(err)
	switch {
	case err == nil:
		return ""
	case proved || e == nil || e.Code == "address" || e.Code == "resolve":
		return ext.SwapBroke
	case e.Code != "connect":
		return ext.SwapStranger
	}
	switch e.Errno {
	case linuxECONNREFUSED, linuxECONNRESET:
		return ext.SwapRefused
	case linuxETIMEDOUT:
		return ext.SwapNoAnswer
	}
	return ext.SwapNoRoute
}

// errStranger: what answered a client that plays another's test is not that one's server.
var errStranger = &result.Error{Code: "not-iperf3", Number: codeMessage, Text: "what answers there is not the server that the test is with"}

// rightServer checks, for a client that plays another's test, that who answers is that one's
// server: its hello names the conversation, which its two ends alone know (and who reads along).
func (r *clientRun) rightServer() error {
	if r.c.swapOf == "" {
		return nil
	}
	if r.hello == nil || subtle.ConstantTimeCompare([]byte(r.hello.Swap), []byte(r.c.swapOf)) != 1 {
		return errStranger
	}
	r.c.proved = true
	return nil
}
