package fielddiff

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Lines returns a line for each field that differs: "~ path: before → after", "+ path: value" or "- path: value".
// It leaves managedFields and the version out, because they change with every write.
func Lines(before, after map[string]any) (all []string) {
	d := differ{}
	d.object("", before, after)
	return d.lines
}

type differ struct{ lines []string }

func (d *differ) add(sign, path, text string) {
	if path == ".metadata.managedFields" || path == ".metadata.resourceVersion" {
		return
	}
	d.lines = append(d.lines, fmt.Sprintf("%s %s: %s", sign, strings.TrimPrefix(path, "."), text))
}

func (d *differ) object(path string, before, after map[string]any) {
	names := maps.Clone(before)
	if names == nil {
		names = map[string]any{}
	}
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, had := before[name]
		b, has := after[name]
		below := path + "." + name
		if strings.ContainsAny(name, "./") {
			below = path + "['" + name + "']"
		}
		switch {
		case below == ".metadata.managedFields":
		case !had:
			d.add("+", below, brief(b))
		case !has:
			d.add("-", below, brief(a))
		default:
			d.value(below, a, b)
		}
	}
}

func (d *differ) value(path string, a, b any) {
	if reflect.DeepEqual(a, b) {
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			d.object(path, x, y)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			d.array(path, x, y)
			return
		}
	}
	d.add("~", path, brief(a)+" → "+brief(b))
}

// array compares the items of two lists: by their names or types if they have them, otherwise by their places.
func (d *differ) array(path string, before, after []any) {
	a, b := keyed(before), keyed(after)
	if a == nil || b == nil {
		a, b = numbered(before), numbered(after)
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.SortedFunc(maps.Keys(names), byPlace) {
		x, had := a[name]
		y, has := b[name]
		below := path + "[" + name + "]"
		switch {
		case !had:
			d.add("+", below, brief(y))
		case !has:
			d.add("-", below, brief(x))
		default:
			d.value(below, x, y)
		}
	}
}

// byPlace orders numbers by their value.
func byPlace(a, b string) int {
	if len(a) != len(b) && strings.Trim(a+b, "0123456789") == "" {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// keyed returns the items by their name or type; nil if they have none, or the same one twice.
func keyed(items []any) map[string]any {
	out := map[string]any{}
	for _, item := range items {
		o, ok := item.(map[string]any)
		if !ok {
			return nil
		}
		key, ok := o["name"].(string)
		if !ok {
			key, ok = o["type"].(string)
		}
		if !ok || out[key] != nil {
			return nil
		}
		out[key] = o
	}
	return out
}

func numbered(items []any) map[string]any {
	out := map[string]any{}
	for i, item := range items {
		out[fmt.Sprint(i)] = item
	}
	return out
}

// maxBrief is the number of characters of a value in a difference.
const maxBrief = 120

// brief returns a value on one line.
func brief(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	text := []rune(string(b))
	if len(text) > maxBrief {
		return string(text[:maxBrief-1]) + "…"
	}
	return string(text)
}
