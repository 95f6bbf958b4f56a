// Package api defines the basic types of leat: objects, their keys and versions, resources, and the lists and watches
// of a server. It uses no other package of leat, and does no I/O.
//
// # Example
//
//	pods := api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
//	key := api.Key{Namespace: "default", Name: "web-0"}
//	order, ok := api.CompareVersions("9", "10") // -1, true
//	mine := api.Clone(pod)                      // may be changed; objects of a cache may not
//
// See ExampleFormatKey and ExampleClone.
//
// # Promises
//
//  1. Resource versions are ordered as decimal numbers; other versions are only compared for equality.
//  2. ParseKey returns the key that was passed to FormatKey.
//  3. A clone shares no memory that either side can change.
//
// # Concurrency
//
// All types are values and all functions are pure; they may be used on any goroutine. Clone caches a copier for each
// type; the cache is safe for concurrent use.
//
// # Differences from client-go
//
// Object has four methods, metav1.Object about thirty. A Key is a struct, not a formatted string. A ListerWatcher
// streams objects: it never holds a whole list, or a whole page of a list.
package api
