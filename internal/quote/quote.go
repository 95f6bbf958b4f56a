package quote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ellipsis marks a text that was cut.
const ellipsis = "…"

// maxField limits the path of a field in an error, in bytes.
const maxField = 256

// Short returns text, or its beginning and an ellipsis if it has more than most bytes. most is at least 4.
func Short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}

// JSON returns an error without content for an error of encoding/json. It names the place, the field and the types. The
// errors of encoding/json quote whole numbers, and those of a type's own methods may quote anything.
func JSON(err error) error {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax): // its text has one character of the document at most
		return fmt.Errorf("it is not JSON at byte %d: %w", syntax.Offset, syntax)
	case !errors.As(err, &mismatch):
		return errors.New("a value in it does not fit its field")
	}
	kind, _, _ := strings.Cut(mismatch.Value, " ") // the number follows
	if mismatch.Field == "" {
		return fmt.Errorf("it is of the JSON type %s, which does not fit", kind)
	}
	return fmt.Errorf("%s is of the JSON type %s, which does not fit", Short(mismatch.Field, maxField), kind)
}

// IsObject reports whether a body looks like an object of Kubernetes, a list of objects, or the beginning of one.
// Errors do not quote these. The JSON of a proxy, such as {"message": "no route"}, is not an object.
func IsObject(body []byte) bool {
	body = bytes.TrimSpace(body)
	inJSON := len(body) > 0 && (body[0] == '{' || body[0] == '[')
	for _, member := range []string{"apiVersion", "kind", "metadata", "items"} {
		if inJSON && bytes.Contains(body, []byte(`"`+member+`"`)) || bytes.HasPrefix(body, []byte(member+":")) {
			return true
		}
	}
	return bytes.HasPrefix(body, []byte("k8s\x00"))
}

const (
	maxListed = 10  // items that a list names
	maxItem   = 128 // bytes of one item
)

// List joins at most ten items, such as names, and counts the others: "a, b and 5 more". It shortens long items.
func List(items []string, separator string) string {
	listed := make([]string, min(len(items), maxListed))
	for i := range listed {
		listed[i] = Short(items[i], maxItem)
	}
	text := strings.Join(listed, separator)
	if more := len(items) - len(listed); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
