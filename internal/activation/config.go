// Package activation reads what a service activation test by ITU-T Y.1564 is to do: a file
// with services, their rates and limits (M-1564). Decoding is strict, and every fault is told
// with its line.
package activation

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/strictyaml"
	"github.com/fullbore-net/fullbore/internal/units"
)

// text is the file as written.
type text struct {
	Profile  string    // y1564 (default) or mef
	Step     string    // 1s … 60s, default 10s
	Phase2   string    // default 15m
	Margin   string    // of the policing step, share; default 1%
	GoOn     bool      // phase 1 goes on after a failed step
	Services []service // at least one
}

type service struct {
	Name, CIR, EIR string
	Frame          int    // bytes of an Ethernet frame with check, 90 … 9018; default 1518
	EMIX           string // frame sizes of a mix, by Y.1564's letters or as numbers, in place of Frame
	CBS, EBS       string // burst sizes, bytes of frames
	DSCP           string // number or name
	Direction      string // up, down, both (default)
	Policing       bool
	Limits         limits
}

// limits as written; FD only with profile mef.
type limits struct{ FLR, FTD, FDV, Avail, FD string }

// read takes the file apart: which keys there are, and which kind of value each has.
func (t *text) read(r *reader, data []byte) {
	r.Document(data, map[string]strictyaml.Handler{
		"profile": r.Text(&t.Profile),
		"step":    r.Text(&t.Step),
		"phase2":  r.Text(&t.Phase2),
		"margin":  r.Text(&t.Margin),
		"go_on":   r.Truth(&t.GoOn),
		"services": func(n ast.Node, path string) {
			r.Sequence(n, path, func(n ast.Node, path string) {
				var s service
				s.read(r, n, path)
				t.Services = append(t.Services, s)
			})
		},
	})
}

func (s *service) read(r *reader, n ast.Node, path string) {
	r.Mapping(n, path, map[string]strictyaml.Handler{
		"name": r.Text(&s.Name), "cir": r.Text(&s.CIR), "eir": r.Text(&s.EIR),
		"frame": r.Value(func(text string) (err error) {
			if s.Frame, err = strconv.Atoi(text); err != nil {
				err = fmt.Errorf("%q is not a whole number of bytes", text)
			}
			return err
		}),
		"emix": r.Text(&s.EMIX), "cbs": r.Text(&s.CBS), "ebs": r.Text(&s.EBS),
		"dscp": r.Text(&s.DSCP), "direction": r.Text(&s.Direction), "policing": r.Truth(&s.Policing),
		"limits": func(n ast.Node, path string) {
			r.Mapping(n, path, map[string]strictyaml.Handler{
				"flr": r.Text(&s.Limits.FLR), "ftd": r.Text(&s.Limits.FTD), "fdv": r.Text(&s.Limits.FDV), "avail": r.Text(&s.Limits.Avail),
				"fd": r.Text(&s.Limits.FD),
			})
		},
	})
}

// Defaults of a file.
const (
	defaultStep   = 10 * time.Second
	defaultPhase2 = 15 * time.Minute
	defaultMargin = 0.01
	defaultFrame  = 1518
	maxServices   = 16
)

// Parse reads a file; name names it in errors, which are joined and each begin with "name:line: ".
func Parse(name string, data []byte) (method.Activation, error) {
	var out method.Activation
	var t text
	r := &reader{strictyaml.New(name)}
	if t.read(r, data); r.Failed() { // what follows would only repeat it: a key that was not understood is missing, too
		return out, r.Err()
	}
	out = method.Activation{
		MEF:    t.Profile == "mef",
		Step:   r.duration("step", t.Step, defaultStep, time.Second, time.Minute),
		Phase2: r.duration("phase2", t.Phase2, defaultPhase2, time.Second, 24*time.Hour),
		Margin: r.share("margin", t.Margin, defaultMargin),
		GoOn:   t.GoOn,
	}
	if t.Profile != "" && t.Profile != "mef" && t.Profile != "y1564" {
		r.fail("profile", "profile %q: there are y1564 and mef", t.Profile)
	}
	switch n := len(t.Services); {
	case n == 0:
		r.fail("services", "services: there is none")
	case n > maxServices:
		r.fail("services", "services: %d; at most %d", n, maxServices)
	}
	seen := map[string]bool{}
	for i := range t.Services {
		s := r.service(fmt.Sprintf("services[%d]", i), &t.Services[i], out.MEF)
		if seen[s.Name] {
			r.fail(fmt.Sprintf("services[%d].name", i), "name %q: there is another service of that name", s.Name)
		}
		seen[s.Name] = true
		out.Services = append(out.Services, s)
	}
	r.streams(out.Services)
	return out, r.Err()
}

type reader struct{ *strictyaml.Reader }

