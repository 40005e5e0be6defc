package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/plan"
	jsonrender "github.com/fullbore-net/fullbore/internal/render/json"
	"github.com/fullbore-net/fullbore/internal/render/junit"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// acceptOptions are the words of `fullbore accept`.
type acceptOptions struct {
	methodOptions
	link     int64
	profile  string
	file     string
	check    bool
	quick    bool
	items    []string
	streams  int
	window   int64
	cc       string
	mtu      int
	contract string
	junit    string
	resume   string
	swapped  string
	capture  string
	replay   string
	exchangeOptions
}

const acceptLong = `Hand over a link: measure everything that was promised, three times, in both directions,
check it from both ends and from their interfaces, and write a report that can be signed.

The items (M-ACCEPT): A0 pre-check of both ends and of the path's packet size · A1 TCP, one
stream · A2 TCP, several streams · A3 TCP, both ways at once · A4 UDP at 95 % of the link ·
A5 UDP, small packets · A6 latency under load · A7 the highest loss-free rate. Each is PASS,
FAIL or INCONCLUSIVE: what a busy processor, other traffic or a wrong counter can explain is
not put down to the link. The whole is as good as its worst item.

A2, A3 and A6 have as many streams as the knee, which is looked for first with 1 to 16 of them
(where there is none: 8, as with --quick); --streams N says how many. --rounds auto goes on
until the throughput of TCP settles, 3 to 10 rounds.

At the end the link's throughput is measured once more, shortly, with client and server
exchanged, where HOST is a fullbore that can connect to a port of this host (--swap-port
names it, --no-swap leaves this out): more than 3 % apart, it is a host that differs.

--link is the speed that was promised, as the line counts it (layer 1). --profile lan,
metro or wan fixes the limits; a suite file (--suite) sets items and limits one by one.
HOST runs "fullbore serve"; with an iperf3 server what one end alone cannot check is said.

Time: about 16 minutes and the search of A7; --quick makes a trial of about a minute, marked
as such in the report. Traffic: the whole link for most of that time (1 Gbit/s: about 100 GB;
--dry-run reckons it for yours; it is told again when the other end was met, before anything
is loaded). A server that takes shorter tests (--max-time) is asked for what it takes; items
that were agreed to be longer are inconclusive then. A break (Ctrl-C, a dead peer, a used-up --max-bytes) loses
nothing with --resume FILE.json: the same words go on where it ended.

Exit codes: 0 accepted, 1 an item failed, 2 inconclusive, 6 it broke off (the report tells what
was measured until then).`

const acceptExample = `  fullbore accept 192.0.2.2 --link 1G --report out.html
  fullbore accept 192.0.2.2 --link 1G --quick                a trial: 3 s an item, one round
  fullbore accept 192.0.2.2 --link 10G --profile lan --dry-run
  fullbore accept 192.0.2.2 --link 1G --rounds auto -P 8
  fullbore accept 192.0.2.2 --suite line-4711.yaml --junit out.xml --json > out.json
  fullbore accept --suite line-4711.yaml --check-config
  fullbore accept 192.0.2.2 --link 1G --resume out.json      goes on after a break
  fullbore accept 192.0.2.2 --link 1G --swapped there.json   compares with the other end's own
  fullbore accept --replay out.json --capture mirror.pcap --report out.html`

func newAcceptCmd(e *env) *cobra.Command {
	o := &acceptOptions{}
	cmd := &cobra.Command{
		Use:     "accept HOST",
		Short:   "Hand over a link: every item measured, checked from both ends, in a report to sign",
		Long:    acceptLong,
		Example: acceptExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.runAccept(cmd.Context(), o, strings.Join(args, ""))
		},
	}
	o.methodOptions.addFlags(cmd)
	o.exchangeOptions.addFlags(cmd)
	f := cmd.Flags()
	f.Var(rateFlag{&o.link}, "link", "speed of the link as the line counts it (layer 1), e.g. 1G; default: that of this host's interface")
	f.StringVar(&o.profile, "profile", "", "limits of lan, metro or wan (default metro)")
	f.StringVar(&o.file, "suite", "", "items and limits from FILE.yaml")
	f.BoolVar(&o.check, "check-config", false, "read the suite file, say what it asks for, and end")
	f.BoolVar(&o.quick, "quick", false, "a trial: 3 s an item, one round")
	f.StringSliceVar(&o.items, "items", nil, "only these, e.g. A1,A4 (the pre-check is always made)")
	f.IntVarP(&o.streams, "streams", "P", 0, "streams of A2, A3 and A6 (default: the knee, which is looked for first, else 8)")
	f.VarP(sizeFlag{&o.window}, "window", "w", "socket buffers of the TCP items (default: the systems' own)")
	f.StringVarP(&o.cc, "cc", "C", "", "congestion control of the TCP items (default: the systems' own)")
	f.IntVar(&o.mtu, "mtu", 0, "packet size that the path must carry (default: the interface's)")
	f.StringVar(&o.contract, "contract", "", "words for the report: contract, line, parties")
	f.StringVar(&o.junit, "junit", "", "write the items to FILE.xml, too, as JUnit does (for CI pipelines)")
	f.StringVar(&o.resume, "resume", "", "keep what was measured in FILE.json; what is there already, by the same settings, is not measured again")
	f.StringVar(&o.swapped, "swapped", "", "document (accept --json) of the same link made at the other end: roles exchanged")
	f.StringVar(&o.capture, "capture", "", "capture (pcap, pcapng) of a third point, made meanwhile: a cross-check of the runs")
	f.StringVar(&o.replay, "replay", "", "show a stored document of --json again, with --capture or --swapped, or as another kind of file; nothing is sent")
	return cmd
}

