package plan

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/leatproject/leat/internal/quote"
)

const (
	// maxPath limits the path in an error, in bytes. A recursive type may nest 10,000 levels deep.
	maxPath = 256
	// maxTypeName limits the name of a type in an error, in bytes. The name of an anonymous struct has all its fields.
	maxTypeName = 128
	// AnyKey replaces the key of a map in a path, because keys are content of the object.
	AnyKey = "*"
)

// fieldError names the field, element or map member that could not be decoded. It has no content of the object: a path
// has only names of the type's fields, indices and AnyKey.
type fieldError struct {
	path string
	err  error
}

func (e *fieldError) Error() string { return e.path + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// Within adds an outer name to the path of an error. A path that is too long loses its inner end.
func Within(name string, err error) error {
	inner, ok := err.(*fieldError)
	if !ok {
		return &fieldError{name, err}
	}
	path := name + "." + inner.path
	if strings.HasPrefix(inner.path, "[") {
		path = name + inner.path
	}
	return &fieldError{quote.Short(path, maxPath), inner.err}
}

// AMessage is the kind of a value of protobuf.
const AMessage = "a message"

// Misfit returns the error of a value that does not fit t. what is the kind of the value; empty means a number. The
// error omits the error of the type's own method, because that may quote the value: metav1.Time quotes it five times.
func Misfit(what string, t reflect.Type) error {
	if what == "" {
		what = "a number"
	}
	return fmt.Errorf("%s does not fit %s", what, TypeName(t))
}

// TypeName returns the name of a type, for an error.
func TypeName(t reflect.Type) string { return quote.Short(t.String(), maxTypeName) }