// fail notes a fault at path, or the nearest thing above it that is written.
func (r *reader) fail(path, format string, args ...any) {
	r.Fail(r.At(path), "", format, args...)
}

// service reads one; mef: by the MEF's figures.
func (r *reader) service(path string, s *service, mef bool) method.Service {
	out := method.Service{Name: s.Name, Frame: s.Frame, Policing: s.Policing, Direction: plan.Direction(s.Direction)}
	if s.Name == "" || strings.ContainsAny(s.Name, " \t/") {
		r.fail(path+".name", "name %q: a word without blanks", s.Name)
	}
	if out.Frame == 0 {
		out.Frame = defaultFrame
	}
	if out.Frame < leastFrame || out.Frame > mostFrame {
		r.fail(path+".frame", "frame %d: must be %d … %d bytes (the datagrams carry 44 bytes of figures)", s.Frame, leastFrame, mostFrame)
	}
	switch out.Direction {
	case "":
		out.Direction = plan.Both
	case plan.Up, plan.Down, plan.Both:
	default:
		r.fail(path+".direction", "direction %q: must be up, down or both", s.Direction)
	}
	out.CIR = r.rate(path+".cir", s.CIR, true)
	out.EIR = r.rate(path+".eir", s.EIR, false)
	r.mix(path, s, &out)
	r.bursts(path, s, &out)
	if s.DSCP != "" {
		code, ok := codePoint(s.DSCP)
		if !ok {
			r.fail(path+".dscp", "dscp %q: 0 … 63, or a name such as ef, af41, cs1", s.DSCP)
		}
		out.TOS = code << 2
	}
	out.Limits = method.ServiceLimits{
		FLR: r.share(path+".limits.flr", s.Limits.FLR, -1), Avail: r.share(path+".limits.avail", s.Limits.Avail, -1),
		FTD: r.seconds(path+".limits.ftd", s.Limits.FTD), FDV: r.seconds(path+".limits.fdv", s.Limits.FDV),
		FD: r.seconds(path+".limits.fd", s.Limits.FD),
	}
	if s.Limits.FD != "" && !mef {
		r.fail(path+".limits.fd", "fd %q: frame delay as a percentile is of profile mef; y1564 has ftd, the mean", s.Limits.FD)
	}
	return out
}

// codePoint reads a DSCP: a number, or a name of RFC 2474 (cs), 2597 (af), 3246 (ef) or 5865 (va).
func codePoint(s string) (code int, ok bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	if n, err := strconv.Atoi(s); err == nil {
		return n, n >= 0 && n < 64
	}
	switch {
	case s == "be" || s == "default":
		return 0, true
	case s == "ef":
		return 46, true
	case s == "va":
		return 44, true
	case len(s) == 3 && s[:2] == "cs" && s[2] >= '0' && s[2] <= '7':
		return int(s[2]-'0') << 3, true
	case len(s) == 4 && s[:2] == "af" && s[2] >= '1' && s[2] <= '4' && s[3] >= '1' && s[3] <= '3':
		return int(s[2]-'0')<<3 | int(s[3]-'0')<<1, true
	}
	return 0, false
}

func (r *reader) rate(path, s string, needed bool) float64 {
	if s == "" {
		if needed {
			r.fail(path, "%s is missing", path[strings.LastIndexByte(path, '.')+1:])
		}
		return 0
	}
	v, err := units.ParseRate(s)
	if err != nil || v <= 0 {
		r.fail(path, "%s %q: a rate such as 10M", path[strings.LastIndexByte(path, '.')+1:], s)
	}
	return float64(v)
}

func (r *reader) duration(path, s string, def, least, most time.Duration) time.Duration {
	if s == "" {
		return def
	}
	d, err := units.ParseDuration(s)
	if err != nil || d < least || d > most {
		r.fail(path, "%s %q: a time from %s to %s", path, s, units.FormatDuration(least), units.FormatDuration(most))
	}
	return d
}

// seconds reads a limit in time; -1 = none.
func (r *reader) seconds(path, s string) float64 {
	if s == "" {
		return -1
	}
	d, err := units.ParseDuration(s)
	if last := s[len(s)-1]; err != nil || d <= 0 || last >= '0' && last <= '9' { // 10 alone would be 10 s, and ms are meant
		r.fail(path, "%s %q: a time such as 10ms", path[strings.LastIndexByte(path, '.')+1:], s)
	}
	return d.Seconds()
}

// share reads a ratio: 0.001, 1e-3 or 0.1 %.
func (r *reader) share(path, s string, def float64) float64 {
	if s == "" {
		return def
	}
	word, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		r.fail(path, "%s %q: a share such as 0.1%% or 1e-3", path[strings.LastIndexByte(path, '.')+1:], s)
	}
	return v
}
