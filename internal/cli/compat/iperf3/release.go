package iperf3

import "fmt"

// Release is the release of iperf3 whose behaviour is shown.
type Release string

// The releases that can be asked for. R321 is the default.
const (
	R321 Release = "3.21"
	R312 Release = "3.12"
)

// ReleaseVariable is the environment variable that asks for a release.
const ReleaseVariable = "FULLBORE_IPERF3_COMPAT"

// ParseRelease reads the value of ReleaseVariable; "" is the default. An unknown one
// gives the default together with an error that says so.
func ParseRelease(s string) (Release, error) {
	switch r := Release(s); r {
	case "":
		return R321, nil
	case R321, R312:
		return r, nil
	}
	return R321, fmt.Errorf("%s=%s is not known (3.12, 3.21): behaving as 3.21", ReleaseVariable, s)
}

// longUsage: up to 3.13 a fault prints the whole help, after a parameter error on stdout.
func (r Release) longUsage() bool { return r == R312 }

// maxOmit is the limit of -O in seconds: 60 up to 3.17, then 600.
func (r Release) maxOmit() int64 {
	if r == R312 {
		return 60
	}
	return 600
}

// maxMSS is the limit of -M in bytes: 9216 up to 3.20.
func (r Release) maxMSS() int64 {
	if r == R312 {
		return 9216
	}
	return 32767
}

// text is the wording of a parameter error in release r; t is that of 3.21.
func (r Release) text(t string) string {
	if old, ok := texts312[t]; ok && r == R312 {
		return old
	}
	return t
}
