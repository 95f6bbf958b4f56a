// Package docs has the pages of the documentation that a program shows.
//
// # Example
//
//	for section := range strings.SplitSeq(docs.Walkthrough, "\n## ") {
//
// # Promises
//
//  1. The lines of a program in Walkthrough are those that the pipeline prints.
//
// # Concurrency
//
// The package has no state.
package docs

import _ "embed" // of the pages

// Walkthrough is walkthrough.md, the life of one Pod through every stage, in Markdown. The Lab of leat demo shows it.
//
//go:embed walkthrough.md
var Walkthrough string
