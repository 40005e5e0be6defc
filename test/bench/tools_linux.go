package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// command is one way to run one program: a server that takes one test, and a client.
type command struct {
	name   string // in the table
	tool   string
	server func(port int, p params) []string
	client func(port int, p params) []string
	// needs are words that the program's help must have for the command to be runnable.
	needs []string
	// stays: the server does not end by itself after the test.
	stays bool
	// hangs: the program is known to stay for ever now and then, after its last line. Such a run
	// has no figure; it is repeated, and the table says how often.
	hangs bool
	// offset: the server listens on port+offset first.
	offset int
	// server2 is the server's program where it is another than the client's.
	server2 string
	// udpServer: the server listens on UDP.
	udpServer bool
	// headers says how the client's datagrams are written.
	wide, extended bool
}

// serving is the server's program.
func (c command) serving() string {
	if c.server2 != "" {
		return c.server2
	}
	return c.tool
}

func (c command) listens(port int) int { return port + c.offset }

type params struct {
	host    string // the server's address
	seconds float64
	streams int
	load    load
	capture bool // look at every datagram as it arrives
}

func (p params) time() string { return strconv.FormatFloat(p.seconds, 'f', -1, 64) }

// iperf3Like is iperf3's command line, which is ours too. prefix is the sub-command.
func iperf3Like(name, tool string, prefix []string, server, client []string) command {
	return command{
		name: name, tool: tool,
		server: func(port int, _ params) []string {
			return join(prefix, []string{"-s", "-1", "-p", strconv.Itoa(port)}, server)
		},
		client: func(port int, p params) []string {
			return join(prefix, []string{"-c", p.host, "-p", strconv.Itoa(port), "-t", strconv.Itoa(int(p.seconds)), "-P", strconv.Itoa(p.streams)}, client)
		},
		needs: join(server, client),
	}
}

func join(parts ...[]string) (out []string) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func ours(name string, flags ...string) command {
	// -Z is the sender's, --skip-rx-copy travels with the parameters from 3.20 on.
	return iperf3Like(name, "fullbore", []string{"iperf3"}, nil, flags)
}

func iperf3(name string, flags ...string) command {
	return iperf3Like(name, "iperf3", nil, nil, flags)
}

// native is the native pair with its defaults: the cheapest honest path.
func native(extra ...string) command {
	return command{
		name: "fullbore test", tool: "fullbore", stays: true,
		server: func(port int, p params) []string {
			return []string{"serve", "--listen", fmt.Sprintf("%s:%d", p.host, port)}
		},
		client: func(port int, p params) []string {
			return join([]string{"test", p.host, "-p", strconv.Itoa(port), "--up", "-t", p.time() + "s", "-P", strconv.Itoa(p.streams), "--json", "--no-store"}, extra)
		},
	}
}

func ethr(name string, flags ...string) command {
	return command{
		name: name, tool: "ethr", stays: true,
		server: func(port int, p params) []string {
			return []string{"-s", "-no", "-ip", p.host, "-port", strconv.Itoa(port)}
		},
		client: func(port int, p params) []string {
			return join([]string{"-c", p.host, "-no", "-port", strconv.Itoa(port), "-p", "tcp", "-t", "b", "-w", "0", "-d", p.time() + "s", "-n", strconv.Itoa(p.streams)}, flags)
		},
	}
}

func iperf2() command {
	return command{
		name: "iperf", tool: "iperf", stays: true,
		server: func(port int, p params) []string { return []string{"-s", "-p", strconv.Itoa(port)} },
		client: func(port int, p params) []string {
			return []string{"-c", p.host, "-p", strconv.Itoa(port), "-t", p.time(), "-P", strconv.Itoa(p.streams)}
		},
	}
}

func nuttcp() command {
	return command{
		name: "nuttcp", tool: "nuttcp",
		server: func(port int, p params) []string {
			return []string{"-1", "--nofork", "-P" + strconv.Itoa(port)}
		},
		client: func(port int, p params) []string {
			return []string{"-t", "-P" + strconv.Itoa(port), "-p" + strconv.Itoa(port+1), "-T" + p.time(), "-N" + strconv.Itoa(p.streams), p.host}
		},
	}
}

// ntttcpLike is ntttcp-for-linux's command line, which is ours too: a receiver port for so many
// streams, or all on ports of their own.
func ntttcpLike(name, tool string, prefix []string, perPort int) command {
	return command{
		name: name, tool: tool, offset: 1, stays: true, hangs: tool == "ntttcp",
		server: func(port int, p params) []string { return join(prefix, ntttcpReceiver(port, p, perPort)) },
		client: func(port int, p params) []string {
			return join(prefix, []string{"-s" + p.host, "-n", strconv.Itoa(perPort)}, ntttcpPorts(port, p, perPort))
		},
	}
}

