package ntttcp

// ExitCode is a row of the table of exit codes.
type ExitCode struct {
	Code     int
	When     string
	Original string // what the original ends with then, where it differs
}

// LinuxExits are the exit codes in the Linux dialect.
var LinuxExits = []ExitCode{
	{Code: ExitOK, When: "done; also a test that had begun and that Ctrl-C ended, at either end"},
	{Code: ExitInterrupted, When: "Ctrl-C while no test ran"},
	{Code: ExitBroken, When: "the test broke off after it had begun: the other end disappeared, or nothing came through; what was measured is printed", Original: "0, or it never ends"},
	{Code: ExitUsage, When: "`-h`, an unknown option, a receiver's address that is none, a file that cannot be written", Original: "0 when the file of the result cannot be written"},
	{Code: ExitSync, When: "no receiver, or one that is busy or refuses; data ports that refuse (`-P` differs); a port or a source address that cannot be had", Original: "it never ends where a data port refuses or is taken"},
	{Code: ExitConflict, When: "arguments that exclude each other, too few files"},
}

// WindowsExits are the exit codes in the Windows dialect.
var WindowsExits = []ExitCode{
	{Code: ExitOK, When: "done"},
	{Code: ExitConnect, When: "no receiver; data ports that refuse; a port or address that cannot be had", Original: "0, or it never ends"},
	{Code: ExitRefused, When: "the receiver is busy, or does not want this test", Original: "there is no such answer"},
	{Code: ExitBroken, When: "the test broke off after it had begun; what was measured is printed", Original: "0"},
	{Code: ExitWindowsParameters, When: "the command line is wrong, or a file cannot be written"},
	{Code: ExitCtrlC, When: "Ctrl-C; what was measured is printed", Original: "it is killed, without totals"},
}
