package testserver

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/leatproject/leat/api"
)

// Options are the settings of a Server. The zero value behaves like a kube-apiserver with its defaults, but requests
// need no authentication and every namespace exists.
type Options struct {
	// FirstVersion is the resource version of the server before the first write. The four namespaces that New creates
	// have the versions up to it. Zero means 100; the smallest possible value is 4.
	FirstVersion uint64
	// ClockVersions begins with at least the microseconds since 1970, so that a server has newer versions than the one
	// that it replaces. Clients of the earlier server then get 410 and list again, instead of waiting for a version
	// that the new server has not reached. Versions are not reproducible, except in a synctest bubble.
	ClockVersions bool
	// Seed determines UIDs and generated names. Equal seeds and equal requests give equal objects.
	Seed uint64
	// History is the number of changes that are kept of each resource. Older watches, exact lists and continue tokens
	// are expired: they get 410. Zero means 10,000.
	History int
	// BookmarkInterval is the time between the bookmarks of a watch that allows them. Zero means one minute; a negative
	// value means no bookmarks, except the one that ends an initial list.
	BookmarkInterval time.Duration
	// WatchTimeout ends a watch that has no timeoutSeconds. Zero means 30 minutes.
	WatchTimeout time.Duration
	// VersionWait is the time that a read waits for a version that the server has not reached. Then the answer is 504
	// "Too large resource version". Zero means 3 seconds; a negative value means that reads do not wait.
	VersionWait time.Duration
	// WatchBacklog is the number of changes that a watch may be behind when its client does not read. The server closes
	// the watch if there are more. Zero means no limit.
	WatchBacklog int

	// StrictNamespaces rejects new objects in namespaces that do not exist, with 404.
	StrictNamespaces bool
	// NamespaceLifecycle deletes a namespace as kube-apiserver does: it stays in the phase Terminating until a
	// controller has deleted its contents and removed the finalizers of its spec. Without it, the server deletes the
	// namespace and its contents at once.
	NamespaceLifecycle bool
	// ManagedFields records in metadata.managedFields which manager wrote which fields, as kube-apiserver does. Without
	// it, only server-side apply records them, and entries that clients send are kept. The first apply to an object
	// needs force to change a value, because all fields belong to before-first-apply.
	ManagedFields bool
	// ImmediateDeletion removes a pod in one change when it is deleted, as if no kubelet were involved. Without it, the
	// server first marks the pod, as kube-apiserver does; a pod on a node stays until it is deleted with a grace period
	// of zero.
	ImmediateDeletion bool
	// DeletionPause is the time between the two writes that delete a pod without a node: the first one marks it, and
	// the second one removes it. Controllers can see the pod meanwhile, as with kube-apiserver. Zero means a
	// millisecond after Serve was called, and otherwise none, because a test in memory need not let time pass for a
	// deletion. A negative value means none.
	DeletionPause time.Duration
	// MaxObjects is the number of objects at which the server is full. It then answers the creation of another one like
	// kube-apiserver whose etcd is full: 500 "etcdserver: mvcc: database space exceeded". The first
	// namespaces always fit. Zero means no limit.
	MaxObjects int
	// MaxBytes is the number of bytes of all objects, in JSON and without their history, beyond which the server is
	// full. A write that makes an object larger then gets the same answer. Deletions succeed, and free room at once.
	// Zero means no limit.
	MaxBytes int
	// InFlight limits the requests in progress.
	InFlight InFlight
	// ExpiredStatus answers a watch from an expired version with HTTP status 410. Without it, the answer is 200 with an
	// ERROR event that contains the 410, as in kube-apiserver.
	ExpiredStatus bool
	// NoWatchCache applies limit also to lists with resourceVersion=0, as servers without a watch cache do.
	NoWatchCache bool
	// NoWatchList rejects sendInitialEvents with 422, as servers without the WatchList feature (KEP-3157) do.
	NoWatchList bool
	// NoAggregatedDiscovery answers /api and /apis only with the plain documents, as servers before Kubernetes 1.27 do.
	NoAggregatedDiscovery bool
	// DropFields honours drop=metadata.managedFields in the Accept header (KEP-5958). Without it, the server ignores
	// the parameter, as older servers do.
	DropFields bool
	// ShardedLists obeys shardSelector in lists, watches and deletions of collections (KEP-5866). Without it, the
	// server ignores the parameter, as kube-apiserver 1.37 does without the feature gate ShardedListAndWatch.
	ShardedLists bool
	// Compress gzips answers of more than 128 KiB for clients that accept it, as kube-apiserver does. It does not
	// affect watches.
	Compress bool
	// CompressWatches gzips watches for clients that accept it. kube-apiserver never does, but a proxy in front of it
	// may.
	CompressWatches bool

	// TLS serves over TLS, in memory and on listeners. New creates the certificate; clients need Server.CA to trust it.
	TLS bool
	// HTTP2 offers HTTP/2. It implies TLS.
	HTTP2 bool
	// Certificate returns the certificate for a connection, in memory too. It needs TLS or HTTP2. Nil, and a nil
	// certificate, mean the one that New creates, which is the only one that Client and TLSConfig trust.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)

	// Middleware returns the handler of all connections. It gets the handler of the server, which nil means. A program
	// can serve more on the listener of the server, such as other servers, with their ServeHTTP. Forks do not have it.
	Middleware func(http.Handler) http.Handler

	// AllowedHosts are more host names for a listener that Serve gets: "name", which allows any port, or "name:port".
	// Serve rejects web pages of other origins; manager.ServerOptions.SameOrigin lists the hosts that are always
	// allowed. Run rejects nothing, because no browser reaches it.
	AllowedHosts []string

	// Tokens are the accepted bearer tokens, each with its user. If there is at least one, requests without an accepted
	// token get 401, except those for health and version.
	Tokens Tokens
	// Authorize decides about requests for resources. An error is answered with 403 and its text. Nil allows
	// everything.
	Authorize func(Request) error

	// RequestLog is the number of requests that Server.Requests can return. Zero means 10,000; a negative value means
	// none.
	RequestLog int
}

