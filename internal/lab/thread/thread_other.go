//go:build !linux

// Package thread runs functions on operating-system threads that are changed for good.
// It has no content on this system.
package thread
