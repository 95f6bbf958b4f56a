package await

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Status waits for a status condition, such as Ready, to have a status, which is usually "True" or "False" and may be
// anything; "" is "True". Case does not matter in either. A condition that its controller made of an older generation of
// the object, as observedGeneration beside it or in the status says, is not taken for the present one.
func Status(conditionType, status string) Condition[*unstructured.Unstructured] {
	status = cmp.Or(status, "True")
	return Condition[*unstructured.Unstructured]{
		Name: fmt.Sprintf("condition %s=%s", conditionType, status),
		Met: func(object *unstructured.Unstructured, exists bool) (bool, error) {
			if !exists {
				return false, nil
			}
			c, ok := statusCondition(object, conditionType)
			return ok && !c.outdated && strings.EqualFold(c.status, status), nil
		},
		State: func(object *unstructured.Unstructured) string {
			c, ok := statusCondition(object, conditionType)
			if !ok {
				return "no condition " + conditionType
			}
			return c.String()
		},
	}
}

// condition is what an object says of itself.
type condition struct {
	name, status, reason string
	outdated             bool // it was made of an older generation
}

func (c condition) String() string {
	s := c.name + "=" + c.status
	if c.reason != "" {
		s += ", " + c.reason
	}
	if c.outdated {
		s += ", of an older generation"
	}
	return s
}

func statusCondition(object *unstructured.Unstructured, conditionType string) (condition, bool) {
	all, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	list, _ := all.([]any)
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, _ := m["type"].(string)
		if !strings.EqualFold(name, conditionType) {
			continue
		}
		status, _ := m["status"].(string)
		reason, _ := m["reason"].(string)
		return condition{name: name, status: status, reason: reason, outdated: outdated(object, m)}, true
	}
	return condition{}, false
}

// outdated compares the generation that a condition was made of, else that of the whole status, with the object's.
func outdated(object *unstructured.Unstructured, condition map[string]any) bool {
	observed, ok := condition["observedGeneration"].(int64)
	if !ok {
		observed, ok, _ = unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	}
	return ok && observed < object.GetGeneration()
}

// Field waits for a field to have a value, compared as text: "Running", "3", "true". Where the path leads to several
// values, as a wildcard does, all of them must have it, and there must be one. A map or a list on the way is no value,
// and ends the wait with an error.
func Field(path Path, value string) Condition[*unstructured.Unstructured] {
	return Condition[*unstructured.Unstructured]{
		Name: path.String() + "=" + value,
		Met: func(object *unstructured.Unstructured, exists bool) (bool, error) {
			if !exists {
				return false, nil
			}
			found := path.Values(object.Object)
			for _, v := range found {
				have, err := scalar(v)
				if err != nil {
					return false, fmt.Errorf("await: %s leads to %w", path, err)
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

// HasField waits for a field to have any value, be it empty, but not null.
func HasField(path Path) Condition[*unstructured.Unstructured] {
	return Condition[*unstructured.Unstructured]{
		Name: path.String(),
		Met: func(object *unstructured.Unstructured, exists bool) (bool, error) {
			return exists && len(path.Values(object.Object)) > 0, nil
		},
		State: path.state,
	}
}

// scalar is a value as text.
func scalar(v any) (string, error) {
	switch v := v.(type) {
	case map[string]any:
		return "", fmt.Errorf("an object, and only a value can be compared")
	case []any:
		return "", fmt.Errorf("a list, and only a value can be compared")
	default:
		return fmt.Sprint(v), nil
	}
}

// state shows what a path leads to.
func (p Path) state(object *unstructured.Unstructured) string {
	found := p.Values(object.Object)
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
	return p.String() + " is " + strings.Join(texts, ", ")
}
