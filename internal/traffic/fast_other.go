//go:build !linux

package traffic

import "github.com/fullbore-net/fullbore/result"

// shared: nothing is shared where only the portable worker exists.
type shared struct{}

func (e *Engine) buildFast(flows []*stream) ([]*stream, error) { return flows, nil }

func (e *Engine) txPath() string                 { return "copy" }
func (e *Engine) paceInKernel(int64) bool        { return false }
func (e *Engine) pin(int, bool) func()           { return func() {} }
func checkAffinity([]int) error                  { return nil }
func (e *Engine) fallbackNotice() *result.Notice { return nil }
func (*shared) acquire(int)                      {}
func (*shared) release()                         {}
