package goal

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/reconcile/await"
)

// Goal is the value of --for.
type Goal struct {
	Name      string
	Creation  bool
	Deletion  bool
	Condition *await.Condition[*unstructured.Unstructured] // nil if metadata are enough
}

// Parse parses create, delete, condition=TYPE[=STATUS] or jsonpath=PATH[=VALUE].
func Parse(text string) (Goal, error) {
	kind, rest, _ := strings.Cut(text, "=")
	switch strings.ToLower(kind) {
	case "create":
		if rest == "" {
			return Goal{Name: "creation", Creation: true}, nil
		}
	case "delete":
		if rest == "" {
			return Goal{Name: "deletion", Deletion: true}, nil
		}
	case "condition":
		if name, status, valued := strings.Cut(rest, "="); name != "" && (status != "" || !valued) {
			c := await.Status(name, status)
			return Goal{Name: c.Name, Condition: &c}, nil
		}
	case "jsonpath":
		c, err := fieldGoal(rest)
		if err != nil {
			return Goal{}, fmt.Errorf("--for %q: %w", text, err)
		}
		return Goal{Name: c.Name, Condition: &c}, nil
	case "":
		return Goal{}, errors.New("--for is needed: create, delete, condition=TYPE[=STATUS] or jsonpath=PATH[=VALUE]")
	}
	return Goal{}, fmt.Errorf("--for %q: it is create, delete, condition=TYPE[=STATUS] or jsonpath=PATH[=VALUE]", text)
}

// fieldGoal parses PATH or PATH=VALUE. The filters of a path have equals signs too.
func fieldGoal(text string) (await.Condition[*unstructured.Unstructured], error) {
	end := pathEnd(text)
	path, err := parsePath(text[:end])
	switch {
	case err != nil:
		return await.Condition[*unstructured.Unstructured]{}, err
	case end == len(text):
		return hasField(path), nil
	default:
		return hasValue(path, text[end+1:]), nil
	}
}

// pathEnd returns the end of the path: the first equals sign that is neither in quotes nor in brackets.
func pathEnd(text string) int {
	quote, depth := byte(0), 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case strings.IndexByte("{[(", c) >= 0:
			depth++
		case strings.IndexByte("}])", c) >= 0:
			depth--
		case c == '=' && depth == 0:
			return i
		}
	}
	return len(text)
}
