package leatcache

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/leatproject/leat/adapter/clientgo/restconfig"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/maskguard"
)

// Options are what leat has and cache.Options of controller-runtime do not. Their New is a cache.NewCacheFunc. The zero
// value behaves as controller-runtime does.
type Options struct {
	// Hold decides how objects are held in memory. Packages packed and scale/packed/zstd have implementations that keep
	// bytes: packed.Bytes[client.Object]. Nil keeps the decoded objects. If it is set, the cache returns the memory
	// that its first lists needed to the operating system, five seconds after them (debug.FreeOSMemory).
	Hold informer.Holding[client.Object]
	// DropManagedFields does not cache metadata.managedFields, and asks the server to omit them. It costs less than
	// cache.TransformStripManagedFields, because the fields are not decoded.
	DropManagedFields bool
	// Fields limits what is cached of the objects of a type to these fields and those that codec.Mask always keeps, so
	// that a *corev1.Pod costs what a struct with these fields costs. The key is an object of the type, with its kind
	// if it is unstructured; codec.Mask describes the paths. Other fields of a cached object are zero, so an update
	// with such an object would delete them. Make the client with NewClient, which refuses such writes. New also
	// changes the Transport of cache.Options.HTTPClient, which is the client of a manager too: it refuses creates and
	// updates of masked objects with a *codec.MaskedError. A List whose label selector needs a label that is not kept
	// is an error.
	Fields map[client.Object][]string
	// Referenced caches whole objects of a type only while other objects refer to them, for instance the Secrets of
	// Pods. The key is an object of the type, typed or unstructured; both forms are limited. Metadata are cached of all
	// objects; see package scale/referenced. Get of another object is an error that errors.As finds as
	// *referenced.NotReferencedError, unless References.ReadLive is set. List is always an error, because a part of a
	// list looks like the whole. Handlers get the referenced objects. Hold does not apply. Each
	// request for an object counts for the QPS of the rest.Config, and 0 there means 5 a second.
	Referenced map[client.Object]References
	// Logger receives the log entries of the informers. If it is nil, failed requests and undecodable objects are
	// logged by controller-runtime's logger, and nothing else is logged.
	Logger *zap.Logger
}

// New returns a cache with the default Options. It is a cache.NewCacheFunc.
func New(config *rest.Config, o cache.Options) (cache.Cache, error) { return Options{}.New(config, o) }

// New returns a cache. It sends requests only to find out whether types of ByObject with Namespaces are namespaced. An
// option that leat cannot honour is an error that names it.
func (o Options) New(config *rest.Config, given cache.Options) (cache.Cache, error) {
	if config == nil {
		return nil, errors.New("leatcache: the rest.Config is nil")
	}
	if err := refuse(given); err != nil {
		return nil, err
	}
	c := &Cache{own: o, o: given, byObject: map[schema.GroupVersionKind]cache.ByObject{}, collections: map[collectionKey]*collection{}, started: make(chan struct{})}
	if c.o.Scheme == nil {
		c.o.Scheme = scheme.Scheme
	}
	if err := c.setMasks(o.Fields); err != nil {
		return nil, err
	}
	if err := c.setReferences(o.Referenced); err != nil {
		return nil, err
	}
	if err := c.connect(config); err != nil {
		return nil, err
	}
	for object, by := range given.ByObject {
		gvk, err := apiutil.GVKForObject(object, c.o.Scheme)
		if err != nil {
			return nil, fmt.Errorf("leatcache: ByObject[%T]: %w", object, err)
		}
		if by.Namespaces != nil {
			namespaced, err := apiutil.IsGVKNamespaced(gvk, c.o.Mapper)
			if err != nil {
				return nil, fmt.Errorf("leatcache: ByObject[%T].Namespaces: %w", object, err)
			}
			if !namespaced {
				return nil, fmt.Errorf("leatcache: ByObject[%T].Namespaces is set, but %s are cluster-scoped", object, gvk.Kind)
			}
		}
		c.byObject[gvk] = by
	}
	return c, nil
}

// connect makes the client and the mapper.
func (c *Cache) connect(config *rest.Config) (err error) {
	httpClient := c.o.HTTPClient
	if httpClient == nil {
		httpClient, err = rest.HTTPClientFor(config)
		if err != nil {
			return fmt.Errorf("leatcache: make an HTTP client: %w", err)
		}
	} else if len(c.masks) > 0 {
		httpClient.Transport = maskguard.Wrap(cmp.Or(httpClient.Transport, http.DefaultTransport))
	}
	if c.o.Mapper == nil {
		if c.o.Mapper, err = apiutil.NewDynamicRESTMapper(config, httpClient); err != nil {
			return fmt.Errorf("leatcache: make a RESTMapper: %w", err)
		}
	}
	settings, err := restconfig.Config(config)
	if err != nil {
		return fmt.Errorf("leatcache: %w", err)
	}
	sends := *httpClient
	sends.Timeout = 0 // it would end every watch; settings has the limit of the rest.Config for the head of an answer
	settings.Transport = doer{&sends}
	if c.client, err = apiclient.New(settings); err != nil {
		return fmt.Errorf("leatcache: %w", err)
	}
	return nil
}