// Tokens maps bearer tokens to user names. It never prints a token.
type Tokens map[string]string

// Format prints the number of tokens.
func (t Tokens) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%d tokens", len(t)) }

const (
	defaultFirstVersion = 100
	defaultHistory      = 10_000
	defaultBookmarks    = time.Minute
	defaultWatchTimeout = 30 * time.Minute
	defaultVersionWait  = 3 * time.Second
	defaultRequestLog   = 10_000
)

func (o Options) withDefaults() Options {
	o.FirstVersion = max(cmp.Or(o.FirstVersion, defaultFirstVersion), uint64(len(firstNamespaces)))
	if o.ClockVersions {
		o.FirstVersion = max(o.FirstVersion, uint64(time.Now().UnixMicro()))
	}
	o.History = max(cmp.Or(o.History, defaultHistory), 1)
	o.BookmarkInterval = cmp.Or(o.BookmarkInterval, defaultBookmarks)
	o.WatchTimeout = cmp.Or(o.WatchTimeout, defaultWatchTimeout)
	o.VersionWait = cmp.Or(o.VersionWait, defaultVersionWait)
	o.RequestLog = max(cmp.Or(o.RequestLog, defaultRequestLog), 0)
	o.TLS = o.TLS || o.HTTP2
	return o
}

// Definition is a custom resource that the server serves. It corresponds to a CustomResourceDefinition; Server.Define
// needs no such object.
type Definition struct {
	api.Resource

	// Versions are served besides Resource.Version: the same objects under other apiVersions.
	Versions []string
	// Singular is the singular name. Empty means the kind in lower case.
	Singular   string
	ShortNames []string
	Categories []string
	// NoStatus omits the status subresource. status is then a normal field.
	NoStatus bool
	// SelectableFields are paths such as "spec.host" that field selectors may use, besides metadata.name and
	// metadata.namespace.
	SelectableFields []string
}

// InFlight limits the requests in progress as kube-apiserver does. Watches and other streams do not count, and neither
// do requests of the control plane. Members of system:masters are never rejected. The zero value has no limits.
type InFlight struct {
	// Reads and Writes are the numbers of requests at which one more gets 429. Zero means no limit.
	Reads, Writes int
	// Queue makes the sum of both the limit of all requests. One more waits for up to 15 seconds and then gets 429.
	Queue bool
}
