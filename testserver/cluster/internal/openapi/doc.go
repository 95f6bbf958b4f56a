// Package openapi has the OpenAPI documents of a server, versions 2 and 3, and the types in which package apply merges
// objects.
//
//	documents := openapi.New(server.Definitions)
//	if documents.Serve(w, r) {
//		return
//	}
//	pod, ok := openapi.TypeOf(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
//
// # Promises
//
//  1. The documents have the definitions and paths of kube-apiserver for the resources that the server has.
//  2. Starting a server builds nothing. The first request for a document builds it, and a later change of the resources
//     builds again only what has changed.
//  3. Equal resources give equal bytes and equal hashes.
//
// # Concurrency
//
// Documents may serve several requests at a time. What belongs to the built-in types is built once in a process, and
// never changes then.
package openapi
