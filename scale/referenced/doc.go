// Package referenced caches whole objects only if another object refers to them. An operator that reads the Secrets of
// its custom resources needs a few of them, but an informer, like the cache of controller-runtime, holds all Secrets of
// the cluster. This package watches the metadata of all objects, and requests each referenced object by its name: when
// the first object refers to it, and again when its metadata show another version. It never requests the others whole.
//
// One watch with a field selector for each object would do without the metadata. It is not used, because each such
// watch costs the API server a comparison for every event of the collection, and has a version of its own.
//
//	referrers → index of references ─┐
//	metadata of all → informer ──────┴→ Set ──GET──▶ API server
//	                                     └──▶ DeltaFIFO → informer.Informer → cache, handlers
//
// Read referenced.go for the Set and its reads, entry.go for what happens with one object, fetch.go for the requests,
// and feed.go for Run and the status.
//
// # Example
//
//	set := referenced.New(secrets, referenced.Options[*corev1.Secret]{}) // secrets is a client of package apiclient
//	users, err := referenced.Follow(set, sites, func(s *Site) []api.Key { return s.Secrets() })
//	go set.Run(ctx)
//	secret, err := set.Get(ctx, key) // a *NotReferencedError if no Site refers to it
//	sites := users.Keys(key)         // the Sites that refer to a Secret, for a handler of set
//
// See Example. Use set.Informer for controllers and for clients of package cachedclient, and add set to a manager.
//
// # Promises
//
//  1. Only referenced objects are requested whole. The others are in memory with their key, UID, version and labels.
//  2. An object is cached while at least one object refers to it. When the last reference ends, it leaves the cache.
//  3. At a version of the cache, each cached object has its state at this version, or a newer one that the metadata
//     have reached too. WaitFor, and the gates of package cachedclient, rely on that.
//  4. A read says why it has no object: not referenced, not found, or not fetched, with the error of the last request.
//  5. Each handler gets a legal history of each object, even while references come and go.
//  6. At most Options.MaxFetches objects are requested at once. A request that fails is repeated with a growing pause,
//     and Status has its error. It delays no other object, but a cached object that cannot be fetched again holds the
//     version of the cache back.
//  7. Run returns when ctx ends, and all goroutines have ended then.
//
// # Expected behavior of callers
//
// Call Follow before Run, and run the followed informers. The function that returns references must depend only on the
// object. A handler gets an object that lost its last reference, or that was deleted, as a deletion with an unknown
// final state. Grant get, list and watch for the resource.
//
// # Concurrency
//
// Each request runs on a goroutine of its own. The goroutines of the followed informers and of the metadata update the
// set; they take a mutex and do not block. Get and WaitFor block; every method may be called on any goroutine.
//
// # Limits
//
// An object that becomes referenced enters the cache without a new version. Get waits for it; a List of the cache does
// not have it yet. Annotations arrive with the metadata and are skipped; kubectl apply writes whole objects into one of
// them. A server that cannot answer with PartialObjectMetadata sends whole objects; their metadata are kept.
//
// # Differences from client-go
//
// client-go has no such cache. The kubelet has one for its own use, with a watch for each object.
package referenced