// theSuite is what the words ask for.
func (o *acceptOptions) theSuite() (suite.Suite, error) {
	class := suite.Class(o.profile)
	if o.profile == "" {
		class = suite.Metro
	}
	s, err := suite.Default(class, units.BitRate(o.link)), error(nil)
	if o.file != "" {
		data, ferr := os.ReadFile(o.file)
		if ferr != nil {
			return s, usagef("--suite: %v", ferr)
		}
		if s, err = suite.Parse(o.file, data, suite.Class(o.profile)); err != nil {
			return s, &UsageError{Msg: strings.TrimSpace(err.Error())}
		}
		if o.link > 0 {
			s.Link = units.BitRate(o.link)
		}
	} else if !suite.Known(class) {
		return s, usagef("--profile %s: there are lan, metro and wan", o.profile)
	}
	if o.mtu != 0 {
		s.MTU = o.mtu
	}
	if o.contract != "" {
		s.Contract = o.contract
	}
	s.Override(o.streams, o.window, o.cc)
	if o.quick {
		s = s.Shortened()
	}
	s.SetRounds(o.rounds.n, o.rounds.auto)
	if len(o.items) > 0 {
		if s, err = s.Only(o.items); err != nil {
			return s, usagef("--items: %v", err)
		}
	}
	return s, nil
}

func (e *env) runAccept(ctx context.Context, o *acceptOptions, host string) error {
	if err := o.exchangeOptions.check(); err != nil {
		return err
	}
	if err := o.checkFiles(); err != nil {
		return err
	}
	if o.replay != "" {
		if host != "" {
			return usagef("accept: a host has no place beside --replay")
		}
		return e.replayAccept(o)
	}
	s, err := o.theSuite()
	if err != nil {
		return err
	}
	if o.check {
		return e.checkSuite(o, s)
	}
	if host == "" {
		return usagef("accept: name one host (or a stored acceptance with --replay)")
	}
	w := pathTo(ctx, map[bool]string{true: "127.0.0.1", false: host}[host == "self"], o.family())
	from := o.linkFrom(&s)
	if s.Link == 0 && host != "self" {
		if _, err := osnet.Resolve(ctx, host, o.family()); err != nil { // or its interface were looked for
			return &result.Error{Code: "resolve", Text: err.Error()}
		}
		s.Link = units.BitRate(w.speed)
	}
	if err := s.Validate(); err != nil {
		u := &UsageError{Msg: "accept: " + strings.ReplaceAll(err.Error(), "\n", "; ")}
		if s.Link == 0 {
			u.Hints = []string{"the speed that was promised: fullbore accept " + host + " --link 1G"}
		}
		return u
	}
	a := &acceptance{e: e, o: o, host: host, way: w, linkFrom: from, method: suite.Method{Suite: s, Path: suite.Path{Family: w.family, MTU: w.mtu}, Exchange: o.exchange(host)}}
	a.hash = a.method.Hash(host, o.plan.Port)
	if err := a.resume(); err != nil {
		return err
	}
	if a.swapped, err = readAccept("--swapped", o.swapped); err != nil {
		return err
	}
	a.facts = e.acceptFacts(ctx, host, o.family())
	o.keep.host, o.keep.always = host, true // the way belongs to the record, kept in the history or not
	return e.runMethod(ctx, &o.methodOptions, a.job(ctx))
}

