package conclude_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fullbore-net/fullbore/internal/conclude"
)

func TestAdviceOf(t *testing.T) {
	for line, want := range map[string]conclude.Advice{
		"measure again tomorrow": {Text: "measure again tomorrow"},
		"on a (Linux): sysctl -w net.ipv4.tcp_rmem='4096 131072 8388608'": {
			Where: "on a (Linux)", Commands: []string{"sysctl -w net.ipv4.tcp_rmem='4096 131072 8388608'"},
		},
		"on b (if it is Windows): netsh interface tcp show global": {
			Where: "on b (if it is Windows)", Commands: []string{"netsh interface tcp show global"},
		},
		"several streams (fullbore test b --up -P 4)":    {Text: "several streams", Commands: []string{"fullbore test b --up -P 4"}},
		"a longer look: fullbore test b --up -t 120":     {Text: "a longer look: ", Commands: []string{"fullbore test b --up -t 120"}},
		"fullbore doctor, at both ends":                  {Text: "at both ends:", Commands: []string{"fullbore doctor"}},
		"on a (Linux): sysctl net.ipv4.x must be 1 here": {Where: "on a (Linux)", Text: "sysctl net.ipv4.x must be 1 here"},
		"the same port: fullbore test b --cport 1, and fullbore test b --cport 2": {
			Text: "the same port: ", Commands: []string{"fullbore test b --cport 1", "fullbore test b --cport 2"},
		},
		"on b (Linux): sysctl -w net.core.rmem_max=16777216, and a program that asks for it": {
			Where: "on b (Linux)", Text: "and a program that asks for it:", Commands: []string{"sysctl -w net.core.rmem_max=16777216"},
		},
		"before it drops: tc qdisc replace dev DEV root tbf rate 5M (or cake)": {
			Text: "before it drops (or cake)", Commands: []string{"tc qdisc replace dev DEV root tbf rate 5M"},
		},
		"on a: who sends? (ss -tinp; nethogs)": {Text: "on a: who sends? (ss -tinp; nethogs)"},
	} {
		if diff := cmp.Diff(want, conclude.AdviceOf(line)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}
