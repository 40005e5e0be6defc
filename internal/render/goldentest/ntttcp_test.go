package goldentest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/render/goldentest"
)

func TestMaskNTTTCP(t *testing.T) {
	t.Parallel()
	const in = "NTTTCP for Linux 1.4.3\n07:07:17 INFO: 4 connections created in 1066 microseconds\n" +
		"07:07:17 DBG : New connection: local:46100 [socket:4] --> 127.0.0.1:5001\n07:07:17 DBG : New connection: local:46101 [socket:5] --> 127.0.0.1:5002\n" +
		"\x1b[2KReal-time throughput: 19.35Gbps\r\x1b[2KReal-time throughput: 0.00bps\r07:08:45 INFO: Test run completed.\n" +
		"07:07:19 INFO: \t user\t\t:4.75%\n07:07:19 INFO: \t cpu speed\t:2300.000MHz\n\t<total_bytes metric=\"MB\">2275.082240</total_bytes>\nReal-time throughput: 1.234Gbps\n"
	const want = "NTTTCP for Linux 1.4.3\n<time> INFO: <n> connections created in <n> microseconds\n" +
		"<time> DBG : New connection: local:<n> [socket:<n>] --> <host>:<n>\n" +
		"\x1b[2KReal-time throughput: <rate>\r\n<time> INFO: Test run completed.\n" +
		"<time> INFO: \t user\t\t:<.2>%\n<time> INFO: \t cpu speed\t:<.3>MHz\n\t<total_bytes metric=\"MB\"><.6></total_bytes>\nReal-time throughput: <.3>Gbps\n"
	if diff := cmp.Diff(want, goldentest.MaskNTTTCP(in)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMaskNTTTCPPairs: recordings of the same options share their layout, others do not.
func TestMaskNTTTCPPairs(t *testing.T) {
	t.Parallel()
	layout := func(file string) string { return goldentest.MaskNTTTCP(string(goldentest.NTTTCP(t, file)[0].Data)) }
	for a, b := range map[string]string{
		"01-tcp-default.sender.txt":   "03-tcp-xml-json.sender.txt",
		"01-tcp-default.receiver.txt": "14-bandwidth-limit.receiver.txt",
		"03-tcp-xml-json.sender.json": "03-tcp-xml-json.sender.json",
		"10-hold.sender1.txt":         "16-receiver-busy.sender1.txt",
	} {
		if diff := cmp.Diff(strings.Split(layout(a), "\n"), strings.Split(layout(b), "\n")); diff != "" {
			t.Errorf("%s and %s:\n%s", a, b, diff)
		}
	}
	for a, b := range map[string]string{
		"01-tcp-default.sender.txt": "05-counters-console.sender.txt", "30-v1.3.4.sender.xml": "31-v1.4.0-tag.sender.xml",
		"01-tcp-default.receiver.txt": "09-nosync.receiver.txt",
	} {
		if layout(a) == layout(b) {
			t.Errorf("%s and %s: no difference", a, b)
		}
	}
}
