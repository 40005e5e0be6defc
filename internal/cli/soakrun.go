package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fullbore-net/fullbore/internal/conclude"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/osnet"
	"github.com/fullbore-net/fullbore/internal/pause"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/render/jsonstream"
	"github.com/fullbore-net/fullbore/internal/render/screen"
	"github.com/fullbore-net/fullbore/internal/runner"
	"github.com/fullbore-net/fullbore/internal/soak"
	"github.com/fullbore-net/fullbore/internal/units"
	"github.com/fullbore-net/fullbore/result"
)

// soakRows is how many intervals a run of a soak keeps: a minute of both ends.
const soakRows = 600

func (e *env) runSoak(ctx context.Context, o *soakOptions, host string, given func(string) bool) error {
	job := methodJob{kind: "soak", host: host, figures: soakFigures, figure: "rate", measured: soakMeasured, final: soakFinal}
	wishes, err := job.thresholds(o.expect)
	if err != nil {
		return err
	}
	if err := checkReport(o.report); err != nil {
		return err
	}
	if err := o.keep.check(); err != nil {
		return err
	}
	if o.rounds.asked() {
		return usagef("--rounds: a soak is one long round")
	}
	s := &soaking{e: e, o: o, job: job, wishes: wishes, offset: 0}
	switch {
	case o.replay != "":
		return s.again(ctx)
	case o.resume != "":
		if err := s.open(); err != nil {
			return err
		}
	default:
		h, err := o.head(ctx, e, host, given)
		if err != nil {
			return err
		}
		s.book = soak.NewBook(*h)
	}
	h := &s.book.Head
	s.job.head = fmt.Sprintf("Soaking the path to %s for %s", h.Plan.Host, soak.Seconds(h.Asked-s.offset))
	s.job.volume = soakVolume(ctx, h, o.maxBytes)
	if o.dryRun {
		s.job.dry(e.Out)
		return nil
	}
	return s.run(ctx)
}

// soaking is one soak on its way.
type soaking struct {
	e      *env
	o      *soakOptions
	job    methodJob
	wishes []threshold
	book   *soak.Book
	record *soak.Record
	file   string
	offset float64
	view   *stageView
	last   time.Time // of the last line for people
	gone   int       // outages that were told
}

// open goes on with a record.
func (s *soaking) open() error {
	rec, book, err := soak.Open(s.o.resume)
	if err != nil {
		return usagef("--resume: %v", err)
	}
	offset := s.e.Now().Sub(book.Head.Started).Seconds()
	if offset < book.At {
		_ = rec.Close()
		return usagef("--resume %s: it was begun %s and reaches to %s after that, which is later than now: is this host's clock right?", s.o.resume, book.Head.Started.Format(time.RFC3339), soak.Seconds(book.At))
	}
	if offset > book.Head.Asked-5 {
		_ = rec.Close()
		return &UsageError{Msg: fmt.Sprintf("--resume %s: its time is over", s.o.resume), Hints: []string{"to see what it says: fullbore soak --replay " + s.o.resume}}
	}
	s.book, s.record, s.file, s.offset = book, rec, s.o.resume, offset
	return nil
}

// again judges a record.
func (s *soaking) again(ctx context.Context) error {
	in, err := os.Open(s.o.replay)
	if err != nil {
		return usagef("--replay: %v", err)
	}
	defer func() { _ = in.Close() }()
	book, _, err := soak.Read(in)
	if err != nil {
		return usagef("--replay %s: %v", s.o.replay, err)
	}
	s.book, s.file = book, s.o.replay
	s.o.keep.noStore = true // it was kept when it was made
	s.view = s.e.newStageView(!s.o.json && !s.o.stream && !s.o.silent, s.o.plainLines)
	if err := s.o.judge(&book.Head.Judge); err != nil {
		return err
	}
	played := soak.Played{}
	if book.Ended != nil {
		played.Err = book.Ended.Err
	}
	return s.close(ctx, played)
}

