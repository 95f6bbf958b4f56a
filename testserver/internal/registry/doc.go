// Package registry says which resources a server has: the built-in ones, those of CustomResourceDefinitions, and how
// they differ. It makes the documents of discovery from them.
//
//	for _, d := range registry.Builtins() { … }
//	d, err := registry.FromCRD(tree)
//	list := registry.GroupList(all)
//
// A Definition has everything that other packages know of a resource: its names and versions, its subresources, the
// fields that selectors may use, and the strategy of its writes. Schemas and columns belong here.
//
// # Promises
//
//  1. Built-in resources have the names, subresources, selectable fields and strategies of kube-apiserver 1.37.
//  2. Both forms of discovery, plain and aggregated, come from the same definitions.
//
// # Concurrency
//
// A Definition never changes after its creation. The functions have no state.
package registry
