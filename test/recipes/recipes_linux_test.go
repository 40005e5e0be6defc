package recipes

import (
	"os"
	"testing"

	"github.com/fullbore-net/fullbore/internal/plan"
)

// shortened is how long the timed ones run, s.
const shortened = 2

// TestRecipes plays every recipe with this program at both ends.
func TestRecipes(t *testing.T) {
	t.Parallel()
	for _, r := range All() {
		t.Run(r.Name(), func(t *testing.T) {
			t.Parallel()
			r.Play(t, space(t), own(), own(), shortened)
		})
	}
}

// TestOriginals plays what the original carries through against it, in both roles, when
// FULLBORE_NTTTCP names an ntttcp-for-linux. It is no part of CI: there is no package of it, and it
// hangs by itself now and then (a sender of 64 threads, one of which did not get a core in time).
func TestOriginals(t *testing.T) {
	t.Parallel()
	path := os.Getenv("FULLBORE_NTTTCP")
	if path == "" {
		t.Log("FULLBORE_NTTTCP names no ntttcp-for-linux: nothing to play against")
		return
	}
	original := Tool{Name: "original", Args: []string{path}, Dialect: plan.NTTTCPLinux, Original: true}
	for _, r := range All() {
		for _, ends := range [][2]Tool{{original, own()}, {own(), original}} {
			if !ends[0].Plays(r, r.Receiver) || !ends[1].Plays(r, r.Sender) {
				continue
			}
			t.Run(r.Name()+", "+ends[0].Name+" receives", func(t *testing.T) {
				t.Parallel()
				r.Play(t, space(t), ends[0], ends[1], shortened)
			})
		}
	}
}
