// Package discovery asks a server what its resources are called.
//
// # Place in the pipeline
//
// Before it, where a person names a resource: Lookup turns "pods" or "deployments.apps" into the api.Resource that
// apiclient.For takes. A program that knows its resources writes them down and does not link this package.
//
// # Guarantees
//
//  1. The core group comes first, then the server's order, the preferred version before others; subresources are passed
//     over (TestLookup).
//  2. A name that nothing has is an *UnknownResourceError, which says when documents were missing
//     (TestLookupOfWhatIsNotThere, TestLookupSaysWhyADocumentIsMissing).
//  3. A server that refuses, or is no API server, is an error of its own
//     (TestLookupOnTheTestServer, TestLookupOnAServerThatIsNoAPIServer).
//  4. No document is read twice (TestLookup).
//
// # Concurrency
//
// Lookup keeps nothing and may be called from anywhere; it blocks for a few requests, one after the other.
//
// # Differences from client-go
//
// No cache, no short names, no kinds: one look-up reads only the documents that it needs.
//
// # Example
//
// See Example in example_test.go.
package discovery
