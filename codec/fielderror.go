package codec

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
	// anyKey replaces the key of a map in a path, because keys are content of the object.
	anyKey = "*"
)

// fieldError names the field, element or map member that could not be decoded. It has no content of the object: a path
// has only names of the type's fields, indices and anyKey.
type fieldError struct {
	path string
	err  error
}

func (e *fieldError) Error() string { return e.path + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// within adds an outer name to the path of an error. A path that is too long loses its inner end.
func within(name string, err error) error {
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

// mismatch returns the error of a value that does not fit the type. It omits the error of the type's own method,
// because that may quote the value: metav1.Time quotes it five times.
func (c *cursor) mismatch(t reflect.Type) error {
	return misfit(kindNames[c.kind()], t)
}

// kindNames has the kinds of values by their first byte. Other bytes begin a number.
var kindNames = map[byte]string{'{': "an object", '[': "an array", '"': "a string", 't': "a boolean", 'f': "a boolean", 'n': "null"}

// aMessage is the kind of a value of protobuf.
const aMessage = "a message"

// misfit returns the error of a value of JSON, or of a message, that does not fit t.
func misfit(what string, t reflect.Type) error {
	if what == "" {
		what = "a number"
	}
	return fmt.Errorf("%s does not fit %s", what, quote.Short(t.String(), maxTypeName))
}
