package lab

import "github.com/fullbore-net/fullbore/internal/strictyaml"

// reader reads a scenario; what only scenarios hold (rates, sizes, commands) stands beside what needs it.
type reader struct{ *strictyaml.Reader }

type handler = strictyaml.Handler
