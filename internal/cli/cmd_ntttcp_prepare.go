package cli

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"github.com/fullbore-net/fullbore/internal/cli/process"
	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/osnet"
)

// plainWireVariable set to 1 lets ntttcp treat another fullbore as the program whose place it
// takes, so that one can see, and test, what the real ones do with it.
const plainWireVariable = "FULLBORE_NO_EXTENSION"

// prepare puts into the plan what the command line only hints at, and needs this host to know. An
// error is about an option that cannot be carried out here.
func (n *ntttcpRun) prepare() error {
	if n.Getenv(plainWireVariable) == "1" {
		n.inv.Plan.Extension = "off"
		if n.inv.Serve != nil {
			n.inv.Serve.Extension = "off"
		}
	}
	n.bindDevice()
	n.pinMappings()
	n.uncarried()
	if n.letIn && n.inv.Serve == nil {
		fmt.Fprintln(n.Err, "ntttcp: "+openFirewallWord+" is ignored: it is the receiver's")
	}
	if n.inv.Plan.NTTTCP.HyperV {
		return errors.New("-hv: this build has no Hyper-V sockets; use the network between the machines")
	}
	return n.multiplyWindow()
}

// bindDevice binds a sender that was given a source address to that one's interface too, as
// ntttcp-for-linux does since 1.4.1.
func (n *ntttcpRun) bindDevice() {
	p := &n.inv.Plan
	if a, err := netip.ParseAddr(p.BindHost); err == nil && !n.windows && osnet.Capabilities().BindDevice {
		p.BindDev = interfaceOf(a)
	}
}

// pinMappings takes over the CPUs of the Windows dialect's mappings.
func (n *ntttcpRun) pinMappings() {
	if !n.windows {
		return
	}
	var cpus []int
	free := false
	for _, m := range n.inv.Plan.NTTTCP.Mappings {
		if m.CPU == nil {
			free = true
		} else if !slices.Contains(cpus, *m.CPU) {
			cpus = append(cpus, *m.CPU)
		}
	}
	if len(cpus) == 0 {
		return
	}
	if free {
		fmt.Fprintln(n.Err, "ntttcp: -m: CPUs are set where every mapping has one; with * among them the system chooses")
		return
	}
	n.inv.Plan.Affinity = cpus
	if s := n.inv.Serve; s != nil {
		s.Affinity, s.NTTTCP.Affinity = cpus, cpus
	}
}

// multiplyWindow makes socket buffers of "-W 2". What the system grants less is a warning of the
// test.
func (n *ntttcpRun) multiplyWindow() error {
	t := n.inv.Plan.NTTTCP
	if t.WindowMultiple == 0 {
		return nil
	}
	most, err := oshost.AutotuneMax()
	if err != nil {
		return fmt.Errorf("-W %g: %w; give -rb and -sb in bytes", t.WindowMultiple, err)
	}
	size := int64(min(t.WindowMultiple*float64(most), math.MaxInt32))
	if t.SendSocketBuffer == nil {
		t.SendSocketBuffer = &size
	}
	if t.ReceiveSocketBuffer == nil {
		t.ReceiveSocketBuffer = &size
	}
	return nil
}

// uncarried says which options of ntttcp.exe this build accepts without their effect.
func (n *ntttcpRun) uncarried() {
	t := n.inv.Plan.NTTTCP
	if !process.Windows() { // the command line has said so
		return
	}
	for _, o := range []struct {
		given bool
		text  string
	}{
		{t.NUMANode != nil, "-na: threads run where the system puts them; give CPUs in -m"},
	} {
		if o.given {
			fmt.Fprintln(n.Err, "ntttcp: "+o.text)
		}
	}
}
