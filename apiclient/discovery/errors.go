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
	// ErrMalformed is why a document is of no use though the server sent it: not JSON, cut short, of another kind, empty.
	ErrMalformed = errors.New("malformed discovery document")
	// ErrStale is why a group cannot be read from a server that lists it: the aggregated API server behind it does not
	// answer (the freshness "Stale" of KEP-3352).
	ErrStale = errors.New("the server behind this API does not answer")
)

// UnknownResourceError is a name, kind or category that no document of the server has. Where some documents could not be
// read the resource may be in one of those, and the error wraps what was wrong with them.
// It corresponds to NoKindMatchError and NoResourceMatchError of apimachinery.
type UnknownResourceError struct {
	What       string // "resource", "kind" or "category"
	Name       string // as it was asked for
	Suggestion string // a resource with a name much like it; "" if there is none
	Failed     []*DocumentError
}

// Error names the resource and what it may have been meant to be, and counts the documents that could not be read.
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

// Unwrap returns what was wrong with the documents that could not be read.
func (e *UnknownResourceError) Unwrap() []error { return asErrors(e.Failed) }

// AmbiguousError is a name or kind that several resources of one group and version have; between groups and versions
// there is an order that decides.
// It corresponds to AmbiguousResourceError and AmbiguousKindError of apimachinery.
type AmbiguousError struct {
	Name      string // as it was asked for
	Resources []api.Resource
}

// Error names up to ten resources that the name may stand for.
func (e *AmbiguousError) Error() string {
	var all []string
	for _, r := range e.Resources {
		all = append(all, r.String())
	}
	return fmt.Sprintf("%q is ambiguous: it may be %s", e.Name, quote.List(all, " or "))
}

// Is matches ErrAmbiguous.
func (e *AmbiguousError) Is(target error) bool { return target == ErrAmbiguous }

// DocumentError is a document of discovery that could not be read. Beneath it are the error of the client, ErrMalformed
// or ErrStale.
type DocumentError struct {
	Path         string              // "/apis/metrics.k8s.io/v1beta1"
	GroupVersion schema.GroupVersion // what it tells of; empty for /api and /apis, which tell of all
	Err          error               // says the path too
}

// Error says which document, and what was wrong with it.
func (e *DocumentError) Error() string { return e.Err.Error() }

// Unwrap returns what was wrong.
func (e *DocumentError) Unwrap() error { return e.Err }

// IncompleteError comes with results that are not all there is, as some documents could not be read.
// It corresponds to ErrGroupDiscoveryFailed of client-go.
type IncompleteError struct{ Failed []*DocumentError }

// Error counts the documents, and says what was wrong with the first.
func (e *IncompleteError) Error() string {
	return fmt.Sprintf("discovery: documents that could not be read: %d; the first: %v", len(e.Failed), e.Failed[0])
}

// Is matches ErrIncomplete.
func (e *IncompleteError) Is(target error) bool { return target == ErrIncomplete }

// Unwrap returns what was wrong with the documents.
func (e *IncompleteError) Unwrap() []error { return asErrors(e.Failed) }

func asErrors(failed []*DocumentError) []error {
	out := make([]error, len(failed))
	for i, e := range failed {
		out[i] = e
	}
	return out
}
