package main

// knownWrong are scenarios of which the program does not say what is true, by their files'
// names, with what is in the way. The expectation stays as the truth is; the table and
// TestReplay tell them apart from new faults, and TestReplay fails when one of them has come
// right, so that the list never outlives its reason.
var knownWrong = map[string]string{
	"diagnose-clean-8m-60ms":                "what waited behind a hole at the end of the warm-up counts as arrived in the measured time",
	"diagnose-competing-60m-down":           "the allowance for what lies between a socket and its interface is too large for a short stage",
	"diagnose-compound-up-loss-down-window": "several streams fill the path in spite of the loss, and the stage at half of one stream's rate is too slow to lose",
	"diagnose-control-unfit":                "several streams fill the path in spite of the loss, and the stage at half of one stream's rate is too slow to lose",
	"diagnose-loss-2-20m-40ms-down":         "several streams fill the path in spite of the loss, and the stage at half of one stream's rate is too slow to lose",
	"diagnose-outage-1s-down":               "the outage of a second is not seen in the direction from the server",
}
