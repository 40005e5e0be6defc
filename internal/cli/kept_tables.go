package cli

import (
	"fmt"
	"io"

	"github.com/fullbore-net/fullbore/result"
)

// keptTables prints of a kept report what its command had printed below the closing sentence: the table of a
// load, of packet sizes, of a soak.
func (e *env) keptTables(w io.Writer, rep *result.Report) {
	there := *e
	there.Out = w
	if w != e.Out {
		there.Terminal = false
	}
	v := there.newStageView(false, true)
	switch {
	case rep.Load != nil:
		fmt.Fprintln(w)
		v.loadTable(rep.Load)
	case rep.Kind == "mtu" && len(rep.Paths) > 0:
		fmt.Fprintln(w)
		v.mtuLines(rep.Paths)
	case rep.Soak != nil:
		fmt.Fprintln(w)
		v.soakTables(rep)
		v.soakHost(rep.Soak)
		fmt.Fprintln(w)
	}
}
