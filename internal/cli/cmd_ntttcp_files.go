package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/fullbore-net/fullbore/internal/cli/process"
	"github.com/fullbore-net/fullbore/internal/render/ntttcplinux"
	"github.com/fullbore-net/fullbore/internal/render/ntttcpwin"
	"github.com/fullbore-net/fullbore/result"
)

// introduce prints what stands before any action and opens the log, in the original's order:
// name, checks of the arguments, what became of an older log, settings.
func (n *ntttcpRun) introduce() io.Closer {
	say := func(text string) {
		if n.detached == nil { // its parent has said it
			_, _ = io.WriteString(n.stdout, text)
		}
	}
	if n.detached == nil {
		_, _ = io.WriteString(n.Err, n.inv.Stderr)
	}
	say(n.inv.Banner + n.inv.Lines)
	log := n.openLog(say)
	if n.out.Verbose {
		say(n.inv.Settings)
	}
	if n.detached == nil {
		n.start()
	}
	return log
}

// start tells what the program does before it takes its role.
func (n *ntttcpRun) start() {
	c := n.newConsole()
	tell := func(m result.Milestone) {
		m.Time = n.Now()
		c.Event(result.Event{Kind: result.KindMilestone, End: n.end(), Milestone: &m})
	}
	if soft, hard := process.Files(); !n.windows && soft > 0 {
		tell(result.Milestone{
			Code: result.MilestoneLine, Severity: "debug",
			Text: fmt.Sprintf("user limits for maximum number of open files: soft: %d; hard: %d", soft, hard),
		})
	}
	if len(n.inv.Plan.Affinity) > 0 {
		tell(result.Milestone{Code: result.MilestoneBound})
	}
	if n.inv.Daemon {
		tell(result.Milestone{Code: result.MilestoneLine, Text: "main: run this tool in the background"})
	}
}

// openLog makes the file of -O. One that cannot be made is said, as the original says it, and the
// test runs.
func (n *ntttcpRun) openLog(say func(string)) io.Closer {
	name := n.out.Log
	if name == "" {
		return io.NopCloser(nil)
	}
	stamped := func(level, text string) { say(n.Now().Format("15:04:05") + " " + level + ": " + text + "\n") }
	if n.detached == nil {
		if _, err := os.Stat(name); err == nil {
			stamped("INFO", "log file exists. try to remove it before writing logs")
			if os.Remove(name) != nil {
				stamped("ERR ", "removing the existing log file failed")
			}
		}
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		stamped("ERR ", "error when capturing console log into file (only report once)")
		if n.detached == nil {
			fmt.Fprintf(n.Err, "ntttcp: -O: %v\n", err)
		}
		return io.NopCloser(nil)
	}
	n.log = f
	return f
}

// ntttcpFile is a file that is written when a test is over.
type ntttcpFile struct {
	option, name string
	add          bool // to what is there
	write        func(io.Writer, *result.Run, *ntttcpSamples) error
}

func (n *ntttcpRun) files() []ntttcpFile {
	var out []ntttcpFile
	if n.out.XML != "" && n.windows {
		out = append(out, ntttcpFile{"-xml", n.out.XML, true, func(w io.Writer, r *result.Run, s *ntttcpSamples) error {
			if s != nil {
				return ntttcpwin.WriteSamples(w, s.runs(r), n.documentOptions())
			}
			return ntttcpwin.WriteXML(w, r, n.documentOptions())
		}})
	} else if n.out.XML != "" {
		out = append(out, ntttcpFile{"-x", n.out.XML, false, func(w io.Writer, r *result.Run, _ *ntttcpSamples) error {
			return ntttcplinux.WriteXML(w, r, n.linuxOptions())
		}})
	}
	if n.out.JSON != "" {
		out = append(out, ntttcpFile{"-j", n.out.JSON, false, func(w io.Writer, r *result.Run, _ *ntttcpSamples) error {
			return ntttcplinux.WriteJSON(w, r, n.linuxOptions())
		}})
	}
	return out
}

// filesWritable tries whether the results will find their place, so that a typing error does not
// cost a test.
func (n *ntttcpRun) filesWritable() bool {
	ok := true
	files := n.files()
	if n.out.JitterFile != "" && n.inv.Serve != nil {
		files = append(files, ntttcpFile{option: "-jm", name: n.out.JitterFile})
	}
	for _, f := range files {
		if err := writable(f.name); err != nil {
			ok = false
			n.fault(fmt.Sprintf("cannot write the file of %s: %v", f.option, err))
		}
	}
	return ok
}

// writable opens a file for writing without changing it; one that was not there is not there
// afterwards.
func writable(name string) error {
	_, err := os.Stat(name)
	missing := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	err = f.Close()
	if missing {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// writeFiles writes the files of a test, in parts where samples is not nil; false = one could not be written, which is said.
func (n *ntttcpRun) writeFiles(run *result.Run, samples *ntttcpSamples) bool {
	ok := true
	for _, f := range n.files() {
		flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if f.add {
			flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
		}
		file, err := os.OpenFile(f.name, flags, 0o644)
		if err == nil {
			err = errors.Join(f.write(file, run, samples), file.Close())
		}
		if err != nil {
			ok = false
			n.fault(fmt.Sprintf("cannot write the file of %s: %v", f.option, err))
		}
	}
	return ok
}
