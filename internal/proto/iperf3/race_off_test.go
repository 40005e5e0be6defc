//go:build !race

package iperf3

const raceDetector = false
