// Package discovery asks a server what its resources are called.
//
// # Place in the pipeline
//
// Before it, where a person or an object names a resource: a Mapper turns "po", "deployments.apps" or the kind in an
// owner reference into the api.Resource that apiclient.NewTyped takes. A program that knows its resources writes them
// down and does not link this package.
//
// The road through the code: mapper.go decides when something is read, fetch.go reads it, document.go understands it,
// catalog.go finds things in it.
//
// # Guarantees
//
//  1. A name means what it means to kubectl: plural and singular names before short names, those before kinds; the core
//     group, then the server's order, the preferred version before others
//     (TestLookup, TestForKind, TestCategory, TestAnExactGroupComesFirst).
//     Between resources of one group and version there is no order: the error is an *AmbiguousError (TestAmbiguity).
//  2. Servers with aggregated discovery (KEP-3352) and without are told apart by what they answer, whatever stands
//     between, and give the same (TestFallBack, TestAll, TestOnTheTestServer).
//  3. What is known costs no request. A miss reads the documents again, at most once in Options.RefreshInterval, and so
//     finds what was installed later (TestMissesRefreshAtIntervals, TestRefreshInterval, TestADefinitionThatIsInstalledLater).
//     A document that did not change is not sent again (TestMissesRefreshAtIntervals).
//  4. However many ask at once, one reads, and its failure is theirs too (TestOneReadsForAll, TestAFailureIsSharedToo).
//     Who finds what he looks for does not wait for it (TestAReadingDoesNotStopOthers).
//  5. A context ends its own call's wait and nobody else's (TestAContextEndsOnlyItsOwnCall).
//  6. A group that cannot be read hides no other, and what was known of it stays known; it is named by Failed, in
//     *UnknownResourceErrors and beside lists (TestAStaleGroupKeepsItsPlace, TestAGroupOfAnOldServerKeepsItsPlace,
//     TestHalfAServer, TestAVersionThatAnswersIsPreferred, TestNothingButAStaleGroup).
//  7. A refresh that fails takes nothing away (TestRefresh).
//  8. A name that nothing has is an *UnknownResourceError, with the nearest one that there is (TestLookupOfUnknownNames,
//     TestLookupOfInvalidNames). A server that refuses, cannot be reached, or is no API server is a *DocumentError and
//     says nothing about the name (TestUselessAnswers, TestAConnectionThatBreaks, TestAUserThatIsRefusedLater).
//  9. What a server calls its groups and resources reaches no path and no terminal unless it is a name as Kubernetes has
//     them (TestOddEntries, TestOddGroupsOfAnOldServer). However many there are, reading them takes time in proportion
//     (TestManyEntries).
//
// # Concurrency
//
// A Mapper is safe for concurrent use and has no goroutine: the documents are read by one of those who need them, on
// his own goroutine and with his own context; the others wait, and one of them takes over if he gives up. Look-ups of
// what is known take no lock. There are two requests with aggregated discovery. Servers older than Kubernetes 1.27 have
// a document for each version of each group, some sixty, which are read one after the other.
//
// # Differences from client-go
//
// One type does what discovery, its cache, DeferredDiscoveryRESTMapper, ShortcutExpander and CategoryExpander do. Every
// call takes a context. A miss does not throw away what is known. Misses are limited in time (controller-runtime's
// mapper asks anew for each). Short names, and kinds whose singular name is another word, may have a version and any
// group. A version that stands alone means all groups ("hpa.v1"). Of two resources with one short name the first
// group's is meant, always: with aggregated discovery client-go has it at random. The resources that a server remembers
// of an API that does not answer are used; client-go drops them. Where a kind has two resources in one version, the one
// that can be read is taken, and not the last.
//
// # Example
//
// See Example in example_test.go.
package discovery
