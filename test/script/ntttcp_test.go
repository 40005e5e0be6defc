package script

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Ports of one script: 16 of data, the one below to synchronise, and as many 1000 above.
const (
	ntttcpRoom  = 40
	ntttcpSlots = 200
	ntttcpFirst = 10100 // below the ports that systems hand out
)

var ntttcpSlot atomic.Int64

// ntttcpPorts returns a base port of which all ports of a receiver are free.
func ntttcpPorts() (int, error) {
	for range ntttcpSlots {
		slot := (int64(os.Getpid()) + ntttcpSlot.Add(1)) % ntttcpSlots
		base := ntttcpFirst + int(slot)*ntttcpRoom
		if allFree(base-1, 17) && allFree(base+1000, 16) {
			return base, nil
		}
	}
	return 0, fmt.Errorf("no free ports for ntttcp")
}

// allFree reports whether n ports from first on can be listened on, of both transports.
func allFree(first, n int) bool {
	for p := first; p < first+n; p++ {
		ln, err := net.Listen("tcp", ":"+strconv.Itoa(p))
		if err != nil {
			return false
		}
		_ = ln.Close()
		pc, err := net.ListenPacket("udp", ":"+strconv.Itoa(p))
		if err != nil {
			return false
		}
		_ = pc.Close()
	}
	return true
}

// waitFor waits until a file contains a text. usage: waitfor FILE TEXT
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor FILE TEXT")
	}
	name := ts.MkAbs(args[0])
	var data []byte
	for range 3000 {
		data, _ = os.ReadFile(name) // it may not be there yet
		if strings.Contains(string(data), args[1]) {
			return
		}
		time.Sleep(10 * time.Millisecond) // polls a condition of another process
	}
	ts.Fatalf("%s does not come to hold %q:\n%s", args[0], args[1], data)
}

var (
	consoleRate  = regexp.MustCompile(`(?m)INFO: \t throughput\t:([0-9.]+)([KMG]?)bps$`)
	consoleBytes = regexp.MustCompile(`(?m)INFO: total bytes\t:([0-9]+)$`)
)

// ntttcpXML is as much of the document of -x as has figures.
type ntttcpXML struct {
	XMLName xml.Name
	Threads []struct {
		Rates []ntttcpMetric `xml:"throughput"`
	} `xml:"thread"`
	Rates []ntttcpMetric `xml:"throughput"`
}

type ntttcpMetric struct {
	Metric string `xml:"metric,attr" json:"metric"`
	Value  string `xml:",chardata" json:"value"`
}

// agree checks that the documents of one end are well-formed and hold the figures of the console,
// which is the last command's output. usage: agree ROOT XML JSON
func agree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: agree ROOT XML JSON")
	}
	console := ts.ReadFile("stdout")
	m := consoleRate.FindStringSubmatch(console)
	if m == nil {
		ts.Fatalf("no throughput on the console")
	}
	shown := number(ts, m[1]) * map[string]float64{"": 1e-6, "K": 1e-3, "M": 1, "G": 1e3}[m[2]] // Mbit/s
	place := map[string]float64{"": 1e-6, "K": 1e-3, "M": 1, "G": 1e3}[m[2]] * 0.00501          // half of its last place
	var x ntttcpXML
	strictXML(ts, ts.ReadFile(args[1]), &x)
	if x.XMLName.Local != args[0] {
		ts.Fatalf("the root of the XML is %s", x.XMLName.Local)
	}
	var doc map[string]struct {
		Rates   []ntttcpMetric `json:"throughputs"`
		Threads []struct {
			Rates []ntttcpMetric `json:"throughputs"`
		} `json:"threads"`
	}
	if err := json.Unmarshal([]byte(ts.ReadFile(args[2])), &doc); err != nil {
		ts.Fatalf("JSON: %v", err)
	}
	j, ok := doc[args[0]]
	if !ok {
		ts.Fatalf("the JSON has no %s", args[0])
	}
	inXML, inJSON := mbps(ts, x.Rates), mbps(ts, j.Rates)
	if inXML != inJSON || inXML < shown-place || inXML > shown+place {
		ts.Fatalf("Mbit/s: console %s%sbps, XML %v, JSON %v", m[1], m[2], inXML, inJSON)
	}
	if len(x.Threads) == 0 || len(x.Threads) != len(j.Threads) {
		ts.Fatalf("%d threads in the XML, %d in the JSON", len(x.Threads), len(j.Threads))
	}
	sum := 0.0
	for _, t := range x.Threads {
		sum += mbps(ts, t.Rates)
	}
	// Each has three decimals, and a time of its own that differs by that of a row.
	if sum < inXML*0.98 || sum > inXML*1.02 {
		ts.Fatalf("Mbit/s: the threads have %v together, the test has %v", sum, inXML)
	}
	if !consoleBytes.MatchString(console) {
		ts.Fatalf("no bytes on the console")
	}
}

func number(ts *testscript.TestScript, s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	ts.Check(err)
	return f
}

// mbps is the figure of that metric.
func mbps(ts *testscript.TestScript, list []ntttcpMetric) float64 {
	for _, m := range list {
		if m.Metric == "mbps" {
			return number(ts, m.Value)
		}
	}
	ts.Fatalf("no mbps among %v", list)
	return 0
}

// strictXML reads one document and nothing behind it.
func strictXML(ts *testscript.TestScript, text string, into any) {
	d := xml.NewDecoder(bytes.NewReader([]byte(text)))
	if err := d.Decode(into); err != nil {
		ts.Fatalf("XML: %v", err)
	}
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			ts.Fatalf("XML: %v", err)
		}
		if c, ok := tok.(xml.CharData); !ok || strings.TrimSpace(string(c)) != "" {
			ts.Fatalf("XML: something follows the root")
		}
	}
}
