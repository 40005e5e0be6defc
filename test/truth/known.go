package main

// knownWrong are scenarios of which the program does not say what is true, by their files'
// names, with what is in the way. The expectation stays as the truth is; the table and
// TestReplay tell them apart from new faults, and TestReplay fails when one of them has come
// right, so that the list never outlives its reason.
var knownWrong = map[string]string{}