// doer sends requests with all that an http.Client has, such as its cookies and its rule for redirects.
type doer struct{ client *http.Client }

// RoundTrip implements http.RoundTripper.
func (d doer) RoundTrip(r *http.Request) (*http.Response, error) {
	return d.client.Do(r.Clone(r.Context())) // Do may add cookies, but a RoundTripper must not change its request
}

// CloseIdleConnections closes connections without requests.
func (d doer) CloseIdleConnections() { d.client.CloseIdleConnections() }

// refuse returns an error if leat cannot honour an option.
func refuse(o cache.Options) error {
	if o.NewInformer != nil {
		return errors.New("leatcache: Options.NewInformer is set, but leat makes the informers; use cache.New of controller-runtime with it")
	}
	bookmarks := map[string]*bool{"DefaultEnableWatchBookmarks": o.DefaultEnableWatchBookmarks}
	for namespace, c := range o.DefaultNamespaces {
		bookmarks[fmt.Sprintf("DefaultNamespaces[%q].EnableWatchBookmarks", namespace)] = c.EnableWatchBookmarks
	}
	for object, by := range o.ByObject {
		bookmarks[fmt.Sprintf("ByObject[%T].EnableWatchBookmarks", object)] = by.EnableWatchBookmarks
		for namespace, c := range by.Namespaces {
			bookmarks[fmt.Sprintf("ByObject[%T].Namespaces[%q].EnableWatchBookmarks", object, namespace)] = c.EnableWatchBookmarks
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bookmarks)) {
		if set := bookmarks[name]; set != nil && !*set {
			return fmt.Errorf("leatcache: Options.%s is false, but leat needs bookmarks to notice a watch that brings nothing", name)
		}
	}
	return nil
}

// scopesOf returns the configuration of each namespace of a collection. The namespace "" stands for all, or for those
// without a configuration of their own.
func (c *Cache) scopesOf(gvk schema.GroupVersionKind, namespaced bool) map[string]cache.Config {
	by := c.byObject[gvk]
	ofType := cache.Config{
		LabelSelector: by.Label, FieldSelector: by.Field, Transform: by.Transform,
		UnsafeDisableDeepCopy: by.UnsafeDisableDeepCopy, SyncPeriod: by.SyncPeriod,
	}
	defaults := cache.Config{
		LabelSelector: c.o.DefaultLabelSelector, FieldSelector: c.o.DefaultFieldSelector, Transform: c.o.DefaultTransform,
		UnsafeDisableDeepCopy: c.o.DefaultUnsafeDisableDeepCopy, SyncPeriod: c.o.SyncPeriod,
	}
	namespaces := by.Namespaces
	if namespaces == nil {
		namespaces = c.o.DefaultNamespaces
	}
	if !namespaced || len(namespaces) == 0 {
		return map[string]cache.Config{"": merge(ofType, defaults)}
	}
	scopes := map[string]cache.Config{}
	for namespace, of := range namespaces {
		scopes[namespace] = merge(of, ofType, c.o.DefaultNamespaces[namespace], defaults)
	}
	if rest, ok := scopes[cache.AllNamespaces]; ok {
		rest.FieldSelector = without(scopes, rest.FieldSelector)
		scopes[cache.AllNamespaces] = rest
	}
	return scopes
}

// merge returns a configuration whose fields are those of the first configuration that sets them.
func merge(first cache.Config, others ...cache.Config) cache.Config {
	for _, o := range others {
		if first.LabelSelector == nil {
			first.LabelSelector = o.LabelSelector
		}
		if first.FieldSelector == nil {
			first.FieldSelector = o.FieldSelector
		}
		if first.Transform == nil {
			first.Transform = o.Transform
		}
		first.UnsafeDisableDeepCopy = cmp.Or(first.UnsafeDisableDeepCopy, o.UnsafeDisableDeepCopy)
		first.SyncPeriod = cmp.Or(first.SyncPeriod, o.SyncPeriod)
	}
	return first
}

// without adds terms to a selector that exclude the namespaces of other scopes.
func without(scopes map[string]cache.Config, selector fields.Selector) fields.Selector {
	var terms []fields.Selector
	for _, namespace := range slices.Sorted(maps.Keys(scopes)) {
		if namespace != cache.AllNamespaces {
			terms = append(terms, fields.OneTermNotEqualSelector("metadata.namespace", namespace))
		}
	}
	if selector != nil {
		terms = append(terms, selector)
	}
	return fields.AndSelectors(terms...)
}

// defaultSyncPeriod is that of controller-runtime.
const defaultSyncPeriod = 10 * time.Hour

// resyncPeriod returns the period of a scope: the given one, shorter or longer by at most a tenth, so that not all
// informers of a program resync at once.
func resyncPeriod(given *time.Duration) time.Duration {
	period := defaultSyncPeriod
	if given != nil {
		period = *given
	}
	return time.Duration(float64(period) * (0.9 + rand.Float64()/5))
}

// logger is the logger of a cache without a Logger.
var logger = log.Log.WithName("leatcache")
