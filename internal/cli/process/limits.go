package process

// Windows reports whether this program runs on that system, whose ways its drop-ins take over
// there: the dialect, the ends of lines.
func Windows() bool { return isWindows }

// Files is how many files the process may have open at once, and the most that it may ask
// for. Both are 0 where the system has no such limit.
func Files() (soft, hard uint64) { return files() }

// RaiseFiles asks for room for n open files, as far as the hard limit allows, and returns what
// Files does then. The Go runtime does that at the start of a program, unless the limit was
// lowered since.
func RaiseFiles(n uint64) (soft, hard uint64) {
	soft, hard = files()
	if soft == 0 || soft >= n {
		return soft, hard
	}
	raiseFiles(min(n, hard), hard)
	return files()
}

// Admin reports whether the process has the rights of an administrator.
func Admin() bool { return admin() }
