package ext

// Swap asks the server to play the client of the test that is described beside it, towards the
// address that the control connection comes from (docs/wire-extension.md §13).
type Swap struct {
	Port int `json:"port"` // of the server that the client has opened there
	// Token has the form of a cookie without its NUL. It is that test's cookie, and all that opens
	// that server.
	Token string `json:"token"`
	// The test's budgets: payload bytes and bit/s of all streams together; 0 = none.
	MaxBytes int64 `json:"max_bytes,omitempty"`
	MaxRate  int64 `json:"max_rate_bps,omitempty"`
}

// Swapped is how a test with exchanged roles went for the end that played the client. Its figures
// are in the results of that test itself.
type Swapped struct {
	Why string `json:"why,omitempty"` // one of the words below; "" = it came to its end
}

// Why a test with exchanged roles did not come to its end. They are few and say no more, so that
// nobody can look around with another's server.
const (
	SwapRefused  = "refused"   // the connection was refused
	SwapNoAnswer = "no-answer" // nothing answered
	SwapNoRoute  = "no-route"  // a system or a router knows no way
	SwapStranger = "stranger"  // what answered is not the client's server
	SwapBroke    = "broke"     // it had begun
)
