// Package lab builds network paths whose truth is known, out of network namespaces
// on one machine, so that every number and every verdict of fullbore can be checked.
//
// Four topologies: two ends on a veth pair (NewPair), two ends with a router between
// them (NewRouted), two ends on an emulated link (NewLink) whose rate, delay,
// queue and loss follow a schedule (package link) that a process of ours carries out
// (package forward), and such a link behind a host that splits connections (NewSplit). A Scenario is a path, commands and what must be said, as a small
// text file; Run plays one.
//
// The link watches itself. A run in which the machine did not let it be punctual is
// void and is played again; after too many the outcome is "machine unfit", which is
// neither right nor wrong.
//
// All of it needs Linux and root. Elsewhere the functions return an error that wraps
// errors.ErrUnsupported; scenarios can be read and checked anywhere.
package lab

import (
	"io"

	"github.com/fullbore-net/fullbore/internal/lab/forward"
)

// Addresses and device names of the topologies. In a pair and on an emulated link
// both ends share a subnet.
const (
	NearIPv4, FarIPv4 = "10.77.0.1", "10.77.0.2"
	NearIPv6, FarIPv6 = "fd77::1", "fd77::2"

	RoutedNearIPv4, RoutedFarIPv4 = "10.77.1.2", "10.77.2.2"
	RoutedNearIPv6, RoutedFarIPv6 = "fd77:1::2", "fd77:2::2"

	PairNear, PairFar     = "va", "vb" // devices of a pair; also the ends of a routed path
	RouterNear, RouterFar = "ra", "rb" // the router's devices
	LinkNear, LinkFar     = "ta", "tb" // devices of an emulated link
	SplitMid              = "vm"       // the middle's device towards the client, on a split path
)

// LinkCommand returns the command line of the link process for a fullbore binary: its
// hidden command "lab link", which calls LinkMain.
func LinkCommand(fullbore string) []string { return []string{fullbore, "lab", "link"} }

// LinkMain is the body of the link process. It returns when in, its standard input,
// ends.
func LinkMain(in io.Reader, out io.Writer) error { return forward.Main(in, out) }
