// Package discovery finds the resources of a server by the names that people and objects use. A Mapper turns "po",
// "deployments.apps", or the kind in an owner reference, into the api.Resource that apiclient.NewTyped needs. A program
// that knows its resources can declare them, and need not link this package.
//
// Read mapper.go for when documents are read, fetch.go for the requests, document.go for the formats and catalog.go for
// the look-up.
//
// # Example
//
//	mapper := discovery.New(client, discovery.Options{})
//	deployments, err := mapper.Lookup(ctx, "deploy")
//
// See Example.
//
// # Promises
//
//  1. A name means the same as in kubectl. Names come before short names, and those before kinds; then the order of
//     groups and versions decides. If several resources of one group and version are left, the error is an
//     *AmbiguousError.
//  2. Servers with and without aggregated discovery (KEP-3352) give the same results, also behind a proxy.
//  3. A known name costs no request. An unknown name reads the documents again, at most once in
//     Options.RefreshInterval. Unchanged documents are not sent again.
//  4. Concurrent calls share one read and its failure. A look-up of a known name does not wait for it.
//  5. The end of a context ends only its own call.
//  6. A group that cannot be read hides no other group, and its known resources stay. Failed, *UnknownResourceError and
//     incomplete lists name it.
//  7. An unknown name is an *UnknownResourceError with a similar name. A failure of the server is a *DocumentError,
//     which says nothing about the name.
//  8. Invalid names in the documents of a server reach no path and no terminal.
//
// # Concurrency
//
// A Mapper is safe for concurrent use and owns no goroutine. A call that needs the documents reads them with its own
// goroutine and context. Other calls wait; if the reading call gives up, one of them continues. A look-up of a known
// name takes no lock. With aggregated discovery there are two requests. Servers older than Kubernetes 1.27 have about
// sixty documents, which are read one after the other.
//
// # Differences from client-go
//
//   - One type replaces discovery, its cache, DeferredDiscoveryRESTMapper, ShortcutExpander and CategoryExpander. Every
//     call takes a context.
//   - A failed look-up keeps the known resources, and is limited in time. The mapper of controller-runtime sends
//     requests for each one.
//   - Short names may have a version and a group. A version alone means all groups ("hpa.v1").
//   - If two resources have one short name, the first group wins. With aggregated discovery, client-go returns a random
//     one.
//   - If an API does not answer, the server lists the resources that it remembers. They are used; client-go drops them.
//   - If a kind has two resources in one version, the one that can be read wins. In client-go the last one wins.
package discovery
