package oshost

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCodeMappings(t *testing.T) {
	const smaps = `00400000-00988000 r-xp 00000000 fe:00 9986366                            /usr/bin/fullbore
Size:               5664 kB
Rss:                4496 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
00988000-00f9e000 r--p 00588000 fe:00 9986366                            /usr/bin/fullbore
Anonymous:             0 kB
00f9e000-00fa0000 r--p 00b9e000 fe:00 9986366                            /usr/bin/fullbore
Anonymous:             8 kB
00fa0000-01065000 rw-p 00ba0000 fe:00 9986366                            /usr/bin/fullbore
Anonymous:             0 kB
01065000-032cb000 rw-p 00000000 00:00 0
Anonymous:           116 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 12                         /usr/lib/libc.so.6
Anonymous:             0 kB
7f0000001000-7f0000002000 r--s 00000000 fe:00 9986366                    /usr/bin/fullbore
Anonymous:             0 kB
7f0000002000-7f0000003000 r-xp 00000000 fe:00 9986366                    /usr/bin/fullbore (deleted)
Anonymous:             0 kB
`
	got := codeMappings([]byte(smaps), "/usr/bin/fullbore")
	want := []mapping{{0x400000, 0x988000}, {0x988000, 0xf9e000}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); d != "" {
		t.Error(d)
	}
}

func TestTrimCodeGivesPagesBack(t *testing.T) {
	before := fileKB(t)
	TrimCode()
	if after := fileKB(t); after >= before {
		t.Errorf("%d kB of files are resident, %d before", after, before)
	}
	TestCodeMappings(t) // the code is still there
}

// fileKB is RssFile of this process.
func fileKB(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "RssFile:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kb
		}
	}
	t.Skip("this kernel does not tell resident pages of files (before Linux 4.5)")
	return 0
}
