// Package documents answers requests for the documents of kube-apiserver that are not about resources: the index of all
// paths, the checks of its health one by one, and the keys that sign the tokens of service accounts.
//
//	documents := documents.New(server.Definitions, identity)
//	if documents.Serve(w, r) {
//		return
//	}
//
// # Promises
//
//  1. The index has the paths of kube-apiserver 1.37 for the resources that the server has, also those of metrics and
//     flags, which the server does not serve.
//  2. The checks have the names of those of kube-apiserver, and they all pass.
//
// # Concurrency
//
// Documents may serve several requests at a time.
package documents