func (s *soaking) run(ctx context.Context) error {
	e, h := s.e, &s.book.Head
	ctx, stop := e.interruptible(ctx)
	defer stop()
	if h.Self {
		srv, err := e.startSelf(ctx)
		if err != nil {
			return err
		}
		defer srv.stop()
		h.Plan.Host, h.Plan.Port, h.Plan.Own = srv.host, srv.port, true
	}
	s.view = e.newStageView(!s.o.json && !s.o.stream && !s.o.silent, s.o.plainLines)
	if s.view.shows {
		fmt.Fprintf(e.Out, "%s\n", s.view.paint("1", screen.Clean(s.job.head)))
		s.view.line("", s.job.volume)
	}
	r := &runner.Runner{Version: Version, Now: e.Now, Log: e.logger(), KeepRows: soakRows}
	ext, err := s.hello(ctx, r)
	if err != nil {
		e.printError(err)
		return &codeError{code: exitCode(err)}
	}
	if s.offset == 0 { // the soak's clock begins now, behind the hello
		h.Started = result.Now(e.Now())
	}
	if err := s.begin(); err != nil {
		return err
	}
	var events result.Sink
	if s.o.stream {
		events = jsonstream.New(e.Out)
	}
	s.last = e.Now()
	p := &soak.Player{
		Book: s.book, Record: s.record, Reach: s.reach(ctx), Machine: machineNow, Show: s.show, Offset: s.offset, Extension: ext, MaxBytes: s.o.maxBytes,
		Run: func(ctx context.Context, p plan.Plan, sink result.Sink) (*result.Run, error) {
			return r.Run(ctx, p, result.Tee(sink, events))
		},
	}
	s.bound(ctx)
	played := p.Play(ctx)
	if err := s.record.Close(); err != nil && played.Err == nil {
		played.Err = &result.Error{Code: "failed", Text: err.Error()}
	}
	if s.view.draws {
		fmt.Fprint(e.Out, "\r\x1b[K")
	}
	return s.close(ctx, played)
}

// begin makes the record of a new soak.
func (s *soaking) begin() error {
	if s.record != nil {
		return nil
	}
	for n := 1; ; n++ {
		file, err := s.recordName(n)
		if err != nil || file == "" {
			return err
		}
		rec, err := soak.Create(file, s.book.Head)
		if errors.Is(err, fs.ErrExist) && s.o.record == "" && n < mostNames {
			continue
		}
		if err != nil {
			return recordFault(err)
		}
		s.record, s.file = rec, file
		if s.view.shows {
			s.view.line("", "Record: "+file)
		}
		return nil
	}
}

// bound keeps the bound of the records, where this one lies among them.
func (s *soaking) bound(ctx context.Context) {
	if dir, err := s.e.recordsDir(); err == nil && s.record != nil && filepath.Dir(s.file) == dir {
		s.e.boundRecords(ctx, s.file)
	}
}

// helloBytes is what the first test moves, which only finds out who is there.
const helloBytes = 128 << 10

// hello finds out whether the peer is a fullbore. A soak that goes on does not mind nobody there.
func (s *soaking) hello(ctx context.Context, r *runner.Runner) (extension bool, err error) {
	p := s.book.Head.Plan
	p.Transport, p.Direction, p.Streams, p.Bytes, p.Bitrate, p.RateSet = plan.TCP, plan.Up, 1, helloBytes, 0, false
	p.BlockSize, p.Offload, p.Pacing, p.DontFragment, p.AllowFragments, p.ClientPort = 0, "", "", false, false, 0
	run, err := r.Run(ctx, p, nil)
	if err != nil && s.offset > 0 && ctx.Err() == nil {
		return !s.o.plain, nil
	}
	if err != nil {
		return false, err
	}
	ext := run.Wire != nil && run.Wire.Extension
	if !ext && !pause.For(ctx, plan.PlainPause) {
		return false, context.Cause(ctx)
	}
	return ext, nil
}

