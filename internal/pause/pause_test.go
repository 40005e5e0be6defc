package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullbore-net/fullbore/internal/pause"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !pause.For(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("a minute took %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if pause.For(ctx, time.Minute) || time.Since(began) != time.Second {
			t.Errorf("ctx ended after a second, the pause after %v", time.Since(began))
		}
		for _, d := range []time.Duration{0, -time.Second} {
			if !pause.For(t.Context(), d) || pause.For(ctx, d) {
				t.Errorf("%v: it is not ctx that decides", d)
			}
		}
	})
}
