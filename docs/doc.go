// Package docs has the pages of the documentation that a program shows.
//
// # Example
//
//	for section := range strings.SplitSeq(docs.Walkthrough, "\n## ") {
//
// # Promises
//
//  1. The lines of a program in Walkthrough are those that the pipeline prints.
//  2. The steps in Counterexamples are those that the exploration finds.
//
// # Concurrency
//
// The package has no state.
package docs

import "embed"

// Walkthrough is walkthrough.md, the life of one Pod through every stage, in Markdown. The Lab of leat demo shows it.
//
//go:embed walkthrough.md
var Walkthrough string

// Counterexamples has counterexamples/NAME.txt: the shortest way to a broken promise if one rule of leat is broken. A
// file has the lines Rule, Promise and Failure, an empty line, and steps with what each part has afterwards. leat
// explore shows them.
//
//go:embed counterexamples/*.txt
var Counterexamples embed.FS
