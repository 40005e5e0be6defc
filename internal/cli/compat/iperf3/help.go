package iperf3

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullbore-net/fullbore/internal/cli/getopt"
)

// Usage is the short text after an error.
const Usage = "Usage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more information.\n"

// helpColumn is where the descriptions begin, helpWidth where they are wrapped.
const (
	helpColumn = 28
	helpWidth  = 100
)

// Help is the text of -h: iperf3's layout, our words.
func Help() string {
	var b strings.Builder
	b.WriteString("Usage: iperf3 [-s|-c host] [options]\n       iperf3 [-h|--help] [-v|--version]\n\n")
	for _, s := range Sections {
		b.WriteString(s.Title + ":\n")
		for _, key := range s.Keys {
			o := Find(key)
			text := o.Help
			if o.Limits != "" {
				text += " (" + o.Limits + ")"
			}
			left := "  " + o.synopsis()
			if len(left) > helpColumn-2 {
				b.WriteString(left + "\n")
				left = ""
			}
			for _, line := range wrap(text, helpWidth-helpColumn) {
				fmt.Fprintf(&b, "%-*s%s\n", helpColumn, left, line)
				left = ""
			}
		}
	}
	b.WriteString("\n[KMG]: K, M and G (T too) are 1000-based for rates in bit/s, 1024-based for sizes and counts\n" +
		"\nThis is fullbore, behaving as iperf3. What it can do beyond: fullbore --help\n")
	return b.String()
}

// synopsis is "-p, --port #".
func (o *Option) synopsis() string {
	var s string
	if o.Short != 0 {
		s = fmt.Sprintf("-%c, ", o.Short)
	}
	s += "--" + o.Long
	switch {
	case o.Meta == "":
	case o.Arg == getopt.Optional:
		s += "[=" + o.Meta + "]"
	default:
		s += " " + o.Meta
	}
	return s
}

func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// Feature is something that -v lists as compiled in.
type Feature string

// The features in the order in which iperf3 lists them.
const (
	FeatureAffinity     Feature = "CPU affinity setting"
	FeatureFlowLabel    Feature = "IPv6 flow label"
	FeatureSCTP         Feature = "SCTP"
	FeatureCongestion   Feature = "TCP congestion algorithm setting"
	FeatureZeroCopy     Feature = "sendfile / zerocopy"
	FeaturePacing       Feature = "socket pacing"
	FeatureAuth         Feature = "authentication"
	FeatureBindDev      Feature = "bind to device"
	FeatureDontFragment Feature = "support IPv4 don't fragment"
	FeatureThreads      Feature = "POSIX threads"
	FeatureGSRO         Feature = "GSO/GRO support"
)

var featureOrder = []Feature{
	FeatureAffinity, FeatureFlowLabel, FeatureSCTP, FeatureCongestion, FeatureZeroCopy, FeaturePacing, FeatureAuth,
	FeatureBindDev, FeatureDontFragment, FeatureThreads, FeatureGSRO,
}

// versionText is the three lines of -v. The first begins as iperf3's, because scripts
// read the release from it.
func versionText(w World) string {
	system := ""
	if w.System != nil {
		system = w.System()
	}
	var names []string
	for _, f := range featureOrder {
		if (f == FeatureThreads || f == FeatureGSRO) && w.Release == R312 {
			continue // releases of that time did not know the words
		}
		if slices.Contains(w.Features, f) {
			names = append(names, string(f))
		}
	}
	list := strings.Join(names, ", ")
	if list == "" {
		list = "None"
	}
	return fmt.Sprintf("iperf %s (fullbore %s)\n%s\nOptional features available: %s\n", w.Release, w.Build, system, list)
}
