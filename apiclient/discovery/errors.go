package discovery

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/quote"
)

var (
	// ErrUnknownResource matches every *UnknownResourceError.
	ErrUnknownResource = errors.New("discovery: unknown resource")
	// ErrAmbiguous matches every *AmbiguousError.
	ErrAmbiguous = errors.New("discovery: ambiguous")
	// ErrIncomplete matches every *IncompleteError.
	ErrIncomplete = errors.New("discovery: incomplete")
	// ErrMalformed is wrapped if the server sent an invalid document: not JSON, incomplete, of another kind, or empty.
	ErrMalformed = errors.New("malformed discovery document")
	// ErrStale is wrapped if the server lists a group but cannot read it, because the aggregated API server behind the
	// group does not answer (the freshness "Stale" of KEP-3352).
	ErrStale = errors.New("the server behind this API does not answer")
)

// UnknownResourceError is a name, kind or category that is in no document of the server. If some documents could not be
// read, the resource may be in one of them; the error then wraps their errors. It corresponds to NoKindMatchError and
// NoResourceMatchError of apimachinery.
type UnknownResourceError struct {
	What       string // "resource", "kind" or "category"
	Name       string // the name of the look-up
	Suggestion string // a resource with a similar name; may be empty
	Failed     []*DocumentError
}

// Error names the resource and the suggestion, and counts the documents that could not be read.
func (e *UnknownResourceError) Error() string {
	s := fmt.Sprintf("unknown %s %q", e.What, e.Name)
	if e.Suggestion != "" {
		s += fmt.Sprintf(", did you mean %q?", e.Suggestion)
	}
	if len(e.Failed) > 0 {
		s += fmt.Sprintf(" (documents that could not be read: %d; the first: %v)", len(e.Failed), e.Failed[0])
	}
	return s
}

// Is matches ErrUnknownResource.
func (e *UnknownResourceError) Is(target error) bool { return target == ErrUnknownResource }

// Unwrap returns the errors of the documents that could not be read.
func (e *UnknownResourceError) Unwrap() []error { return asErrors(e.Failed) }

// AmbiguousError is a name or kind of several resources in one group and version. Between groups and versions, the
// order decides. It corresponds to AmbiguousResourceError and AmbiguousKindError of apimachinery.
type AmbiguousError struct {
	Name      string // the name of the look-up
	Resources []api.Resource
}

// Error names up to ten resources with this name.
func (e *AmbiguousError) Error() string {
	var all []string
	for _, r := range e.Resources {
		all = append(all, r.String())
	}
	return fmt.Sprintf("%q is ambiguous: it may be %s", e.Name, quote.List(all, " or "))
}

// Is matches ErrAmbiguous.
func (e *AmbiguousError) Is(target error) bool { return target == ErrAmbiguous }

// DocumentError is a discovery document that could not be read. It wraps the error of the client, ErrMalformed or
// ErrStale.
type DocumentError struct {
	Path         string              // "/apis/metrics.k8s.io/v1beta1"
	GroupVersion schema.GroupVersion // the subject of the document; empty for /api and /apis
	Err          error               // names the path
}

// Error names the document and the cause.
func (e *DocumentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DocumentError) Unwrap() error { return e.Err }

// IncompleteError comes with incomplete results, because some documents could not be read. It corresponds to
// ErrGroupDiscoveryFailed of client-go.
type IncompleteError struct{ Failed []*DocumentError }

// Error counts the documents and quotes the first error.
func (e *IncompleteError) Error() string {
	return fmt.Sprintf("discovery: documents that could not be read: %d; the first: %v", len(e.Failed), e.Failed[0])
}

// Is matches ErrIncomplete.
func (e *IncompleteError) Is(target error) bool { return target == ErrIncomplete }

// Unwrap returns the errors of the documents.
func (e *IncompleteError) Unwrap() []error { return asErrors(e.Failed) }

func asErrors(failed []*DocumentError) []error {
	out := make([]error, len(failed))
	for i, e := range failed {
		out[i] = e
	}
	return out
}
