// Package leat exports nothing. This page names the packages of leat: informers, workqueues and controllers for
// Kubernetes, written from scratch, without client-go. A leat is the channel that leads a stream to a mill. This one
// leads the watch stream of an API server to reconcile workers. README.md shows a program, and docs/walkthrough.md the
// life of one Pod, stage by stage.
//
// # The pipeline
//
// Package [api] defines objects, resources, changes and sources of objects. [hashrange] defines the ranges of hashes
// with which an API server divides a collection.
//
// Package [apiclient] sends requests to an API server. A kubeconfig file configures it ([kubeconfig]), perhaps with a
// credential plugin ([exec]). [discovery] finds resources by name, and [websocket] watches over WebSocket.
//
// Package [codec] decodes answers into one Go type, from JSON and from protobuf, and encodes objects.
//
// Package [reflector] decides when to list, when to watch and when to wait.
//
// Package [deltafifo] collects the changes of each object, and decides what each change is.
//
// Package [cache] stores the objects as snapshots with indexes. Readers never wait.
//
// Package [informer] connects the stages above. It applies each batch of changes, and calls handlers. A [factory]
// shares informers between the parts of a program.
//
// Package [workqueue] keeps each key once until a worker takes it.
//
// Package [controller] turns changes into keys, and keys into reconciles. A [predicate] decides which changes do.
//
// # Reconcilers and programs
//
// Package [cachedclient] reads from a cache and writes to the server, so that a reconcile sees its own writes.
//
// The packages below reconcile help a reconciler: [owner] references, [expectations] of writes that a cache does not
// show yet, [events] for users, and [conditions] with finalizers.
//
// Package [manager] starts and ends the parts of a program in order. With [leaderelection] one replica works at a time,
// and [accessreview] serves metrics only to clients that the API server allows. Package [program] creates everything
// that the parts share. [metrics] contains collectors for Prometheus. [webhook] serves admission and conversion, with a
// certificate of [selfsigned].
//
// # Many objects, replicas, clusters and agents
//
// The packages below scale are variants of a source or of an informer. [scopes] reads many namespaces or selectors into
// one cache. [referenced] caches whole objects only if others refer to them. [shard] divides the objects of a
// controller among replicas, and [shardedsource] reads only one part.
// [packed] keeps objects as bytes, which [zstd] compresses. [warmstart] continues the watch of the previous process.
// [stagger] spreads the lists of agents that start together. [driftcheck] finds changes that the server did not send.
// [multicluster] follows clusters that come and go.
//
// # Observing a program
//
// The packages below observe show what happens. [livepage] is a web page of a running program, and [history] is the
// same page over a recording. [recording] writes what a server sends to a file, and [replay] serves it again.
//
// # Adapters
//
// The packages below adapter connect leat with other libraries, most of them in modules of their own: [clientgo] for
// programs on client-go, [leatcache] for programs on controller-runtime, [otel] for OpenTelemetry, and [zapslog] for
// log/slog.
//
// # Testing
//
// Package [testkit] runs a controller in a test, on fake time, and [simulation] runs a program against random faults.
// Both use [testserver], an API server in memory that misbehaves on demand: [faults] defines its faults, and
// [faultplan] reads them from text. Package [cluster] adds the types and rules of Kubernetes, and replaces envtest.
//
// [api]: https://pkg.go.dev/github.com/leatproject/leat/api
// [hashrange]: https://pkg.go.dev/github.com/leatproject/leat/api/hashrange
// [apiclient]: https://pkg.go.dev/github.com/leatproject/leat/apiclient
// [kubeconfig]: https://pkg.go.dev/github.com/leatproject/leat/apiclient/kubeconfig
// [exec]: https://pkg.go.dev/github.com/leatproject/leat/apiclient/exec
// [discovery]: https://pkg.go.dev/github.com/leatproject/leat/apiclient/discovery
// [websocket]: https://pkg.go.dev/github.com/leatproject/leat/apiclient/websocket
// [codec]: https://pkg.go.dev/github.com/leatproject/leat/codec
// [reflector]: https://pkg.go.dev/github.com/leatproject/leat/reflector
// [deltafifo]: https://pkg.go.dev/github.com/leatproject/leat/deltafifo
// [cache]: https://pkg.go.dev/github.com/leatproject/leat/cache
// [informer]: https://pkg.go.dev/github.com/leatproject/leat/informer
// [factory]: https://pkg.go.dev/github.com/leatproject/leat/informer/factory
// [workqueue]: https://pkg.go.dev/github.com/leatproject/leat/workqueue
// [controller]: https://pkg.go.dev/github.com/leatproject/leat/controller
// [predicate]: https://pkg.go.dev/github.com/leatproject/leat/predicate
// [cachedclient]: https://pkg.go.dev/github.com/leatproject/leat/cachedclient
// [owner]: https://pkg.go.dev/github.com/leatproject/leat/reconcile/owner
// [expectations]: https://pkg.go.dev/github.com/leatproject/leat/reconcile/expectations
// [events]: https://pkg.go.dev/github.com/leatproject/leat/reconcile/events
// [conditions]: https://pkg.go.dev/github.com/leatproject/leat/reconcile/conditions
// [manager]: https://pkg.go.dev/github.com/leatproject/leat/manager
// [leaderelection]: https://pkg.go.dev/github.com/leatproject/leat/manager/leaderelection
// [accessreview]: https://pkg.go.dev/github.com/leatproject/leat/manager/accessreview
// [program]: https://pkg.go.dev/github.com/leatproject/leat/program
// [metrics]: https://pkg.go.dev/github.com/leatproject/leat/metrics
// [webhook]: https://pkg.go.dev/github.com/leatproject/leat/webhook
// [selfsigned]: https://pkg.go.dev/github.com/leatproject/leat/webhook/selfsigned
// [scopes]: https://pkg.go.dev/github.com/leatproject/leat/scale/scopes
// [referenced]: https://pkg.go.dev/github.com/leatproject/leat/scale/referenced
// [shard]: https://pkg.go.dev/github.com/leatproject/leat/scale/shard
// [shardedsource]: https://pkg.go.dev/github.com/leatproject/leat/scale/shardedsource
// [packed]: https://pkg.go.dev/github.com/leatproject/leat/scale/packed
// [zstd]: https://pkg.go.dev/github.com/leatproject/leat/scale/packed/zstd
// [warmstart]: https://pkg.go.dev/github.com/leatproject/leat/scale/warmstart
// [stagger]: https://pkg.go.dev/github.com/leatproject/leat/scale/stagger
// [driftcheck]: https://pkg.go.dev/github.com/leatproject/leat/scale/driftcheck
// [multicluster]: https://pkg.go.dev/github.com/leatproject/leat/scale/multicluster
// [livepage]: https://pkg.go.dev/github.com/leatproject/leat/observe/livepage
// [history]: https://pkg.go.dev/github.com/leatproject/leat/observe/livepage/history
// [recording]: https://pkg.go.dev/github.com/leatproject/leat/observe/recording
// [replay]: https://pkg.go.dev/github.com/leatproject/leat/observe/recording/replay
// [clientgo]: https://pkg.go.dev/github.com/leatproject/leat/adapter/clientgo
// [leatcache]: https://pkg.go.dev/github.com/leatproject/leat/adapter/leatcache
// [otel]: https://pkg.go.dev/github.com/leatproject/leat/adapter/otel
// [zapslog]: https://pkg.go.dev/github.com/leatproject/leat/adapter/zapslog
// [testkit]: https://pkg.go.dev/github.com/leatproject/leat/testkit
// [simulation]: https://pkg.go.dev/github.com/leatproject/leat/testkit/simulation
// [testserver]: https://pkg.go.dev/github.com/leatproject/leat/testserver
// [faults]: https://pkg.go.dev/github.com/leatproject/leat/testserver/faults
// [faultplan]: https://pkg.go.dev/github.com/leatproject/leat/testserver/faultplan
// [cluster]: https://pkg.go.dev/github.com/leatproject/leat/testserver/cluster
package leat
