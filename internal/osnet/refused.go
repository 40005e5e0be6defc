package osnet

// Refused reports whether a connection failed because nobody listens there. Windows' number for it
// is none of package syscall's.
func Refused(err error) bool { return isRefused(err) }
