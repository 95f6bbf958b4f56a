// Package archtest holds the repository to what its design promises about the code itself: who imports whom, what is
// documented, and what is not done. It has tests only, and every finding names a file, a line and what to do about it.
//
// # Place in the pipeline
//
// Beside it. The tests read the source of the whole repository and ask the go command what the core links.
//
// # Guarantees
//
//  1. Packages import what the table in table_test.go allows and nothing else, and every package is in it
//     (TestImports).
//  2. The core links no client-go, no k8s.io/api, no cobra and no Prometheus, not even through others (TestCoreLinks),
//     and go.mod names neither client-go nor controller-runtime (TestModule).
//  3. Every direct dependency has its row, and its reason, in docs/dependencies.md (TestModule).
//  4. Every exported symbol has a doc comment (TestExportedSymbolsAreDocumented), and every package a doc.go whose
//     sections are in order and whose guarantees name tests that exist (TestPackageCards).
//  5. No test sleeps, nothing has an init function or keeps a context, and files and functions stay readable
//     (TestStyle).
//  6. Each of these rules finds what it is there to find (TestRulesFindWhatTheyForbid).
//
// # Concurrency
//
// Nothing here is concurrent.
package archtest
