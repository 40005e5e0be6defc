package ntttcplinux

import "fmt"

// Release names the layout of a release of ntttcp-for-linux.
type Release string

// The layouts, oldest first. Two programs print "1.4.0": the one tagged in 2019, and what
// was built from then to 2025, which is the 1.4.0 that almost everybody has.
const (
	R134     Release = "1.3.4"
	R140Tag  Release = "1.4.0-tag"
	R140     Release = "1.4.0"
	R143     Release = "1.4.3"
	Latest           = R143
	tagNames         = "1.3.4, 1.4.0-tag, 1.4.0, 1.4.3"
)

var order = map[Release]int{R134: 1, R140Tag: 2, R140: 3, R143: 4}

// ParseRelease returns the release with that name; "" is the newest.
func ParseRelease(name string) (Release, error) {
	r := Release(name)
	if name == "" {
		return Latest, nil
	}
	if order[r] == 0 {
		return "", fmt.Errorf("no layout of ntttcp-for-linux %q; there are %s", name, tagNames)
	}
	return r, nil
}

// since reports whether r is other or later; "" is the newest.
func (r Release) since(other Release) bool {
	if r == "" {
		r = Latest
	}
	return order[r] >= order[other]
}

// String is the number that the program prints.
func (r Release) String() string {
	switch r {
	case "":
		return string(Latest)
	case R140Tag:
		return "1.4.0"
	}
	return string(r)
}
