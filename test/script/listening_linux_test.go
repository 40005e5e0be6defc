package script

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// listening reads the kernel's socket tables, so that looking does not count as a visit.
func listening(port int) bool {
	want := fmt.Sprintf(":%04X", port)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		sc := bufio.NewScanner(f)
		for sc.Scan() {
			fields := strings.Fields(sc.Text())
			if len(fields) > 3 && strings.HasSuffix(fields[1], want) && fields[3] == "0A" {
				_ = f.Close()
				return true
			}
		}
		_ = f.Close()
	}
	return false
}
