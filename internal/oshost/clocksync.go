package oshost

// ClockSync is what this system says of its time of day: whether a time service keeps it, and
// within what it is right, s. MaxError is a bound that the kernel keeps, EstError a guess. Where the
// system does not tell, the error wraps errors.ErrUnsupported. It changes nothing.
func ClockSync() (synced bool, maxError, estError float64, err error) { return clockSync() }