// linkFrom is where the link's speed comes from, as the document spells it.
func (o *acceptOptions) linkFrom(s *suite.Suite) string {
	switch {
	case o.link > 0:
		return suite.LinkGiven
	case s.Link > 0:
		return suite.LinkSuite
	}
	return suite.LinkInterface
}

// checkFiles finds out before anything is sent whether what will be written can be, and what
// will be read is there.
func (o *acceptOptions) checkFiles() error {
	for _, f := range []struct{ flag, file string }{{"--junit", o.junit}, {"--resume", o.resume}} {
		if f.file == "" {
			continue
		}
		if err := checkTarget(f.flag, f.file); err != nil {
			return err
		}
	}
	if o.capture != "" && o.replay == "" {
		return &UsageError{Msg: "--capture: the capture is there when the runs are over", Hints: []string{"afterwards: fullbore accept --replay out.json --capture " + o.capture}}
	}
	return checkReport(o.report)
}

// acceptFacts are this host's settings as far as the report looks at them.
func (e *env) acceptFacts(ctx context.Context, host string, family int) *result.Facts {
	peer := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if host != "self" {
		addrs, err := osnet.Resolve(ctx, host, family)
		if err != nil || len(addrs) == 0 {
			return nil // the test's own error says it better
		}
		peer = addrs[0]
	}
	return oshost.Settings(oshost.Take(ctx, peer))
}

// acceptance is one acceptance on its way.
type acceptance struct {
	e       *env
	o       *acceptOptions
	host    string
	method  suite.Method
	hash    string
	facts   *result.Facts
	swapped *result.Report
	saveErr error // of the last try to keep progress

	way      path   // towards the host, before anything is sent
	linkFrom string // where the link's speed comes from
}

func (a *acceptance) judge() *suite.Judge {
	host, again := a.words()
	return &suite.Judge{Method: a.method, Host: host, Again: again, Facts: a.facts, LinkFrom: a.linkFrom, File: a.o.file}
}

// words are those of commands that the report advises: the host with a port of its own, and what fixes
// the suite.
func (a *acceptance) words() (host, again string) {
	o, s := a.o, &a.method.Suite
	host = a.host
	if p := o.plan.Port; p != 0 && p != plan.DefaultPort && host != "self" {
		host += fmt.Sprintf(" -p %d", p)
	}
	if o.file != "" {
		again = "--suite " + shellWord(o.file) + " "
	}
	if o.file == "" || o.link > 0 {
		again += "--link " + s.Link.Exact() + " "
	}
	if o.file == "" || o.profile != "" {
		again += "--profile " + string(s.Class) + " "
	}
	if o.streams > 0 {
		again += fmt.Sprintf("-P %d ", o.streams)
	}
	if o.window > 0 {
		again += "-w " + units.ByteSize(o.window).Exact() + " "
	}
	if o.cc != "" {
		again += "-C " + shellWord(o.cc) + " "
	}
	if o.mtu > 0 {
		again += fmt.Sprintf("--mtu %d ", o.mtu)
	}
	return host, strings.TrimSpace(again)
}

// shellWord is a word as a shell takes it.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (a *acceptance) job(ctx context.Context) methodJob {
	head, volume := a.announcement(a.method)
	job := methodJob{
		kind: "accept", host: a.host, head: head, volume: volume,
		meeting: fmt.Sprintf("Acceptance of the link of %s to %s: the empty path first, before anything is loaded", a.method.Suite.Link, a.host),
		met: func(history []method.Done) (head, volume string) {
			m := a.method
			m.Earlier = history
			return a.announcement(m)
		},
		method: a.method, possible: a.method.Possible(), earlier: a.method.Earlier,
		row: acceptStep, final: acceptFinal, extra: a.selfCheck, write: a.write,
		fill:      func(rep *result.Report, history []method.Done) { a.fill(ctx, rep, history) },
		ownRounds: true,
		failed:    func(rep *result.Report) bool { return suite.Total(rep) == result.Fail },
		answered:  func(rep *result.Report) bool { return suite.Total(rep) == result.Pass },
	}
	if a.o.resume != "" {
		job.ended = a.save
	}
	return job
}

