package registry

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/testserver/internal/object"
)

// Schema has the rules for the contents of a resource: types, defaults, validation, and what each kind of write may
// change.
//
// The methods may run on any goroutine and must not use the server. They own the trees that they get, except where a
// comment says otherwise, and the caller owns what they return. Errors are those of the answer (apierrors.StatusError).
type Schema interface {
	// Decode parses the body of a request in a media type (JSON, YAML or protobuf) and sets defaults. The tree has the
	// version of the request, with kind and apiVersion. problems are unknown and repeated fields, which the parameter
	// fieldValidation turns into warnings or into an error.
	Decode(to Target, mediaType string, body []byte) (tree object.Tree, problems []string, err error)
	// Create prepares a new object for storage: it removes what a creator may not set, and validates the rest, also the
	// metadata. The tree comes in the version of the request, with name, namespace, UID and creation time. The result
	// has the storage version. It may add warnings. With a subresource of another kind, such as a Scale or a Binding,
	// it only validates the body.
	Create(op Operation, tree object.Tree) (stored object.Tree, warnings []string, err error)
	// Update does the same for a write to an existing object or to one of its subresources. before is the stored
	// object; Update must not change it. The generation rises here. tree is the whole object, also in a write to a
	// subresource. Warnings may come with an error too.
	Update(op Operation, before, tree object.Tree) (stored object.Tree, warnings []string, err error)
	// Convert returns a stored object in a served version, with kind and apiVersion. It must not change stored.
	Convert(served string, stored object.Tree) (object.Tree, error)
	// Encode returns an object in a media type other than JSON. The tree comes from Convert.
	Encode(mediaType string, tree object.Tree) ([]byte, error)
	// MediaTypes are the types that Decode and Encode know, in the order in which kube-apiserver names them.
	MediaTypes() []string
}

// Claimer is a Schema whose objects hold what no other object may hold, such as the addresses of Services. Create and
// Update choose without the lock. The store calls Claim under its lock when it writes.
type Claimer interface {
	// Claim takes what after holds and releases what only before holds. Either is nil if there is no such object. It
	// returns false, and takes nothing, if another object has become the holder; the write then begins again.
	Claim(before, after object.Tree) bool
	// Release releases everything. The store then claims what the objects of a restored state hold.
	Release()
	// Fresh returns the same rules for another store, in which no object holds anything.
	Fresh() Schema
}

// Target says what the body of a request is: an object in a version of its API.
type Target struct {
	Served      string // version in the path of the request
	Subresource string
	// Patched says that the body is the result of a patch. If it cannot be decoded, the error is an UndecodableError.
	Patched bool
	// Applied says that the body is the result of server-side apply. A null that the schema of a custom resource does
	// not allow stays in it, so validation refuses it. A decoder removes such a null otherwise.
	Applied bool
	// Values may be nil. Then every step converts its tree.
	Values *Values
}

// Values are the Go values of the object that one write handles. A Schema and admission pass them on, because a
// conversion of a tree costs more than most of the checks. A value has one user: a step that takes a value sets its
// field to nil.
type Values struct {
	// Sent is the tree that Decode returned, in the version of the request, or as mutating admission left it. The
	// metadata may have changed since then: those of the tree are the right ones.
	Sent any
	// Stored is the tree that Create or Update returned, in the internal version of Kubernetes, without the contents of
	// managedFields. It must not be changed.
	Stored any
}

// UndecodableError says why the result of a patch is not an object of its kind.
type UndecodableError struct {
	Err error
	// Conversion is the reason in the words of a conversion without JSON, or nil. kube-apiserver converts the result of
	// a strategic merge patch in this way.
	Conversion error
}

// Error returns the reason.
func (e *UndecodableError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *UndecodableError) Unwrap() error { return e.Err }

// Operation describes a write to a Schema.
type Operation struct {
	Target
	DryRun bool
	User   User
	Direct bool // by a method in Go: status may be written with the rest
}

// User is who sent a request.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Managers records in metadata.managedFields who set which field, and applies configurations (server-side apply). The
// trees have the version of the request with kind and apiVersion. live must not be changed.
type Managers interface {
	// Updated returns after with the managedFields of a write that is not an apply. live is nil for a creation. The
	// caller must not change the members fieldsV1, which other objects may share.
	Updated(m Manager, live, after object.Tree) (object.Tree, error)
	// Applied merges a configuration into live, which is empty except for its kind and name if there is no such object.
	// It fails with a conflict that names every other owner, unless force is set.
	Applied(m Manager, live, configuration object.Tree, force bool) (object.Tree, error)
}

// Scaling has the managers of the Scales of a resource. They own the replicas of its objects.
type Scaling interface {
	Managers
	// FromObject returns metadata.managedFields of the Scale of an object.
	FromObject(served string, tree object.Tree) ([]any, error)
	// ToObject returns metadata.managedFields of an object after a write to its Scale.
	ToObject(served string, tree, scale object.Tree) ([]any, error)
	// Merge is the MergePatch of Scales.
	Merge(served string, original, patch object.Tree) (object.Tree, error)
}

// Manager is the writer of an object in managedFields.
type Manager struct {
	Name        string
	Served      string // version of the request
	Subresource string
}

// Columns makes the rows of a Table, as kubectl get prints it.
type Columns interface {
	// Definitions are the columns in a served version.
	Definitions(served string) []metav1.TableColumnDefinition
	// Row returns the rows of one object (one, as a rule) with cells and conditions; the caller adds the object. The
	// tree comes from Schema.Convert and must not be changed.
	Rows(served string, tree object.Tree) ([]metav1.TableRow, error)
}

// Sparse is implemented by Columns whose empty tables have null instead of a list of rows.
type Sparse interface {
	// Sparse does nothing.
	Sparse()
}

// Sorted is implemented by Columns whose tables have another order than lists.
type Sorted interface {
	// Compare orders two objects in storage.
	Compare(a, b object.Tree) int
}

// MergePatch applies a strategic merge patch in the version of the request. Neither tree must be changed.
type MergePatch func(served string, original, patch object.Tree) (object.Tree, error)
