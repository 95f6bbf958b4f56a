// Package runner has the same work done by every entrant, each in a process of its own, by turns and over several rounds.
//
// # Place in the pipeline
//
// Around everything: it starts a server of package server and a subject for each turn, and hands what they report to
// package report.
//
// # Guarantees
//
//  1. Entrants take turns, and each round begins with another one (TestTurnsRotate).
//  2. A figure of an entrant that spoke another encoding than its row says is no figure (TestWrongWireIsAnError).
//  3. What is reported is the median, with the lowest and the highest beside it (TestMedian).
//
// # Concurrency
//
// Run blocks until every process it started has ended. One subject runs at a time.
//
// # Differences from client-go
//
// client-go has nothing like it.
package runner
