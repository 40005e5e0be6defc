// Package archtest keeps the layers apart: its test reads the import graph with
// `go list` and fails when a package imports sideways, upwards, or a module that it
// was not granted. The table below is the architecture; each row says why.
package archtest

// Room is a package (or a family, with a trailing /…) and what it may import.
type Room struct {
	Path    string   // below the module's path; "x/…" covers x and everything below it
	Layer   int      // imports must lie on a lower layer
	Also    []string // rooms of the same layer that may be imported, by path
	Modules []string // third-party import path prefixes
	Why     string
}

// Rooms is read from top to bottom; the first match counts.
var Rooms = []Room{
	{"result", 0, nil, nil, "the public model: std only, so that anybody can import it"},
	{"internal/units", 0, nil, nil, "spelling of sizes, rates, durations: std only"},
	{"internal/stats", 0, nil, nil, "formulas: pure"},
	{"internal/pause", 0, nil, nil, "the wait that a context may end: std only"},
	{"internal/bdp", 0, []string{"internal/units"}, nil, "window and layer arithmetic: pure; prints with units"},
	{"internal/datagram", 1, nil, nil, "what a UDP datagram carries and how arrivals are counted: pure, no sockets"},
	{"internal/delay", 1, nil, nil, "jitter, delay variation, clock offset from time stamps: pure, no clocks"},
	{"internal/plan", 1, nil, nil, "what to do, as data"},
	{"internal/osnet", 1, []string{"internal/plan"}, []string{"golang.org/x/sys", "golang.org/x/net"}, "sockets; options come from the plan"},
	{"internal/oshost", 1, nil, []string{"golang.org/x/sys", "github.com/safchain/ethtool", "github.com/vishvananda/netlink"}, "host counters and facts"},
	{"internal/cli/getopt", 1, nil, nil, "argument dialects: std only"},
	{"internal/conclude", 1, nil, nil, "pure rules over one Run"},
	{"internal/conclude/sample", 1, nil, nil, "made-up runs for the tests of conclusions and renderers"},
	{"internal/alike", 1, nil, nil, "what makes runs comparable, as hashes and lists of differences: pure"},
	{"internal/render/screen", 1, nil, nil, "text cells that renderers share: clean, pad, sparkline"},
	{"internal/explain", 1, nil, nil, "texts about fields and codes"},
	{"internal/render/svg", 1, nil, nil, "plots as text, for pages: std only"},
	{"internal/method", 2, nil, nil, "what to measure next and what it means: pure, makes plans and eats runs"},
	{"internal/soak", 2, nil, nil, "records of a long load, what they add up to, and the play of its tests through functions: no sockets"},
	{"internal/capture", 1, nil, nil, "what a third point recorded: pure, std only"},
	{"internal/strictyaml", 1, nil, []string{"github.com/goccy/go-yaml"}, "files that people write, read key by key with every fault's line: knows no file's meaning"},
	{"internal/suite", 3, nil, []string{"github.com/goccy/go-yaml"}, "acceptance: items, demands, cross-checks over runs: pure; suite files are YAML"},
	{"internal/connrate", 2, nil, nil, "connections opened at a rate: sockets and counting, no protocol"},
	{"internal/diagnose", 3, nil, nil, "rules over many runs and host facts: pure"},
	{"internal/doctor", 2, nil, nil, "pure rules over host facts"},
	{"internal/firewall", 2, nil, []string{"golang.org/x/sys"}, "rules of packet filters: planning is pure, programs are run through one function"},
	{"internal/service", 2, nil, []string{"golang.org/x/sys"}, "what service managers want: texts, and calls on Windows"},
	{"internal/traffic", 2, nil, []string{"golang.org/x/sys"}, "the engine: knows no protocol"},
	{"internal/proto/probe", 2, nil, nil, "probe datagrams and round trips: pure, shared by protocols that carry them"},
	{"internal/proto/ext", 2, nil, nil, "the extension's frames and documents: shared by protocols that carry it; opens no sockets"},
	{"internal/proto/iperf3", 3, nil, nil, "a protocol never sees another; methods that steer single packets are below it"},
	{"internal/proto/ntttcp", 3, nil, nil, "a protocol never sees another"},
	{"internal/render/goldentest", 1, nil, []string{"github.com/google/go-cmp"}, "test helper: format classes"},
	{"internal/render/cjson", 1, nil, nil, "spelling of JSON as the C library has it: std only"},
	{"internal/render/iperf3view", 1, nil, nil, "which rows and numbers iperf3 would show: shared by its two spellings"},
	{"internal/render/live", 2, nil, []string{"charm.land"}, "the only room that may draw on a terminal"},
	{"internal/render/plain", 2, nil, nil, "renderers see results, not each other"},
	{"internal/render/json", 2, nil, nil, "renderers see results, not each other"},
	{"internal/render/jsonstream", 2, nil, nil, "renderers see results, not each other"},
	{"internal/render/html", 2, nil, nil, "renderers see results, not each other"},
	{"internal/render/junit", 2, nil, nil, "renderers see results, not each other"},
	{"internal/render/csv", 2, nil, nil, "renderers see results, not each other"},
	{"internal/render/iperf3json", 2, nil, nil, "renderers see results, not each other"},
	{"internal/render/iperf3text", 2, nil, nil, "renderers see results, not each other"},
	{"internal/render/ntttcplinux", 2, nil, nil, "renderers see results, not each other"},
	{"internal/render/ntttcpwin", 2, nil, nil, "renderers see results, not each other"},
	{"internal/render", 3, nil, nil, "the list of outputs"},
	{"internal/activation", 3, nil, []string{"github.com/goccy/go-yaml"}, "files of service activation tests: strict, with lines in errors"},
	{"internal/runner", 4, nil, []string{"github.com/oklog/ulid"}, "composition of one test"},
	{"internal/lab/…", 4, []string{"internal/lab/…"}, []string{"golang.org/x/sys", "github.com/vishvananda", "github.com/goccy/go-yaml"}, "emulated paths"},
	{"internal/importer", 4, nil, nil, "documents of other programs into runs: pure, on the renderers' own decoders"},
	{"internal/store", 5, nil, []string{"github.com/oklog/ulid"}, "what a history keeps, as an interface"},
	{"internal/store/storetest", 6, nil, []string{"github.com/google/go-cmp"}, "the promises of a store, as one test for all of them"},
	{"internal/store/sqlite", 6, nil, []string{"modernc.org/sqlite", "github.com/pressly/goose"}, "one file; the only room that may import SQLite"},
	{"internal/cli/compat/iperf3", 5, nil, nil, "iperf3's command line as data"},
	{"internal/cli/compat/ntttcp", 5, nil, nil, "the command lines of both NTTTCPs as data"},
	{"internal/cli/process", 6, nil, []string{"golang.org/x/sys"}, "pid files, background: this process only"},
	{"internal/cli", 7, nil, []string{"github.com/spf13", "golang.org/x/term", "github.com/guptarohit/asciigraph"}, "the command line; its plots"},
	{"internal/archtest", 7, nil, nil, "this table"},
	{"cmd/fullbore", 8, nil, nil, "main only"},
	{"packaging/…", 8, nil, []string{"github.com/spf13/cobra"}, "what packages are made of; its libraries stay out of the product"},
	{"test/…", 8, []string{"test/…"}, []string{"golang.org/x/sys", "github.com/google/go-cmp", "github.com/rogpeppe/go-internal", "github.com/vishvananda"}, "programs and tests around the product"},
}
