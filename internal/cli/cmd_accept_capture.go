package cli

import (
	"os"
	"path/filepath"

	"github.com/fullbore-net/fullbore/internal/suite"
	"github.com/fullbore-net/fullbore/result"
)

// captureCheck sets a capture beside the runs of a stored acceptance.
func captureCheck(rep *result.Report, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	return suite.ThirdPoint(rep, filepath.Base(file), f)
}
