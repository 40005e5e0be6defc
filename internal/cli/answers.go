package cli

import (
	"fmt"
	"io"

	"github.com/fullbore-net/fullbore/internal/method"
	"github.com/fullbore-net/fullbore/result"
)

// answers prints the tables that the command of a kept report showed below its sentence.
func (e *env) answers(w io.Writer, rep *result.Report) {
	there := *e
	there.Out = w
	if w != e.Out {
		there.Terminal = false
	}
	v := there.newStageView(true, true)
	switch {
	case rep.TCPFramework != nil:
		fmt.Fprintln(w)
		v.frameworkTable(rep)
	case rep.Activation != nil:
		fmt.Fprintln(w)
		v.activationTable(rep.Activation)
	case rep.ConnRate != nil:
		fmt.Fprintln(w)
		v.connTable(rep.ConnRate)
	case rep.Kind == "rfc2544" && len(rep.Findings) > 0:
		fmt.Fprintln(w)
		finalRFC2544(v, rep)
	case len(rep.Findings) > 0:
		fmt.Fprintln(w)
		finalFindings(v, rep)
	}
}

// connTable prints the steps of connrate.
func (v *stageView) connTable(c *result.ConnRate) {
	var m method.ConnRate
	fmt.Fprintln(v.e.Out, connHead())
	for i := range c.Steps {
		fmt.Fprintln(v.e.Out, connRow(&m, &c.Steps[i]))
	}
}
