// Package apply has the managers of typed resources, which are package fieldmanager with the types of OpenAPI, and
// strategic merge patches.
//
//	managers := apply.Builtin(fieldmanager.Kind{Group: "apps", Kind: "Deployment"})
//	tree, err := managers.Applied(registry.Manager{Name: "me", Served: "v1"}, live, configuration, false)
//
// # Promises
//
//  1. metadata.managedFields, merged objects and conflicts are those of kube-apiserver: for creations, updates, applies
//     and subresources, in every version of a resource.
//  2. A write that changes nothing keeps all timestamps.
//  3. Equal inputs at equal times give equal bytes.
//  4. The trees of callers do not change, and results share nothing with live objects.
//
// # Concurrency
//
// Managers and patches may be used by several goroutines. The first use of a kind builds its type; others wait for it.
package apply
