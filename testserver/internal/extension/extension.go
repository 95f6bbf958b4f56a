package extension

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Extension is what a server has beyond an untyped one. Every field may be nil; the server then does without.
type Extension struct {
	// Connect gets the objects of the server before the first of them is written.
	Connect func(*store.Store)
	// Resources replace the built-in resources of the untyped server.
	Resources []*registry.Definition
	// Definition returns the resource of a CustomResourceDefinition that is established. It replaces registry.FromCRD.
	Definition func(crd object.Tree) (*registry.Definition, error)
	// Settle returns a CustomResourceDefinition as the controllers of kube-apiserver write it next, or nil if they have
	// nothing to do. A result without finalizers ends a deletion. others are the definitions of the same group, of
	// which only the status is set; populated says whether objects of the resource exist. The server calls Settle under
	// its lock until the result is nil. A server without Settle accepts and establishes every definition.
	Settle func(crd object.Tree, others []object.Tree, populated bool) object.Tree
	// Keep reports whether an object of a new server stays if a loaded state lacks it.
	Keep func(resource schema.GroupResource, key api.Key) bool
	// Authenticate returns who sent a request. An error is the answer. It replaces the tokens of testserver.Options.
	Authenticate func(*http.Request) (registry.User, error)
	// Authorize returns an error, which is the answer, if the user may not do this. Attributes have no objects.
	Authorize func(context.Context, *Attributes) error
	// Admission sees every write before it is stored.
	Admission Admission
	// Groups returns the groups that other servers serve.
	Groups func() []registry.RemoteGroup
	// Proxy answers requests in versions of these groups. It returns false for others.
	Proxy func(http.ResponseWriter, *http.Request) bool
	// Documents answers requests that are not about resources (OpenAPI, version, health). It returns false for others.
	Documents func(http.ResponseWriter, *http.Request, registry.User) bool
}

// Admission decides about writes, without the lock of the server: it may send requests, also to the same server.
// kube-apiserver calls Mutate before it prepares an object for storage, and Validate after it.
type Admission interface {
	// Mutate may change a.Object. Only then may it set a.Changed.
	Mutate(ctx context.Context, a *Attributes) error
	// Validate must not change anything.
	Validate(ctx context.Context, a *Attributes) error
}

// Attributes describe a request to a resource.
type Attributes struct {
	Resource    *registry.Definition // nil if the server has no such resource
	Group       string
	Served      string // version in the path
	Plural      string // empty for a request that is not about a resource
	Subresource string
	Verb        string // as in testserver.Request
	Operation   string // CREATE, UPDATE, DELETE or CONNECT; empty for reads
	Key         api.Key
	User        registry.User
	Path        string // of the request; empty in admission
	DryRun      bool

	// Object is the new object in the served version with kind and apiVersion; nil for a deletion. Old is the stored
	// object in the served version; nil for a creation.
	Object, Old object.Tree
	// Values may have the Go value of Object: Values.Sent in Mutate, Values.Stored in Validate. If Mutate changes
	// Object, it sets Values.Sent to a value that has the defaults, or to nil. With such a value, Object may lack all
	// but its kind, version and metadata.
	Values *registry.Values
	// Options are the CreateOptions, UpdateOptions or DeleteOptions of the request.
	Options  object.Tree
	Changed  bool
	Warnings []string // for the headers of the answer
}