// announcement says what is still to be made by m, how long that takes and how much it moves, and what is
// known already to speak against it.
func (a *acceptance) announcement(m suite.Method) (head, volume string) {
	s := &m.Suite
	least, most := m.Length()
	head = fmt.Sprintf("Acceptance of the link of %s to %s by %s, about %s", s.Link, a.host, s.Name, units.FormatDuration(least.Round(time.Second)))
	if most > least {
		head += fmt.Sprintf(" (%s where the rounds do not settle)", units.FormatDuration(most.Round(time.Second)))
	}
	if s.Quick {
		head += " (a trial)"
	}
	search := ""
	if s.Searches() {
		each := 2 * time.Minute // about what M-NDR takes in a direction
		if s.Quick {
			each = 30 * time.Second
		}
		search = fmt.Sprintf(", and the search of the loss-free rate: about %s in each direction near the link's rate, %s in all", units.FormatDuration(each), units.ByteSize(float64(s.Link)/8*2*each.Seconds()))
	}
	volume = fmt.Sprintf("Traffic: about %s of payload%s.", units.ByteSize(m.Volume()), search)
	if s.Assumed {
		volume += " A trial does not look for the knee: the items with several streams have 8 (--streams N says another number)."
	}
	if a.linkFrom == suite.LinkInterface {
		volume += fmt.Sprintf(" The link's speed is that of %s here; what was promised, --link says.", a.way.nic)
	}
	if v := a.way.speed; v > 0 && v < int64(s.Link) {
		volume += fmt.Sprintf(" %s of this host runs at %s only, less than the link's speed: A0 will not pass.", a.way.nic, units.BitRate(v))
	}
	if ids, most, needs := m.Cramped(nil); len(ids) > 0 {
		volume += fmt.Sprintf(" The server takes tests of %s at most (--max-time there): those of %s will be shorter than agreed, and so inconclusive at best; whole ones take %s.", units.FormatDuration(most), strings.Join(ids, ", "), units.FormatDuration(needs))
	}
	return head, volume
}

// fill judges.
func (a *acceptance) fill(ctx context.Context, rep *result.Report, history []method.Done) {
	var there []*result.Run
	for i := range history {
		if d := &history[i]; d.Run != nil && !suite.Beside(d.Step.Name) {
			there = append(there, d.Run)
		}
	}
	a.o.keep.setHops(ctx, a.e, there...) // now, since the document's hash is over all of it
	j := a.judge()
	for _, d := range history {
		if d.Step.Name == suite.SelfStep {
			if v, ok := method.Goodput(d.Run, result.Up); ok {
				j.Self = &v
			}
		}
	}
	j.Fill(rep, history)
	rep.Acceptance.Settings = a.hash
	if a.swapped != nil {
		if err := suite.Swapped(rep, a.swapped); err != nil {
			rep.Notices = append(rep.Notices, result.Notice{Code: "swapped-unfit", Level: result.Warn, Text: fmt.Sprintf("the document of --swapped was not compared: %v", err)})
		}
	}
	if rep.Err == nil {
		rep.Err = lastRefusal(history)
	}
	if _, more := a.method.Next(history[min(len(a.method.Earlier), len(history)):]); rep.Err != nil || more {
		a.unfinished(rep)
	}
	if a.saveErr != nil {
		rep.Notices = append(rep.Notices, result.Notice{Code: "progress-unsaved", Level: result.Warn, Text: fmt.Sprintf("what was measured could not be kept in %s: %v", a.o.resume, a.saveErr)})
	}
}

// lastRefusal is why the last step could not begin, those beside the items left out; nil when it could,
// or was the first: then the report itself has that.
func lastRefusal(history []method.Done) *result.Error {
	made := slices.DeleteFunc(slices.Clone(history), func(d method.Done) bool { return suite.Beside(d.Step.Name) })
	if n := len(made); n > 1 && suite.Refused(&made[n-1]) {
		return made[n-1].Err
	}
	return nil
}

// notFinished begins the closing sentence of an acceptance that did not come to its end.
const notFinished = "NOT FINISHED. "

// unfinished says so in the closing sentence, and how it goes on.
func (a *acceptance) unfinished(rep *result.Report) {
	rep.Summary = notFinished + rep.Summary
	if a.o.resume == "" {
		return
	}
	rep.Acceptance.Todo = append([]result.AdviceAt{{
		Where: "later", Text: "Not all was measured. What was is kept; the same words go on where it ended:",
		Commands: []string{"fullbore accept " + strings.Join(shellWords(a.e.words), " ")},
	}}, rep.Acceptance.Todo...)
}

func shellWords(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = shellWord(w)
	}
	return out
}

