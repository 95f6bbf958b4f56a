package goal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/theory/jsonpath"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/internal/quote"
	"github.com/leatproject/leat/reconcile/await"
)

// jsonPath selects fields of an object. It is a JSONPath of RFC 9535, also in kubectl's notation, where braces enclose
// the path and the $ may be missing:
//
//	{.status.phase}
//	.spec.containers[*].image
//	.status.conditions[?(@.type=="Ready")].status
//	.metadata.labels['app.kubernetes.io/name']
//
// The RFC has no backslash in front of the dots of a name; such a name needs brackets.
type jsonPath struct {
	text  string
	query *jsonpath.Path
}

func parsePath(text string) (jsonPath, error) {
	given, path := text, text
	if strings.HasPrefix(path, "{") {
		if !strings.HasSuffix(path, "}") {
			return jsonPath{}, fmt.Errorf("path %q: the closing brace is missing", text)
		}
		path = path[1 : len(path)-1]
	}
	text = "{" + path + "}"
	switch {
	case strings.HasPrefix(path, "$"):
	case path == "", strings.HasPrefix(path, "."), strings.HasPrefix(path, "["):
		path = "$" + path
	default:
		path = "$." + path
	}
	query, err := jsonpath.Parse(path)
	if err == nil && len(query.Query().Segments()) == 0 {
		err = errors.New("the path is empty")
	}
	if err != nil {
		return jsonPath{}, fmt.Errorf("path %q, in RFC 9535 %q: %w (a name with dots or dashes is in brackets: ['a.b'])", given, path, err)
	}
	return jsonPath{text: text, query: query}, nil
}

// String returns the path in braces.
func (p jsonPath) String() string { return p.text }

// values returns the values that the path selects in a JSON object, in the form of package unstructured. There may be
// several if the path has a wildcard. Null counts as no value.
func (p jsonPath) values(object map[string]any) []any {
	return slices.DeleteFunc(p.query.Select(object), func(v any) bool { return v == nil })
}

// hasValue waits until a field has a value, compared as text: "Running", "3", "true". If the path selects several
// values, as a wildcard does, there must be at least one, and all of them must be equal to the value. If the path
// selects an object or a list, the wait ends with an error.
func hasValue(path jsonPath, value string) await.Condition[*unstructured.Unstructured] {
	return await.Condition[*unstructured.Unstructured]{
		Name: path.String() + "=" + value,
		Met: func(object *unstructured.Unstructured, exists bool) (bool, error) {
			if !exists {
				return false, nil
			}
			found := path.values(object.Object)
			for _, v := range found {
				have, err := scalar(v)
				if err != nil {
					return false, fmt.Errorf("%s leads to %w", path, err)
				}
				if have != value {
					return false, nil
				}
			}
			return len(found) > 0, nil
		},
		State: path.state,
	}
}

// hasField waits until a field has any value except null. The value may be empty.
func hasField(path jsonPath) await.Condition[*unstructured.Unstructured] {
	return await.Condition[*unstructured.Unstructured]{
		Name: path.String(),
		Met: func(object *unstructured.Unstructured, exists bool) (bool, error) {
			return exists && len(path.values(object.Object)) > 0, nil
		},
		State: path.state,
	}
}

// scalar formats a value as text.
func scalar(v any) (string, error) {
	switch v := v.(type) {
	case map[string]any:
		return "", fmt.Errorf("an object; only a plain value can be compared")
	case []any:
		return "", fmt.Errorf("a list; only a plain value can be compared")
	default:
		return fmt.Sprint(v), nil
	}
}

// state shows up to ten values that a path selects.
func (p jsonPath) state(object *unstructured.Unstructured) string {
	found := p.values(object.Object)
	if len(found) == 0 {
		return "no " + p.String()
	}
	var texts []string
	for _, v := range found {
		text, err := scalar(v)
		if err != nil {
			text = err.Error()
		}
		texts = append(texts, fmt.Sprintf("%q", text))
	}
	return p.String() + " is " + quote.List(texts, ", ")
}
