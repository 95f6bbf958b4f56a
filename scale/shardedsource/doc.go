// Package shardedsource has a source that lists and watches only the objects whose hash is in given ranges: a shard of
// a collection (KEP-5866). It sends the ranges as the shardSelector of each request. kube-apiserver 1.37 obeys it only
// with the feature gate ShardedListAndWatch, and ignores it otherwise. A Source finds out, and in the second case it
// drops the objects of other shards itself, before they are decoded.
//
//	apiclient.PartialClient → shardedsource.Source → informer.Informer or a scope of scopes.Set
//	shard.Member → shardedsource.Scopes → scopes.Set: the ranges that the replica holds now
//
// Read shardedsource.go, decision.go and request.go for a source, and streams.go for Scopes.
//
// # Example
//
//	half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
//	all := apiclient.NewTyped[*corev1.Pod](client, pods, "")
//	source := shardedsource.New(all, hashrange.UID, half, shardedsource.Options{})
//	inf := informer.New(source, informer.Options[*corev1.Pod]{})
//
// With package shard, an informer of the ranges that a replica holds:
//
//	set := scopes.New(pods, scopes.Options[*corev1.Pod]{})
//	streams := shardedsource.NewScopes(set, all, hashrange.UID, shardedsource.Options{})
//	defer member.Follow(streams)()
//	webs := shard.For(member, set.Informer) // run streams beside the set and the member
//
// See Example and ExampleNewScopes.
//
// # Promises
//
//  1. The objects that come through a Source are exactly those of the collection whose hash is in the ranges, whether
//     the server obeys, ignores, refuses or misreads the shardSelector.
//  2. A server that says that it obeys, and sends an object of another shard, may have lost some: the request fails,
//     and the objects are listed again without the shardSelector. The server gets it again with the first
//     list or watch after ten minutes, also if a watch resumes.
//  3. A list or watch has the shardSelector only if the server has shown that it obeys. Neither WatchLists nor lists of
//     custom resources say so, therefore a list of a range without objects comes first.
//  4. Objects of other shards that the server sends are neither decoded nor kept, if the source reads JSON or protobuf
//     with package codec.
//  5. The Status of the informer says who cuts and why, also for each scope. A change is logged, with the same reason
//     at most once in ten minutes for all ranges of a Scopes.
//  6. With Scopes, the objects of a range that the replica keeps stay in the cache while other ranges come and go.
//     Objects of a lost range disappear without notifications.
//  7. Scopes reads a new range with a consistent list, which has the last writes of the former owner. If the cache
//     still has objects from an earlier time, they disappear before, and handlers get them again.
//  8. A range has at most four scopes of a Scopes, except while they are replaced.
//
// # Concurrency
//
// All methods may be called on any goroutine. List, Watch and Scopes.Run run on the caller's goroutine. This package
// starts none.
//
// # Limits
//
// The type of the objects must keep metadata.uid if the ranges are of UIDs. Without the help of the server, each shard
// receives the whole collection over the network: n shards cause n times the traffic, and so does each scope of a
// Scopes. One informer of all objects is then better. A Source does not notice a server that obeys but uses another
// hash, if that hash keeps the objects of a shard together.
//
// A range that comes back while Scopes is still removing it is at first read from the older cache.
package shardedsource
