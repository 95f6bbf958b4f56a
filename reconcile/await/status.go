package await

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Status waits until a status condition, such as Ready, has the given status. The status is usually "True" or "False",
// but may be any text; "" means "True". Upper and lower case are equal in both. Status ignores a condition of an older
// generation of the object, as observedGeneration in the condition or in the status shows.
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

// condition is one status condition of an object.
type condition struct {
	name, status, reason string
	outdated             bool // of an older generation
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

// outdated compares the observedGeneration of a condition, or else that of the whole status, with the object's
// generation.
func outdated(object *unstructured.Unstructured, condition map[string]any) bool {
	observed, ok := condition["observedGeneration"].(int64)
	if !ok {
		observed, ok, _ = unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	}
	return ok && observed < object.GetGeneration()
}
