// Package compare measures how faithful the test server is. It sends the same requests and the same commands of kubectl
// to a test server and to a real kube-apiserver, and compares the answers.
//
// The requests are in testdata, one file for each area. testdata/differences.txt lists the known differences with their
// reasons. README.md describes both formats, and docs/fidelity.md has the result.
//
// # Promises
//
//  1. Each difference has a row with a reason in the table. TestCompare fails when a difference is not in the table,
//     when a row says something else than the answers, and when a row has no difference any more.
//  2. Equal UIDs, versions and generated names stay equal after masking, and different ones stay different.
//  3. A scenario has a namespace of its own, so its answers do not depend on other scenarios.
//
// # Concurrency
//
// A Target may run several scenarios at once. All other values belong to one goroutine.
package compare