func ntttcpReceiver(port int, p params, perPort int) []string {
	return join([]string{"-r" + p.host}, ntttcpPorts(port, p, perPort))
}

func ntttcpPorts(port int, p params, perPort int) []string {
	return []string{"-P", strconv.Itoa(p.streams / perPort), "-p", strconv.Itoa(port + 1), "-t", strconv.Itoa(int(p.seconds)), "-W", "0", "-C", "0"}
}

func ntttcp() command { return ntttcpLike("ntttcp", "ntttcp", nil, 1) }

func oursNTTTCP(perPort int) command {
	return ntttcpLike("ntttcp (copy)", "fullbore", []string{"ntttcp"}, perPort)
}

// viaNTTTCP is the native sender, which need not copy, to the same receiver.
func viaNTTTCP(perPort int) command {
	c := oursNTTTCP(perPort)
	c.name = "test --via ntttcp"
	c.client = func(port int, p params) []string {
		return []string{
			"test", p.host, "--via", fmt.Sprintf("ntttcp:%d", p.streams/perPort), "-p", strconv.Itoa(port + 1),
			"-t", p.time() + "s", "-P", strconv.Itoa(p.streams), "--json", "--no-store",
		}
	}
	return c
}

// toolset maps a tool to its path; one that is missing has none.
type toolset struct {
	path    map[string]string
	version map[string]string
	help    map[string]string
}

// probes are how to ask a tool for its version.
var probes = []struct {
	tool, env string
	version   []string
}{
	{"fullbore", "", []string{"--version"}},
	{"iperf3", "IPERF3", []string{"--version"}},
	{"iperf", "IPERF", []string{"--version"}},
	{"nuttcp", "NUTTCP", []string{"-V"}},
	{"ntttcp", "NTTTCP", []string{"-h"}},
	{"ethr", "ETHR", []string{"-h"}},
}

var versionWord = regexp.MustCompile(`[0-9]+\.[0-9]+[0-9.+]*[-0-9a-z.+]*`)

func findTools(fullbore string) (toolset, error) {
	t := toolset{map[string]string{}, map[string]string{}, map[string]string{}}
	for _, p := range probes {
		path := p.tool
		if p.tool == "fullbore" {
			path = fullbore
		} else if v := os.Getenv(p.env); v != "" {
			path = v
		}
		full, err := exec.LookPath(path)
		if err != nil {
			if p.tool == "fullbore" {
				return t, fmt.Errorf("%w (make build)", err)
			}
			continue
		}
		t.path[p.tool] = full
		out, _ := exec.Command(full, p.version...).CombinedOutput() // some exit 1 on -h
		t.version[p.tool] = versionWord.FindString(string(out))
		help, _ := exec.Command(full, "--help").CombinedOutput()
		t.help[p.tool] = string(help)
	}
	return t, nil
}

// missing says why a command cannot run, "" when it can.
func (t toolset) missing(c command) string {
	for _, tool := range []string{c.tool, c.serving()} {
		if t.path[tool] == "" {
			return tool + " not found"
		}
	}
	if c.tool == "iperf3" {
		for _, w := range c.needs {
			if strings.HasPrefix(w, "-") && !strings.Contains(t.help[c.tool], w) {
				return fmt.Sprintf("%s %s has no %s", c.tool, t.version[c.tool], w)
			}
		}
	}
	return ""
}

// has leaves rows of absent peers out, except where the row is one of the targets: that
// it could not be measured must show.
func (t toolset) has(r row) bool { return r.gate > 0 || t.path[r.peer.tool] != "" }

func (t toolset) list() string {
	var s []string
	for _, p := range probes {
		if t.path[p.tool] != "" {
			s = append(s, strings.TrimSpace(p.tool+" "+t.version[p.tool]))
		}
	}
	return strings.Join(s, ", ")
}

// jain reads the fairness index from a native client's document.
func jain(doc []byte) (float64, error) {
	var d struct {
		Sums []struct {
			Jain *float64 `json:"jain"`
		} `json:"sums"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		return 0, fmt.Errorf("read the client's document: %w", err)
	}
	for _, s := range d.Sums {
		if s.Jain != nil {
			return *s.Jain, nil
		}
	}
	return 0, fmt.Errorf("the client's document has no fairness index")
}
