package ntttcp

// The exit codes of ntttcp-for-linux: the low eight bits of its codes (src/const.h).
const (
	ExitOK          = 0
	ExitInterrupted = 1   // Ctrl-C while no test ran
	ExitUsage       = 23  // ERROR_ARGS: -h, an unknown option, an address that is not this machine's
	ExitSync        = 24  // ERROR_GENERAL: no receiver, a busy one, a refused start; no such source address
	ExitConflict    = 255 // arguments that exclude each other, too few files
)

// The exit codes of what the originals do not report: those of the native commands.
const (
	ExitConnect = 4
	ExitRefused = 5
	ExitBroken  = 6
	ExitCtrlC   = 130 // Windows dialect
)

// The exit codes of ntttcp.exe 5.40. Whatever happens after the test began is 0 there.
const (
	ExitWindowsParameters = 9
)

// The texts of ntttcp-for-linux 1.4.3 (src/parameter.c, main.c, util.c), which scripts
// look for. All of them are log lines.
const (
	textBothRoles      = "both sender and receiver roles provided"
	textNoMapping      = "no mapping provided"
	textIPv6           = "invalid ipv6 address provided"
	textIPv4           = "invalid ipv4 address provided"
	textSourceReceiver = "source interface address ('-a') is only for sender or client"
	textSourceAddress  = "invalid client address"
	textNoRole         = "no role specified. use receiver role"
	textMultiSender    = "multi-clients mode ('-M') is only for receiver role"
	textLastReceiver   = "last-client ('-L') is only for sender role"
	textManyPorts      = "too many number-of-server-ports. use the max value"
	textManyThreads    = "too many threads-per-server-port. use the max value"
	textManyConns      = "too many connections-per-thread. use the max value"
	textFewPorts       = "invalid number-of-server-ports provided. use 1"
	textFewThreads     = "invalid threads-per-server-port provided. use 1"
	textFewConns       = "invalid connections-per-thread provided. use 1"
	textSourcePorts    = "source port is too high to provide a sufficient range of ports for your test"
	textLimited        = "Warning! '%s' is specified and the network bandwidth may be limited"
	textFQIgnored      = "ignore '--fq-rate-limit' as '-B' is specified"
	textUDPSize        = "the UDP send size is too big. use the max value"
	textInterface      = "invalid network interface provided. ignore it"
	textInterrupts     = "invalid interrupt device provided. ignore it"
	textDuration       = "invalid test duration provided. use the default value"
	textContinuous     = "running test in continuous mode. please monitor throughput by other tools"
	textWarmUp         = "invalid test warm-up seconds provided. use the default value"
	textCoolDown       = "invalid test cool-down seconds provided. use the default value"
	textNoDelayUDP     = "--no-delay option is not applicable for UDP"
	textVerify         = "main: error when verifying the args"
	textMappingCPU     = "process_mappings: cpu specified is not in allowed scope"
	textMappingFields  = "process_mappings: unexpected parameters in mapping"
	textFiles          = "soft limit is too small: limit is %d; but total connections will be %d (or more on receiver)"
	textFilesDebug     = "user limits for maximum number of open files: soft: %d; hard: %d"
	textResources      = "main: error when checking resource limits"
	textNotLocal       = "cannot listen on the IP address specified"
)

// Texts of our own, for what the Linux program takes and then cannot do.
const (
	textPorts  = "ports out of range: data ports %d to %d, and %d to synchronise"
	textBuffer = "invalid buffer size provided ('-b')"
	textRate   = "invalid rate provided ('%s')"
)

// The texts of ntttcp.exe 5.40 (src/ntttcp.c: ProcessArgs, ProcessMappings, VerifyArgs).
const (
	winUnknown      = "Unknown option(s)"
	winOption       = "%s option"
	winTimeN        = "-t option (with -n set)"
	winThreads      = "threads in -m option"
	winThreadsTotal = "total threads in -m option"
	winProcessor    = "processor in -m option"
	winState        = "wrong state in -m option"
	winFinal        = "wrong final state in -m option"
	winMappings     = "too many mappings"
	winWSASync      = "No support for WSA APIs with sync"
	winWSAPackets   = "no support for WSA APIs and TransmitPackets"
	winPacketsSync  = "no support for TransmitPackets in synchronous mode"
	winPacketsRecv  = "no support for TransmitPackets in receive mode"
	winWaitAll      = "full read flag supported only in synchronous mode or with WSA flag"
	winNoMapping    = "Option: -m <mapping> is missing"
	winNICReceive   = "cannot use -nic option in receive mode"
	winThrottle     = "Throughput throttling only in send mode."
	winManyThreads  = "Without '-ns', fewer than 1000 threads (connections) are allowed."
	winEStatsUDP    = "EStats information cannot be retrieved for UDP Ports."
	winEStatsAdmin  = "need to be admin to run -es option."
	winSampleTime   = "Sampling works only with time flag (-t)."
	winSpacingOne   = "Packet spacing mode is only supported for 1 thread."
	winSpacingAsync = "Packet spacing mode is only supported in synchronous mode."
	winSpacingRecv  = "cannot use -ps in receive mode"
	winSpacingThr   = "Packet spacing mode and -thr are not supported"
	winSpacingBurn  = "Packet spacing mode and -brn are not supported"
	winJitterSize   = "Buffer size is too small for jitter measurement mode"
	winOutstanding  = "Outstanding I/O count (-a) must be smaller than 64"
	winRoundTrip    = "No support for async roundtrip"
	winUSO          = "-uso requires -s and -u"
	winURO          = "-uro requires -r and -u"
	winUnconnected  = "unconnected UDP requires UDP"
	winUnconnectedA = "no support for async unconnected UDP"
	winParameters   = "error in parameters"
)