// selfCheck measures this machine alone (M-SELF).
func (a *acceptance) selfCheck(ctx context.Context, r *runner.Runner, view *stageView, events result.Sink, history []method.Done) []method.Done {
	for _, d := range history {
		if d.Step.Name == suite.SelfStep {
			return nil
		}
	}
	if a.host == "self" || a.o.maxBytes > 0 || len(history) < 2 || lastRefusal(history) != nil {
		return nil // it is this machine; a budget is the link's; nothing was measured, or it broke off
	}
	srv, err := a.e.startSelf(ctx)
	if err != nil {
		return nil // the report says that it was not made
	}
	defer srv.stop()
	step := method.Step{
		Name: suite.SelfStep, Title: "A0 this machine alone", Why: "it must be well above the link",
		Plan: plan.Plan{Streams: 1, Duration: time.Second, Send: plan.SendCheapest, Receive: plan.Discard, RemoteDiscard: true},
	}
	return r.Drive(ctx, runner.Drive{
		Method: method.Once(step), Complete: func(p plan.Plan) plan.Plan {
			p.Host, p.Port, p.Own = srv.host, srv.port, true
			return p
		},
		Begin: view.begin, Events: events, End: view.end,
	}).History
}

// write puts the report into the further files.
func (a *acceptance) write(rep *result.Report) error { return a.e.writeAccept(a.o, rep) }

func (e *env) writeAccept(o *acceptOptions, rep *result.Report) error {
	if o.junit != "" {
		var b bytes.Buffer
		if err := junit.WriteReport(&b, rep); err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
		if err := replaceFile(o.junit, b.Bytes()); err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
	}
	if o.resume != "" {
		if err := saveReport(o.resume, rep); err != nil {
			return fmt.Errorf("--resume: %w", err)
		}
	}
	return nil
}

// save keeps the progress after a step.
func (a *acceptance) save(history []method.Done) {
	rep := &result.Report{
		Schema: result.Schema, Kind: "accept", Tool: result.Tool{Name: "fullbore", Version: Version}, Started: result.Now(a.e.Now()),
		Inputs: a.e.words, Runs: []*result.Run{}, Verdicts: []result.Verdict{}, Items: []result.Item{}, Notices: []result.Notice{},
	}
	addStages(rep, history)
	a.judge().Fill(rep, history)
	rep.Acceptance.Settings = a.hash
	rep.Summary = notFinished + rep.Summary
	a.saveErr = saveReport(a.o.resume, rep)
}

func saveReport(file string, rep *result.Report) error {
	var b bytes.Buffer
	if err := jsonrender.WriteReport(&b, rep); err != nil {
		return err
	}
	return replaceFile(file, b.Bytes())
}

// replaceFile writes a file so that at any time it is the old one or the whole new one.
func replaceFile(file string, data []byte) error {
	part, err := os.CreateTemp(filepath.Dir(file), ".fullbore-*")
	if err != nil {
		return err
	}
	_, err = part.Write(data)
	err = errors.Join(err, part.Close())
	if err == nil {
		err = os.Chmod(part.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(part.Name(), file)
	}
	if err != nil {
		_ = os.Remove(part.Name())
	}
	return err
}

// resume takes what an earlier command with the same settings measured.
func (a *acceptance) resume() error {
	if a.o.resume == "" {
		return nil
	}
	if _, err := os.Stat(a.o.resume); errors.Is(err, os.ErrNotExist) {
		return nil // it begins now
	}
	rep, err := readAccept("--resume", a.o.resume)
	if err != nil {
		return err
	}
	if rep.Acceptance.Settings != a.hash {
		was := "give the words of that time, or another file"
		if len(rep.Inputs) > 0 {
			was = "the words of that time: fullbore accept " + strings.Join(shellWords(rep.Inputs), " ")
		}
		return &UsageError{Msg: fmt.Sprintf("--resume %s: it was measured with other settings (link, suite, host or packet size): it is about %s", a.o.resume, about(rep)), Hints: []string{was}}
	}
	a.method.Earlier = suite.Kept(suite.History(rep))
	fmt.Fprintf(a.e.Err, "fullbore: %d steps of %s are kept\n", len(a.method.Earlier), a.o.resume)
	return nil
}

// about says what a stored acceptance is about.
func about(rep *result.Report) string {
	x := rep.Acceptance
	text := fmt.Sprintf("a link of %s by %s", units.BitRate(x.Link), x.Suite)
	if x.Trial {
		text += ", a trial"
	}
	for _, run := range rep.Runs {
		if run.Test.Target != "" {
			return text + ", to " + run.Test.Target
		}
	}
	return text
}

// readAccept reads a document of accept --json; nil for no file.
func readAccept(flag, file string) (*result.Report, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, usagef("%s: %v", flag, err)
	}
	rep := &result.Report{}
	if err := json.Unmarshal(data, rep); err != nil {
		return nil, usagef("%s %s: %v", flag, file, err)
	}
	if rep.Kind != "accept" || rep.Acceptance == nil {
		return nil, usagef("%s %s: it is no document of accept --json", flag, file)
	}
	return rep, nil
}
