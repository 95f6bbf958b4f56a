// Package definitions has custom resources as kube-apiserver has them: the resource customresourcedefinitions itself,
// and the resources that its objects define. The rules are those of k8s.io/apiextensions-apiserver, used as a library.
//
//	all := definitions.New(definitions.Options{})
//	server := testserver.NewExtended(options, extension.Extension{
//		Resources:  []*registry.Definition{all.Resource()},
//		Definition: all.Definition,
//	})
//
// Rules in CEL are compiled when a definition with rules is validated, and once more when an object of its version is
// first written. A server without such rules never builds the environment of CEL: 28 ms and 0.8 MB of heap for the
// first definition.
//
// # Promises
//
//  1. Objects get the defaults, lose the fields and get the errors of their schema, with the texts of kube-apiserver.
//  2. An object is readable in every served version; a webhook converts it if the definition names one.
//  3. Equal definitions and objects give equal answers.
//
// # Concurrency
//
// Definitions is safe for concurrent use. A Schema calls the webhook of its definition on the goroutine of its caller.
package definitions
