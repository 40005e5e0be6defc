package ntttcp

import (
	"fmt"
	"strings"
)

// helpWidth is where descriptions are wrapped, counting a tab as eight.
const helpWidth = 100

// LinuxHelp is the text of -h: the layout of ntttcp-for-linux, our words.
func LinuxHelp() string {
	var b strings.Builder
	var short, long []string
	for _, o := range LinuxOptions {
		switch {
		case strings.HasPrefix(o.Name, "--"):
			long = append(long, o.Name)
		case o.Name != "-m":
			short = append(short, o.Name)
		}
	}
	fmt.Fprintf(&b, "ntttcp: [%s|-m <mapping>]\n        [%s]\n\n", strings.Join(short, "|"), strings.Join(long, "|"))
	ended := false
	for _, o := range LinuxOptions {
		if strings.HasPrefix(o.Name, "--") && !ended {
			b.WriteString("\n")
			ended = true
		}
		text := o.Help
		switch o.Role {
		case SenderOnly, Sender:
			text = "[sender only] " + text
		case ReceiverOnly, Receiver:
			text = "[receiver only] " + text
		}
		if o.Name == "-r" || o.Name == "-s" {
			text = o.Help
		}
		name := o.Name
		if o.Meta != "" && len(name) > 2 {
			name += " <" + o.Meta + ">"
		}
		helpRow(&b, name, 5, text+limits(o))
	}
	b.WriteString("\nExample:\n\treceiver:\n\t./ntttcp -r\n\t./ntttcp -r -m 8,*,192.0.2.1 -t 300\n" +
		"\tsender:\n\t./ntttcp -s 192.0.2.1\n\t./ntttcp -s -m 8,*,192.0.2.1 -n 4 -t 300\n")
	b.WriteString("\nThis is fullbore, behaving as NTTTCP for Linux " + LinuxVersion +
		"; as ntttcp.exe: --dialect windows as first word. What it can do beyond: fullbore --help\n")
	return b.String()
}

// WindowsHelp is the usage text of ntttcp.exe: its layout, our words.
func WindowsHelp() string {
	var b strings.Builder
	var names []string
	for _, o := range WindowsOptions {
		if o.Name != "-m" {
			names = append(names, o.Name)
		}
	}
	fmt.Fprintf(&b, "\nVersion %s\n\nNTttcp: [%s] -m <mappings>\n\n", WindowsVersion, strings.Join(names, "|"))
	for _, o := range WindowsOptions {
		text := o.Help
		if o.Meta != "" && o.Name != "-m" {
			meta := "<" + o.Meta + ">"
			if o.Optional {
				meta = "[" + o.Meta + "]"
			}
			text = meta + " " + text
		}
		if o.Role == SenderOnly {
			text += " (sender only)"
		}
		if o.Role == ReceiverOnly {
			text += " (receiver only)"
		}
		helpRow(&b, o.Name, 5, text+limits(o))
	}
	b.WriteString("\t     e.g. \"-m 4,0,192.0.2.1 2,*,contoso\": 4 threads on CPU 0 to 192.0.2.1, 2 on any to contoso\n" +
		"\nThis is fullbore, behaving as ntttcp.exe " + WindowsVersion +
		"; as NTTTCP for Linux: --dialect linux as first word. What it can do beyond: fullbore --help\n")
	return b.String()
}

func limits(o Option) string {
	if o.Limits == "" {
		return ""
	}
	return " [" + o.Limits + "]"
}

// helpRow is a tab, the name padded to column, and the text, wrapped below itself.
func helpRow(b *strings.Builder, name string, column int, text string) {
	left := fmt.Sprintf("%-*s", column, name)
	if len(left) > column {
		b.WriteString("\t" + name + "\n")
		left = strings.Repeat(" ", column)
	}
	line := ""
	flush := func() {
		b.WriteString("\t" + left + line + "\n")
		left, line = strings.Repeat(" ", column), ""
	}
	for word := range strings.FieldsSeq(text) {
		if line != "" && 8+column+len(line)+1+len(word) > helpWidth {
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	flush()
}
