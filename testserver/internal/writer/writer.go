package writer

import (
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Writer has the rules of writes. It checks objects, sets the fields that the server owns, and stores the result.
type Writer struct {
	store   *store.Store
	options Options
	limits  Limits
	pause   atomic.Int64 // between the two writes of a deletion, as a time.Duration

	crds      map[*store.Record]parsedCRD // of the stored definitions
	unsettled []string                    // definitions that settle has to look at
}

// Options are the settings of a Writer.
type Options struct {
	StrictNamespaces  bool // new objects need an existing namespace
	ManagedFields     bool // writes are recorded in managedFields
	ImmediateDeletion bool // pods are deleted without waiting for a kubelet
	// NamespaceLifecycle leaves the contents of a deleted namespace to a controller, and keeps the namespace until the
	// controller has removed the finalizers of its spec.
	NamespaceLifecycle bool

	// Definition returns the resource of a CustomResourceDefinition, with a Schema. It fails or returns nil if the
	// resource is not served. Nil: registry.FromCRD, and the rules of Untyped.
	Definition func(crd object.Tree) (*registry.Definition, error)
	// Settle returns a CustomResourceDefinition as its controllers write it next, or nil; see extension.Extension. Nil:
	// everything is accepted and established at once.
	Settle func(crd object.Tree, others []object.Tree, populated bool) object.Tree
}

// Limits are the numbers of objects and of bytes in JSON at which a store is full. Zero means no limit.
type Limits struct{ Objects, Bytes int }

// Limit sets the limits. It is called before the first request.
func (wr *Writer) Limit(l Limits) { wr.limits = l }

// errFull is the answer of kube-apiserver whose etcd is full.
var errFull = store.StorageError(errors.New("etcdserver: mvcc: database space exceeded"))

// room returns an error if a record does not fit into the store instead of old, which is nil for a new object. A change
// that does not make an object larger always fits, so that a full store can be used. The caller holds the lock.
func (wr *Writer) room(old, next *store.Record) error {
	grows := next.Size()
	if old != nil {
		grows -= old.Size()
	}
	switch l := wr.limits; {
	case l.Objects > 0 && old == nil && wr.store.Len() >= l.Objects, l.Bytes > 0 && grows > 0 && wr.store.Bytes()+grows > l.Bytes:
		return errFull
	}
	return nil
}

// New returns the rules of writes to a store.
func New(s *store.Store, o Options) *Writer { return &Writer{store: s, options: o} }

// Fork returns the rules of writes to a fork of the store. A definition that converts with a webhook is made again by
// the options, because the connections to webhooks belong to one server. The caller holds the lock.
func (wr *Writer) Fork(s *store.Store, o Options) *Writer {
	out := New(s, o)
	out.crds, out.limits = maps.Clone(wr.crds), wr.limits
	maps.DeleteFunc(out.crds, func(_ *store.Record, crd parsedCRD) bool {
		return crd.definition != nil && crd.definition.CallsWebhook
	})
	s.Lock()
	defer s.Unlock()
	out.serveCRDs()
	return out
}

// now returns the present time as objects contain it: in UTC and whole seconds.
func now() string { return time.Now().UTC().Format(time.RFC3339) }

// Write describes how to write an object.
type Write struct {
	Served      string // the version of the API in which the object was sent
	Subresource string
	Manager     string // field manager, for managedFields
	DryRun      bool
	Direct      bool // by a method in Go: status is written with the rest, and pods do not wait for a kubelet
	upsert      bool // an update needs no version
}
