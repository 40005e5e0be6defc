// Package lab builds network paths whose truth is known, out of network namespaces
// on one machine, so that every number and every verdict of fullbore can be checked.
//
// Three topologies: two ends on a veth pair (NewPair), two ends with a router between
// them (NewRouted), and two ends on an emulated link (NewLink) whose rate, delay,
// queue and loss follow a schedule (package link) that a process of ours carries out
// (package forward). A Scenario is a path, commands and what must be said, as a small
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

// LinkCommand returns the command line of the link process for a fullbore binary: its
// hidden command "lab link", which calls LinkMain.
func LinkCommand(fullbore string) []string { return []string{fullbore, "lab", "link"} }

// LinkMain is the body of the link process. It returns when in, its standard input,
// ends.
func LinkMain(in io.Reader, out io.Writer) error { return forward.Main(in, out) }
