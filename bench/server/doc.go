// Package server is an API server whose answers cost almost nothing: it sends pods that are already encoded, so that
// the client is measured. It uses neither leat nor its peers.
//
// Lists, pages, WatchLists and watches have the answers of kube-apiserver: whole objects and metadata, in JSON and
// protobuf. Equal requests get equal bytes. The server does not compress, and ignores drop=metadata.managedFields
// (KEP-5958, alpha). It obeys shardSelector (KEP-5866) only with Options.Shards, and then supports hashes of UIDs. A
// watch begins at the requested version and misses no change. The server records each request, so that the runner can
// check the encoding.
//
// # Concurrency
//
// Run blocks until everything that it started has ended. All other methods may be called on any goroutine while Run
// runs. The goroutine of the request serves a watch: one write and one chunk for each event, and a flush when there is
// nothing more to send, as in kube-apiserver.
package server
