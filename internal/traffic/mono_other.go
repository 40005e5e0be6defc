//go:build !linux

package traffic

func monotonic() *int64 { return nil }
