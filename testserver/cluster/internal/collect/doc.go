// Package collect is the garbage collector of a cluster. It deletes the objects whose owners are gone, and carries out
// the propagation policies of deletions: foreground, background and orphan. It corresponds to the garbage collector of
// kube-controller-manager, and works with any API server.
//
// Read item.go for what the collector keeps of an object, watched.go for how it follows every resource of the server,
// decide.go for the decision about one object, and reconcile.go for the requests.
//
// # Example
//
//	err := collect.New(client, collect.Options{}).Run(ctx) // blocks until ctx ends
//
// # Promises
//
//  1. An object is deleted when it has owner references and none of its owners exists. An owner exists only in the
//     namespace of the object, or without a namespace, and only with the UID of the reference.
//  2. An object that still has an owner loses the references to the owners that are gone.
//  3. An owner that is deleted in the foreground goes after all dependents whose references block its deletion. A cycle
//     of owners is deleted too.
//  4. An owner that is deleted with the policy orphan goes after its dependents have lost their references to it.
//  5. The resources of CustomResourceDefinitions take part as soon as the server lists them. References to kinds that
//     the server does not have, and references from an object without a namespace into a namespace, are kept, and the
//     object is not deleted.
//  6. A reference to an owner in another namespace causes an Event with the reason OwnerRefInvalidNamespace.
//
// # Concurrency
//
// Run has the goroutines of one controller, of one recorder, and of one informer for each resource. They end with its
// context.
package collect
