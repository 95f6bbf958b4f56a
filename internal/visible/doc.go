// Package visible prints texts of strangers to a terminal: names, messages and versions of a cluster or of a recording.
// A terminal executes control characters. An escape sequence hides a line, changes one that is already printed, or
// sets the title of the window; a mark of the writing direction shows a name in another order.
//
// # Example
//
//	visible.Fprintf(w, "%-9s %s\n", kind, name)
//
// # Promises
//
//  1. A printed character is a letter, a mark, a number, a punctuation, a symbol or a space. Others appear as escapes.
//  2. The format decides where a line and a column end. A line break and a tab of an argument appear as escapes too.
//  3. The escapes are those of JSON, so that JSON stays JSON with the same values. Escaped text stays as it is.
//
// # Concurrency
//
// The functions are safe for concurrent use. A writer is as safe as the writer that it wraps.
//
// # Differences from client-go
//
// kubectl escapes the escape character only (CVE-2021-25743).
package visible
