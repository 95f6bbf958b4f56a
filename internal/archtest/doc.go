// Package archtest checks the rules of the design that concern the code itself: imports, documentation, and constructs
// that the code must not use. It has only tests. They read the source of the whole repository and call the go command.
// Every finding names a file, a line and what to do.
//
// # Promises
//
//  1. Packages import only what the table in table_test.go allows, and every package is in that table.
//  2. The core links no client-go, k8s.io/api, cobra or Prometheus, not even indirectly, and go.mod requires neither
//     client-go nor controller-runtime.
//  3. Every direct dependency has a row with its reason in docs/dependencies.md.
//  4. Every exported symbol has a doc comment. Every package has a doc.go with the right sections, and the doc.go of
//     package leat links it.
//  5. Every promise of a doc.go has a row in promises.md, and every test that a row names exists.
//  6. Comments and pages follow the style sheet in CONTRIBUTING.md, as far as a program can check it.
//  7. No test sleeps, no package has an init function, no struct contains a context, and files and functions have a
//     limited length. Each rule finds what it forbids.
//  8. Every exported name has a user in another package, or a line with a reason in exported.txt.
//
// # Concurrency
//
// Nothing here is concurrent.
package archtest
