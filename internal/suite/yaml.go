package suite

import "github.com/fullbore-net/fullbore/internal/strictyaml"

// reader reads a suite file.
type reader struct{ *strictyaml.Reader }

type handler = strictyaml.Handler
