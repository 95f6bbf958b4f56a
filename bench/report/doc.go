// Package report says what a run has found: which targets are met, in tables, and in charts.
//
// # Place in the pipeline
//
// After package runner, whose Result it reads. It measures nothing.
//
// # Guarantees
//
//  1. A target that was not measured is missed, not met (TestTargets).
//  2. Every target of targets.json names a row, an entrant and a metric that a run has (TestTargetsNameWhatIsMeasured).
//  3. Charts are well-formed, and readable on a light and on a dark page (TestCharts).
//
// # Concurrency
//
// Nothing is shared.
//
// # Differences from client-go
//
// client-go has nothing like it.
package report
