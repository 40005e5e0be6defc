package doctor

import (
	"fmt"

	"github.com/fullbore-net/fullbore/internal/oshost"
	"github.com/fullbore-net/fullbore/internal/units"
)

func rate(bps int64) string { return units.BitRate(bps).String() }

func linkSpeed(p *patient) []Check {
	if len(p.NICs) == 0 {
		return unseen("no interface leads to the peer", p.command("ip route get ADDRESS", "Find-NetRoute -RemoteIPAddress ADDRESS"))
	}
	var out []Check
	for _, n := range p.hardware() {
		c := Check{On: n.Name}
		switch {
		case n.State == "down":
			c.Status, c.Found = Change, n.Name+" is down"
			c.Why = "No packet leaves by it."
			c.Fix = p.command("ip link set "+n.Name+" up", "Enable-NetAdapter -Name "+psQuote(n.Name))
		case n.SpeedBPS == nil && (p.virtual() || n.Kind == oshost.KindWireless):
			c.Status, c.Found = Info, n.Name+" has no fixed speed"
			c.Why = "The limit is set elsewhere (hypervisor, cloud size, radio): know it before judging a number."
		case n.SpeedBPS == nil:
			c.Status, c.Found = Unknown, "speed of "+n.Name+" not reported"
			c.Fix = p.command("ethtool "+n.Name, "Get-NetAdapter -Name "+psQuote(n.Name)+" | Format-List LinkSpeed,FullDuplex")
		case n.MaxBPS != nil && *n.SpeedBPS < *n.MaxBPS && !n.Nominal:
			c.Status = Change
			c.Found = fmt.Sprintf("%s negotiated %s, the card can do %s", n.Name, rate(*n.SpeedBPS), rate(*n.MaxBPS))
			c.Why = "A damaged cable, a slower port or fixed settings on one side: layer 1 comes first."
			c.Fix = p.negotiate(n) + p.command("; ethtool "+n.Name, "")
		case int64(p.goal.Rate) > *n.SpeedBPS && len(p.hardware()) == 1:
			c.Status = Change
			c.Found = fmt.Sprintf("%s runs at %s, less than the %s asked for", n.Name, rate(*n.SpeedBPS), p.goal.Rate)
			c.Why = "No setting makes this link carry more than its speed."
		default:
			c.Status, c.Found = OK, n.Name+" at "+rate(*n.SpeedBPS)
			if n.Nominal {
				c.Found += " (what the virtual card claims)"
			}
		}
		out = append(out, c)
	}
	if out == nil {
		return one(Check{Status: Info, Found: fmt.Sprintf("%s is no hardware (%s)", p.NICs[0].Name, p.NICs[0].Kind), Why: "The figures will be those of this machine's memory and kernel, not of a network."})
	}
	return out
}

// negotiate is the command that lets the two sides agree again.
func (p *patient) negotiate(n *oshost.NIC) string {
	return p.command("ethtool -s "+n.Name+" autoneg on",
		// By its keyword: names and values on the settings page are translated.
		"Set-NetAdapterAdvancedProperty -Name "+psQuote(n.Name)+" -RegistryKeyword '*SpeedDuplex' -RegistryValue 0")
}

// virtual reports whether this is a virtual machine; unknown counts as not.
func (p *patient) virtual() bool { return p.Host.Virtual != "" && p.Host.Virtual != "none" }

func duplex(p *patient) []Check {
	var out []Check
	for _, n := range p.hardware() {
		switch {
		case n.Kind == oshost.KindWireless:
			out = append(out, Check{
				On: n.Name, Status: Info, Found: n.Name + " is a radio",
				Why: "Wi-Fi is shared and half duplex: measure one station at a time, 60 s, about four streams, and do not expect the same number twice.",
			})
		case n.Duplex == "half":
			out = append(out, Check{
				On: n.Name, Status: Change, Found: n.Name + " runs half duplex",
				Why: "One side negotiates and the other does not, or a hub is in between: collisions under load, and each direction disturbs the other.",
				Fix: p.negotiate(n),
			})
		case n.Duplex == "full":
			out = append(out, Check{On: n.Name, Status: OK, Found: n.Name + " full duplex"})
		}
	}
	return out
}

// linkErrors looks at what the card threw away since the interface came up.
func linkErrors(p *patient) []Check {
	var out []Check
	for _, n := range p.hardware() {
		e := n.Errors
		if e == nil {
			continue
		}
		bad := max(e.RxCRC, e.RxErrors)
		c := Check{On: n.Name, Status: OK, Found: fmt.Sprintf("%s: %d receive errors in %d packets", n.Name, bad, e.RxPackets)}
		if bad > 0 && float64(bad) > 1e-6*float64(e.RxPackets) {
			c.Status = Change
			c.Why = "Frames arrive damaged: cable, connector, optic or duplex. TCP reads that as congestion; loss of 1 in 10 000 already costs a fast path most of its rate."
			c.Fix = p.command("ethtool -S "+n.Name+" | grep -iE 'err|crc|fail'", "netstat -e")
		}
		if e.TxErrors > 0 && c.Status == OK {
			c.Status, c.Found = Info, fmt.Sprintf("%s: %d transmit errors", n.Name, e.TxErrors)
			c.Why = "Look whether the count rises while a test runs."
		}
		out = append(out, c)
	}
	return out
}

