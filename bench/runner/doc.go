// Package runner runs each work with every entrant, in a process of its own, in turns and over several rounds. It
// starts a server and a subject for each turn, and returns the Result for package report.
//
// Each round begins with another entrant. An entrant that used another encoding than its row says has no figure. The
// result has the median, the lowest and the highest value of each figure.
//
// # Concurrency
//
// Run blocks until all started processes have ended. One subject runs at a time.
package runner
