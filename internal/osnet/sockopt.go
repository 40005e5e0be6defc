package osnet

import "errors"

// sockopt is an integer socket option of this system. The zero value is one that the
// system does not have; using it gives errors.ErrUnsupported.
type sockopt struct {
	level, name int
	exists      bool
}

func (o sockopt) get(fd uintptr) (int, error) {
	if !o.exists {
		return 0, errors.ErrUnsupported
	}
	return getInt(fd, o.level, o.name)
}

func (o sockopt) set(fd uintptr, v int) error {
	if !o.exists {
		return errors.ErrUnsupported
	}
	return setInt(fd, o.level, o.name, v)
}
