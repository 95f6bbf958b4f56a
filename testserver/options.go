package testserver

import (
	"fmt"
	"time"

	"go.uber.org/zap"
)

// Options shape a Server. The zero value is a server that behaves like a kube-apiserver with its defaults, without
// authentication, on which every namespace exists.
type Options struct {
	// FirstVersion is the resource version of the server before its first write. Zero means 100; the namespaces that
	// every server has take the four versions up to it.
	FirstVersion uint64
	// Seed makes UIDs and generated names; equal seeds and equal requests give equal objects.
	Seed uint64
	// History is how many changes of each resource are kept. A watch, an exact list or a continue token from before
	// them is expired. Zero means 10,000.
	History int
	// BookmarkInterval is the time between the bookmarks of a watch that allows them. Zero means a minute, a negative
	// value that there are none.
	BookmarkInterval time.Duration
	// WatchTimeout ends a watch that names no timeoutSeconds. Zero means 30 minutes.
	WatchTimeout time.Duration
	// VersionWait is how long a read waits for a version from the future before it is answered with "Too large resource
	// version". Zero means 3 seconds, a negative value not at all.
	VersionWait time.Duration
	// WatchBacklog is how many changes a watch may lie behind, because its client does not read, before it is closed.
	// Zero means that it never is.
	WatchBacklog int

	// StrictNamespaces refuses objects in namespaces that do not exist.
	StrictNamespaces bool
	// ManagedFields records in metadata.managedFields which manager wrote which fields, as kube-apiserver does. Without
	// it only server-side apply does, and what clients send is kept.
	ManagedFields bool
	// ImmediateDeletion makes pods go at once when they are deleted, in one change, as if kubelets had no part in it.
	// Without it a pod is first marked as being deleted, as kube-apiserver has it, and one on a node stays until it is
	// deleted with a grace period of zero.
	ImmediateDeletion bool
	// ExpiredStatus answers a watch from an expired version with HTTP status 410. Without it, as kube-apiserver has
	// it, the answer is 200 and the 410 is an ERROR event.
	ExpiredStatus bool
	// NoWatchCache applies limit to lists with resourceVersion=0 too, as servers without a watch cache do.
	NoWatchCache bool
	// NoStreamingLists refuses sendInitialEvents with 422, as servers without the WatchList feature do.
	NoStreamingLists bool
	// NoAggregatedDiscovery answers /api and /apis with the plain documents only, as servers before Kubernetes 1.27 do.
	NoAggregatedDiscovery bool
	// DropFields honours drop=metadata.managedFields in the Accept header (KEP-5958). Without it the parameter is
	// ignored, as by servers that do not know it.
	DropFields bool
	// Compress gzips lists of more than 128 KiB, and watches, for clients that accept it.
	Compress bool

	// TLS serves over TLS, in memory and on listeners, with a certificate that New makes and Server.CA vouches for.
	TLS bool
	// HTTP2 offers HTTP/2. It implies TLS.
	HTTP2 bool

	// Tokens are the bearer tokens that the server knows, each with its user. When there is any, a request without one
	// of them is answered with 401.
	Tokens Tokens
	// Authorize decides about requests for resources. An error is a 403 that carries its text. Nil allows everything.
	Authorize func(Request) error

	// RequestLog is how many requests are remembered. Zero means 10,000, a negative value none.
	RequestLog int
	// GitVersion is what /version tells. Empty means the version of kube-apiserver whose behaviour is followed.
	GitVersion string
	// Logger hears of failures that no client can be told of. Nil is silent.
	Logger *zap.Logger
}

// Tokens maps bearer tokens to user names. It never prints a token.
type Tokens map[string]string

// Format prints how many tokens there are.
func (t Tokens) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%d tokens", len(t)) }

const (
	defaultFirstVersion = 100
	defaultHistory      = 10_000
	defaultBookmarks    = time.Minute
	defaultWatchTimeout = 30 * time.Minute
	defaultVersionWait  = 3 * time.Second
	defaultRequestLog   = 10_000
	defaultGitVersion   = "v1.36.3"
)

func (o Options) withDefaults() Options {
	o.FirstVersion = max(orDefault(o.FirstVersion, defaultFirstVersion), uint64(len(firstNamespaces)))
	o.History = max(orDefault(o.History, defaultHistory), 1)
	o.BookmarkInterval = orDefault(o.BookmarkInterval, defaultBookmarks)
	o.WatchTimeout = orDefault(o.WatchTimeout, defaultWatchTimeout)
	o.VersionWait = orDefault(o.VersionWait, defaultVersionWait)
	o.RequestLog = max(orDefault(o.RequestLog, defaultRequestLog), 0)
	o.GitVersion = orDefault(o.GitVersion, defaultGitVersion)
	o.TLS = o.TLS || o.HTTP2
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}
