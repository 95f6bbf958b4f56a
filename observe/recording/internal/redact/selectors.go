package redact

import (
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// hiding replaces the values of redacted fields in selectors. A selector would otherwise show a value that is redacted
// in every object.
type hiding struct {
	matched // of an object
	mac     hash.Hash
}

// Selectors replaces the values of redacted fields in the selectors of a request by the texts that stand for these
// values in objects.
func Selectors(options map[string]string, roots Roots, mac hash.Hash) {
	h := hiding{mac: mac}
	for _, root := range roots {
		h.add(root)
	}
	if v := options["fieldSelector"]; v != "" {
		options["fieldSelector"] = h.fieldSelector(v)
	}
	if v := options["labelSelector"]; v != "" {
		options["labelSelector"] = h.labelSelector(v)
	}
}

// value returns the text that stands for a value.
func (h *hiding) value(value string) string {
	quoted, _ := json.Marshal(value) // a text can always be encoded
	return string(appendMarked(nil, hashOf(h.mac, string(quoted[1:len(quoted)-1]))))
}

// fieldSelector hides the whole selector if it cannot be parsed.
func (h *hiding) fieldSelector(text string) string {
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return h.value(text)
	}
	changed := false
	selector, err = selector.Transform(func(name, value string) (string, string, error) {
		path, err := parsePath(name)
		if err == nil && !h.hides(path) {
			return name, value, nil
		}
		changed = true
		return name, h.value(value), nil
	})
	switch {
	case err != nil:
		return h.value(text)
	case !changed:
		return text
	}
	return selector.String()
}

// labelSelector hides the whole selector if it cannot be parsed.
func (h *hiding) labelSelector(text string) string {
	all, err := labels.ParseToRequirements(text)
	if err != nil {
		return h.value(text)
	}
	changed := false
	parts := make([]string, 0, len(all))
	for _, r := range all {
		values := r.ValuesUnsorted()
		if len(values) == 0 || !h.hides([]string{"metadata", "labels", r.Key()}) {
			parts = append(parts, r.String())
			continue
		}
		changed = true
		for i := range values {
			values[i] = h.value(values[i])
		}
		slices.Sort(values)
		list := strings.Join(values, ",")
		if r.Operator() == selection.In || r.Operator() == selection.NotIn {
			list = "(" + list + ")"
		}
		parts = append(parts, fmt.Sprintf("%s %s %s", r.Key(), r.Operator(), list))
	}
	if !changed {
		return text
	}
	return strings.Join(parts, ",")
}

// hides reports whether the value at a path is redacted, or has a part that is. The name in a field selector may stand
// for a field below it: source of an Event is source.component.
func (h *hiding) hides(path []string) bool {
	m := h.matched
	for _, name := range path {
		m = m.at(name)
	}
	return m.hash || m.remove || slices.ContainsFunc(m.branches, func(b branch) bool { return b.redacts() })
}
