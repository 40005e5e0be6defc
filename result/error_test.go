package result

import (
	"errors"
	"fmt"
	"testing"
)

func TestAsError(t *testing.T) {
	told := &Error{Code: "stalled", Text: "it stands still"}
	for _, c := range []struct {
		err  error
		want *Error
	}{
		{nil, nil},
		{told, told},
		{fmt.Errorf("measure: %w", told), told},
	} {
		if got := AsError(c.err); got != c.want {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
	if got := AsError(errors.New("what now")); got.Code != "failed" || got.Text != "what now" {
		t.Errorf("%+v", got)
	}
}
