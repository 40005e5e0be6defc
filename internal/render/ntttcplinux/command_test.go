package ntttcplinux_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
	"github.com/fullbore-net/fullbore/internal/render/ntttcplinux"
	"github.com/fullbore-net/fullbore/result"
)

// command is what a recorded command line says.
type command struct {
	name  string // case and role: "01-tcp-default.sender"
	end   result.End
	test  result.Test
	nttcp result.NTTTCP
	o     ntttcplinux.Options
}

var reCommand = regexp.MustCompile("(?m)^\\| (\\S+) \\| (\\S+) \\| `ntttcp ([^`]*)` \\|")

// commands reads the command lines from the recordings' README.
func commands(t *testing.T) []command {
	t.Helper()
	readme := goldentest.NTTTCP(t, "README.md")[0]
	var out []command
	for _, m := range reCommand.FindAllStringSubmatch(string(readme.Data), -1) {
		c := readCommand(strings.Fields(m[3]))
		c.name = m[1] + "." + m[2]
		switch m[1] {
		case "30-v1.3.4":
			c.o.Release = ntttcplinux.R134
		case "31-v1.4.0-tag":
			c.o.Release = ntttcplinux.R140Tag
		case "32-v1.4.0-late":
			c.o.Release = ntttcplinux.R140
		case "12-tty-realtime":
			c.o.Terminal = true
		}
		out = append(out, c)
	}
	return out
}

// readCommand knows as much of the options as the recordings use.
func readCommand(args []string) command {
	c := command{
		test:  result.Test{Transport: "tcp", Direction: "up", Duration: 60},
		nttcp: result.NTTTCP{Dialect: "linux", Ports: 16, Threads: 4, Connections: 1, BasePort: 5001},
	}
	s := &c.o.Settings
	for i := 0; i < len(args); i++ {
		next := func() string { i++; return args[i] }
		optional := func() (string, bool) {
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				return next(), true
			}
			return "", false
		}
		file := func(name string) string {
			if f, ok := optional(); ok {
				return f
			}
			return name
		}
		switch a := args[i]; a {
		case "-m":
			f := strings.Split(next(), ",")
			c.nttcp.Ports, c.nttcp.Threads, s.Address = num(f[0]), 1, f[2]
			cpu := num(f[1])
			s.CPU = &cpu
		case "-P":
			c.nttcp.Ports = num(next())
		case "-n":
			c.nttcp.Threads = num(next())
		case "-l":
			c.nttcp.Connections = num(next())
		case "-t":
			c.test.Duration = float64(num(next()))
		case "-W":
			c.test.Omit = float64(num(next()))
		case "-C":
			c.nttcp.Cooldown = float64(num(next()))
		case "-a":
			s.Client = next()
		case "-f":
			s.SourcePort = num(next())
		case "-b":
			s.SendBuffer = int64(num(next()))
			s.RecvBuffer = s.SendBuffer
		case "-B":
			s.Bandwidth = int64(num(strings.TrimSuffix(next(), "M"))) * 1e6
		case "--fq-rate-limit":
			s.FQRate = int64(num(strings.TrimSuffix(next(), "M"))) * 1e6
		case "-6":
			s.IPv6 = true
		case "-u":
			c.test.Transport = "udp"
		case "-N":
			c.nttcp.NoSync = true
		case "-M":
			c.nttcp.MultiClient = true
		case "-L":
			c.nttcp.LastClient = true
		case "-e":
			s.Epoll = true
		case "-H":
			s.Hold = true
		case "-V":
			c.o.Verbose = true
		case "-Q":
			c.o.Quiet = true
		case "-O":
			s.LogFile = file("ntttcp-for-linux-log.log")
		case "-x":
			s.XMLFile = file("ntttcp-for-linux-log.xml")
		case "-j":
			s.JSONFile = file("ntttcp-for-linux-log.json")
		case "--no-delay":
			c.test.NoDelay = true
		case "--show-tcp-retrans":
			s.ShowRetransmits = true
		case "--show-nic-packets":
			s.Interface = next()
		case "--show-dev-interrupts":
			s.Interrupts = next()
		default:
			c.end = result.Client
			if strings.HasPrefix(a, "-r") {
				c.end = result.Server
			}
			if len(a) > 2 {
				s.Address = a[2:]
			} else if v, ok := optional(); ok {
				s.Address = v
			}
		}
	}
	c.test.Streams = c.nttcp.Ports * c.nttcp.Threads * c.nttcp.Connections
	if c.test.Transport == "udp" { // the longest datagram; a shorter one stays
		if s.SendBuffer == 0 {
			s.SendBuffer = 65507
		}
	}
	if c.end == result.Server {
		c.nttcp.Threads, c.nttcp.Connections = 0, 0
	}
	return c
}

func num(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func flt(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}