func linkStability(p *patient) []Check {
	var out []Check
	for _, n := range p.hardware() {
		if n.Errors == nil || n.Errors.Carrier <= 10 || n.Kind == oshost.KindWireless {
			continue
		}
		out = append(out, Check{
			On: n.Name, Status: Change, Found: fmt.Sprintf("%s lost or found its link %d times since boot", n.Name, n.Errors.Carrier),
			Why: "A link that comes and goes breaks long runs: cable, optic, port or energy saving.",
			Fix: p.command("journalctl -k | grep "+n.Name, "Get-WinEvent -LogName System | Where-Object Message -match 'network link'"),
		})
	}
	return out
}

func networkCard(p *patient) []Check {
	var out []Check
	for _, n := range p.hardware() {
		c := Check{On: n.Name, Status: OK, Found: describe(n)}
		if n.Model == "" && n.Driver == "" {
			c.Status, c.Fix = Unknown, p.command("lspci -nnk | grep -iA3 net", "Get-NetAdapter | Format-List InterfaceDescription,DriverInformation")
		}
		if n.Emulated {
			c.Status = Change
			c.Found = n.Name + ": " + n.Model + " is imitated by the hypervisor"
			c.Why = "Each packet leaves the virtual machine to be imitated in software: about a gigabit at one core's full load."
			c.Fix = paravirtualAdvice(p.Host.Virtual)
		}
		out = append(out, c)
	}
	return out
}

func describe(n *oshost.NIC) string {
	s := n.Name + ": " + n.Model
	if n.Model == "" {
		s = n.Name + ": model unknown"
	}
	if n.Driver != "" {
		s += ", driver " + n.Driver
	}
	if n.Firmware != "" {
		s += ", firmware " + n.Firmware
	}
	return s
}

// paravirtualAdvice says which virtual card to take instead, in the hypervisor's words.
func paravirtualAdvice(hypervisor string) string {
	switch hypervisor {
	case "vmware":
		return "set the adapter type to VMXNET3 (ethernet0.virtualDev = \"vmxnet3\")"
	case "hyperv":
		return "replace the legacy network adapter by a network adapter (Add-VMNetworkAdapter)"
	case "virtualbox":
		return "VBoxManage modifyvm NAME --nictype1 virtio"
	}
	return "set the card's model to virtio (virsh edit NAME: <model type='virtio'/>)"
}

// pcieSlot compares what the slot carries with what the card sends.
func pcieSlot(p *patient) []Check {
	var out []Check
	for _, n := range p.hardware() {
		if n.PCIeBPS == nil || n.SpeedBPS == nil {
			continue
		}
		c := Check{On: n.Name, Status: OK, Found: fmt.Sprintf("%s: %s in each direction", n.Name, rate(*n.PCIeBPS))}
		switch {
		case *n.PCIeBPS < *n.SpeedBPS:
			c.Status = Change
			c.Why = fmt.Sprintf("The slot carries less than the card's %s, before the bus's own overhead.", rate(*n.SpeedBPS))
			c.Fix = p.command("lspci -vv -s BUS | grep -i lnksta", "Get-NetAdapterHardwareInfo")
			c.Why += " Move it to a slot with more lanes."
		case n.PCIeMax != nil && *n.PCIeBPS < *n.PCIeMax && float64(*n.PCIeBPS) < 1.2*float64(*n.SpeedBPS):
			c.Status = Info
			c.Why = fmt.Sprintf("The card could use %s; with the bus's overhead this slot is about as fast as the link.", rate(*n.PCIeMax))
		}
		out = append(out, c)
	}
	return out
}

func mtu(p *patient) []Check {
	if len(p.NICs) == 0 || p.NICs[0].MTU == 0 {
		return nil
	}
	n := &p.NICs[0]
	c := Check{On: n.Name, Status: OK, Found: fmt.Sprintf("%s: %d bytes", n.Name, n.MTU)}
	switch {
	case n.Kind == oshost.KindLoopback:
	case n.MTU < 1280:
		c.Status = Change
		c.Why = "IPv6 needs 1280 bytes, and small packets cost CPU for each."
		c.Fix = p.command("ip link set "+n.Name+" mtu 1500", "netsh interface ipv4 set subinterface \""+n.Name+"\" mtu=1500")
	case n.MTU < 1500:
		c.Status = Info
		c.Why = "A tunnel or a cloud network takes the rest; both ends and all between must agree."
	case n.MTU > 1500:
		c.Status = Info
		c.Why = "Jumbo frames work only when both ends and every switch between have them; on one side only, large packets vanish."
		c.Fix = p.command(fmt.Sprintf("ping -M do -s %d PEER", n.MTU-28), fmt.Sprintf("ping -f -l %d PEER", n.MTU-28))
	}
	return one(c)
}
