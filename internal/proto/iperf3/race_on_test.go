//go:build race

package iperf3

// raceDetector: with it, values that live on the stack otherwise are allocated.
const raceDetector = true
