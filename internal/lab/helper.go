package lab

import (
	"fmt"
	"io"
	"strconv"
)

// The hidden commands of fullbore that the lab starts in its namespaces: "lab link", "lab
// busy CPU" and "lab proxy PORT".
const (
	helperLink  = "link"
	helperBusy  = "busy"
	helperProxy = "proxy"
)

// Helper runs the hidden command "lab" with these words; ok is false when it is none.
// in and out are the standard streams.
func Helper(words []string, in io.Reader, out io.Writer) (ok bool, err error) {
	switch {
	case len(words) == 1 && words[0] == helperLink:
		return true, LinkMain(in, out)
	case len(words) == 2 && words[0] == helperBusy:
		cpu, err := strconv.Atoi(words[1])
		if err != nil {
			return true, fmt.Errorf("lab: %q is no processor", words[1])
		}
		return true, busyMain(cpu)
	case len(words) == 2 && words[0] == helperProxy:
		port, err := strconv.ParseUint(words[1], 10, 16)
		if err != nil {
			return true, fmt.Errorf("lab: %q is no port", words[1])
		}
		return true, proxyMain(uint16(port))
	}
	return false, nil
}
