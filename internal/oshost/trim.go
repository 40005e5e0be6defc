package oshost

// TrimCode takes the pages of this program's file that have been used so far out of
// the process's memory; those that are used again come back from the page cache, in
// some µs each. Most are the initialisers of packages, which run once: without them
// the resident size is what the work needs. Only Linux; elsewhere it does nothing.
func TrimCode() { trimCode() }
