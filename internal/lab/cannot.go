package lab

import "fmt"

// CannotError says that this machine cannot make what a scenario asks for: its kernel
// lacks it, or keeps it for the whole machine. It says nothing about what was to be
// tested.
type CannotError struct{ Err error }

func (e *CannotError) Error() string { return "lab: this machine cannot " + e.Err.Error() }

// Unwrap returns the reason.
func (e *CannotError) Unwrap() error { return e.Err }

// cannot makes a CannotError; its text goes on after "this machine cannot".
func cannot(format string, args ...any) error { return &CannotError{fmt.Errorf(format, args...)} }
