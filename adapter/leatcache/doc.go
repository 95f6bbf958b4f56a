// Package leatcache puts leat's informers and caches under programs that are written with controller-runtime. Lists,
// watches, decoding and storage are leat's; controllers, sources, handlers and the client stay.
//
// # Differences from controller-runtime
//
// Three options are refused by New with an error that names them: NewInformer, EnableWatchBookmarks with false, and
// Namespaces for a cluster-scoped type. AddIndexers of an informer is an error; IndexField does the same for readers.
//
// A list of a cluster-scoped type ignores a namespace, as an API server does; in controller-runtime it is empty. An
// index function that panics leaves the object out of its index, and the first such panic is logged; in
// controller-runtime it ends the process.
//
// Objects that handlers get, and that reads share, have their apiVersion and kind. A relist calls handlers only for
// changes. Each handler has its own resync period, also one that joins late. An object that was deleted and created
// again under its name is a Delete and an Add. An object that cannot be decoded, or whose transform fails, is not
// cached or stays in its last good state; the rest of the list is cached. A transform must return the type that it got,
// and must keep the name, the namespace, the UID and the version.
//
// # Example
//
//	manager, err := ctrl.NewManager(config, ctrl.Options{NewCache: leatcache.New})
//
//	packed := leatcache.Options{Hold: packed.Bytes[client.Object](), DropManagedFields: true}
//	manager, err := ctrl.NewManager(config, ctrl.Options{NewCache: packed.New}) // objects as bytes
//
// See Example and Example_packed.
//
// # Promises
//
//  1. Reads return what controller-runtime's cache returns: typed, unstructured or metadata-only objects, selected by
//     namespace, labels and indexed fields, as copies unless UnsafeDisableDeepCopy is set.
//  2. Selectors, namespaces, transforms and periods of cache.Options have the same meaning and the same precedence.
//  3. Handlers come and go at any time, each with its initial list.
//  4. Requests have the credentials, the transport and the limits of the rest.Config, or those of Options.HTTPClient.
//  5. An option that leat cannot honour is an error of New that names it.
//  6. With Options.Hold, reads decode a copy that the caller owns, instead of copying a decoded object.
//  7. With Options.Referenced, only objects that others refer to are requested whole. A read of another one is an
//     error that says so, and never an incomplete list.
//
// # Concurrency
//
// All methods may be called on any goroutine. Start returns when all informers have ended. A handler is called on one
// goroutine for each namespace of the options, so calls for objects of one namespace are in order. Handlers and index
// functions share their objects. A panic of a handler ends the process, as in client-go.
package leatcache