// reach asks whether the peer's port answers: with a connection that is closed again at once.
func (s *soaking) reach(ctx context.Context) func(context.Context) error {
	p := s.book.Head.Plan
	addrs, err := osnet.ResolveOn(ctx, p.Host, p.Family, p.BindDev)
	if err != nil {
		return nil
	}
	opts := osnet.Options{Family: p.Family, BindHost: p.BindHost, BindDev: p.BindDev}
	return func(ctx context.Context) error {
		c, _, err := osnet.DialFirst(ctx, "tcp", p.Host, addrs, uint16(p.Port), opts)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

func machineNow() soak.Machine {
	c := oshost.ReadClimate("")
	m := oshost.OwnMemory()
	return soak.Machine{Memory: &m, MHz: c.MHz, Celsius: c.Celsius, Throttles: c.Throttles}
}

// lineEach is how often a line is printed where nothing can be drawn again.
func (s *soaking) lineEach() time.Duration {
	d := time.Duration(s.book.Head.Asked / 24 * float64(time.Second))
	return min(max(d, 10*time.Second), time.Hour)
}

// show tells how it stands. It is called once a second, by the play's own goroutine.
func (s *soaking) show(x soak.Status) {
	if !s.view.shows {
		return
	}
	now := s.e.Now()
	if !s.view.draws {
		if x.Outages == s.gone && now.Sub(s.last) < s.lineEach() {
			return
		}
		s.last, s.gone = now, x.Outages
	}
	text := "  " + screen.Right(soakTime(x.T), 9) + "  "
	for _, w := range x.Ways {
		text += screen.Left(string(w.Direction), 4) + " " + screen.Right(units.BitRate(math.Round(w.BPS)).String(), 14) + "  "
	}
	if x.Outages > 0 {
		text += counted(x.Outages, "outage") + " so far  "
	}
	switch left := s.book.Head.Asked - x.T; {
	case x.Down > 0:
		text += fmt.Sprintf("no payload for %s", soak.Seconds(x.T-x.Down))
	case left > 0:
		text += soakTime(left) + " left"
	}
	if s.view.draws {
		fmt.Fprintf(s.e.Out, "\r\x1b[K%s", screen.Cut(text, s.view.width-1))
		return
	}
	fmt.Fprintln(s.e.Out, strings.TrimRight(text, " "))
}

// soakTime prints a time since the start: 3:04:05, 2d 03:04:05.
func soakTime(s float64) string {
	n := int64(max(s, 0))
	days, hours := n/86400, n/3600%24
	if days > 0 {
		return fmt.Sprintf("%dd %02d:%02d:%02d", days, hours, n/60%60, n%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", hours, n/60%60, n%60)
}

// close makes the report, prints it and chooses the exit code.
func (s *soaking) close(ctx context.Context, played soak.Played) error {
	b := s.book
	res := b.Result()
	res.Record = s.file
	rep := &result.Report{
		Schema: result.Schema, Kind: "soak", Tool: result.Tool{Name: "fullbore", Version: Version}, Started: b.Head.Started, Inputs: b.Head.Inputs,
		Runs: []*result.Run{}, Verdicts: []result.Verdict{}, Items: b.Judge(res), Notices: b.Notices(res), Err: played.Err, Soak: res,
	}
	for _, run := range []*result.Run{played.First, played.Last} {
		if run != nil && (len(rep.Runs) == 0 || rep.Runs[0] != run) {
			run.RowsLeft += int64(len(run.Rows))
			run.Rows = []result.Interval{} // the record has them
			rep.Runs = append(rep.Runs, run)
		}
	}
	rep.Summary = b.Summary(res, rep.Items)
	s.o.keep.mark(rep)
	s.o.keep.host, s.o.keep.headline = b.Head.Plan.Host, s.job.headline(rep)
	if s.o.replay != "" {
		if b.Ended == nil || rep.Err != nil {
			why := "it was killed, or it still goes on"
			if rep.Err != nil {
				why = rep.Err.Text
			}
			rep.Notices = append(rep.Notices, result.Notice{Code: "soak-unfinished", Level: result.Info, Text: fmt.Sprintf("the record ends after %s of %s: %s", soak.Seconds(res.Length), soak.Seconds(res.Asked), why)})
		}
		rep.Err = nil // judging it went well
	}
	s.bound(ctx)
	err := s.e.closeMethod(&s.o.methodOptions, s.job, s.view, rep, s.wishes)
	if err == nil {
		err = passed(rep)
	}
	if kerr := s.e.keep(ctx, &s.o.keep, rep); kerr != nil {
		return worst([]error{err, kerr})
	}
	return err
}

// passed is the exit code of the rules.
func passed(rep *result.Report) error {
	if len(rep.Soak.Ways) == 0 {
		return &codeError{code: exitInconclusive}
	}
	for _, i := range rep.Items {
		if i.Result == result.Fail {
			return &codeError{code: exitMissed}
		}
	}
	return nil
}

// The most rows that the closing screen has of outages and of hours; the document has all.
const (
	soakOutageRows = 20
	soakHourRows   = 48
)

// soakFinal prints the figures of a soak and what its rules say of them.
func soakFinal(v *stageView, rep *result.Report) {
	v.soakTables(rep)
	fmt.Fprintln(v.e.Out)
	for _, i := range rep.Items {
		if i.ID != "expect" {
			v.line(screen.Left(strings.ToUpper(i.Result), 13), strings.Join(i.Reasons, "; "))
		}
	}
	v.soakHost(rep.Soak)
}

// soakHost is this host over the soak, and where the record is.
func (v *stageView) soakHost(s *result.Soak) {
	if text := conclude.SoakHost(s.Machine); text != "" {
		v.line("this host: ", text)
	}
	if s.Record != "" {
		v.line("record: ", s.Record)
	}
}

// soakTables prints the rates, hour by hour, and the outages.
func (v *stageView) soakTables(rep *result.Report) {
	s := rep.Soak
	w := v.e.Out
	rate := func(p *float64) string {
		if p == nil {
			return "-"
		}
		return units.BitRate(*p).String()
	}
	row := func(cells ...string) {
		text := "  "
		for i, c := range cells {
			if i == 0 {
				text += screen.Left(c, 12)
				continue
			}
			text += " " + screen.Right(c, 14)
		}
		fmt.Fprintln(w, strings.TrimRight(screen.Cut(text, max(v.width, 60)), " "))
	}
	row("", "typical", "p5", "p1", "available", "lost/resent")
	figures := func(name string, f *result.SoakFigures) {
		available, again := "-", "-"
		if f.Availability != nil {
			available = soak.Percent(*f.Availability)
		}
		switch {
		case f.Lost != nil && f.Packets != nil && *f.Packets > 0:
			again = fmt.Sprintf("%.2g %%", 100*float64(*f.Lost)/float64(*f.Packets))
		case f.Retransmits != nil:
			again = fmt.Sprint(*f.Retransmits)
		}
		row(name, rate(f.Median), rate(f.P5), rate(f.P1), available, again)
	}
	for i := range s.Ways {
		figures(string(s.Ways[i].Direction), &s.Ways[i].Figures)
	}
	if len(s.Hours) > 1 {
		for i := range s.Hours {
			if i == soakHourRows {
				fmt.Fprintf(w, "  … %s more in the document (--json, --report)\n", counted(len(s.Hours)-i, "hour"))
				break
			}
			for k := range s.Hours[i].Ways {
				f := &s.Hours[i].Ways[k]
				figures(fmt.Sprintf("hour %d %s", i+1, f.Direction), f)
			}
		}
	}
	if len(s.Outages) > 0 {
		fmt.Fprintf(w, "\n%s\n", v.paint("1", "outages"))
	}
	for i, o := range s.Outages {
		if i == soakOutageRows {
			fmt.Fprintf(w, "  … %s more in the document (--json, --report)\n", counted(len(s.Outages)-i, "outage"))
			break
		}
		v.line("  · ", outageText(rep, &o))
	}
}

// outageText is an outage in a line.
func outageText(rep *result.Report, o *result.Outage) string {
	at := rep.Started.Add(time.Duration(o.Start * float64(time.Second)))
	text := fmt.Sprintf("%s: after %s (%s UTC) for %.1f s", o.Direction, soak.Seconds(o.Start), at.UTC().Format("2006-01-02 15:04:05.0"), o.Length)
	if o.Stalled > o.Length+0.2 {
		text += fmt.Sprintf(", payload again after %.1f s", o.Stalled)
	}
	switch {
	case o.Why == "refused":
		text += ": the host answered, its server did not"
	case o.Basis == "reach":
		text += ": the path did not answer"
	default:
		text += ": nothing came, though the path answered"
	}
	if o.Open {
		text += "; it goes on"
	}
	return text
}
