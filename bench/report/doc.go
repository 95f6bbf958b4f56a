// Package report compares a result with the targets, and writes tables and charts. It does not measure.
//
// A target that was not measured counts as missed. Each target of targets.json names a row, an entrant and a metric
// that a run has. Charts are well-formed, and readable on light and dark pages.
//
// # Concurrency
//
// Nothing is shared.
package report
