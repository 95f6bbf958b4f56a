package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value *any   `json:"value,omitempty"` // nil for a removal; it may point to nil, which is the JSON null
}

// patchOf returns the JSON patch that makes the same change to raw as the one between before and after, or nil if there
// is no change. before and after are the JSON of a Go value that may declare fewer fields than raw has. So raw is not
// compared with after: the patch would remove every field that the type does not declare.
func patchOf(raw, before, after []byte) ([]byte, error) {
	if bytes.Equal(before, after) {
		return nil, nil
	}
	var trees [3]any
	for i, text := range [][]byte{raw, before, after} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // a float64 would change large integers
		if err := d.Decode(&trees[i]); err != nil {
			return nil, fmt.Errorf("webhook: compare the object with its defaults: %w", err)
		}
	}
	operations := diff(nil, "", trees[0], merge(trees[0], trees[1], trees[2]))
	if len(operations) == 0 {
		return nil, nil
	}
	return json.Marshal(operations)
}

// merge returns raw with the changes between before and after. It modifies none of them.
func merge(raw, before, after any) any {
	if reflect.DeepEqual(before, after) {
		return raw
	}
	switch a := after.(type) {
	case map[string]any:
		r, isObject := raw.(map[string]any)
		b, was := before.(map[string]any)
		if isObject || raw == nil && was { // raw omits an object that the type always has
			return mergeObjects(r, b, a)
		}
	case []any:
		r, isList := raw.([]any)
		b, _ := before.([]any)
		if isList && len(r) == len(b) {
			return mergeLists(r, b, a)
		}
	}
	return after
}

// mergeObjects merges member by member. A member that before lacks may be in raw, for example with an empty value.
func mergeObjects(raw, before, after map[string]any) map[string]any {
	merged := map[string]any{}
	maps.Copy(merged, raw)
	for name := range before {
		if _, stays := after[name]; !stays {
			delete(merged, name)
		}
	}
	for name, a := range after {
		b, had := before[name]
		if r, has := raw[name]; has {
			merged[name] = merge(r, b, a)
		} else if !had || !reflect.DeepEqual(b, a) {
			merged[name] = merge(nil, b, a)
		}
	}
	return merged
}

// mergeLists merges each element with the former element that it was made from. raw and before have the same length.
func mergeLists(raw, before, after []any) []any {
	merged := make([]any, len(after))
	for i, j := range origins(before, after) {
		if merged[i] = after[i]; j >= 0 {
			merged[i] = merge(raw[j], before[j], after[i])
		}
	}
	return merged
}

// origins returns for each element of after the index of its former version in before, or -1. An element is the same if
// it is equal, or else if it has the same name. The others without a name are the same if they have the same position
// among those that are left, and if their number has not changed.
func origins(before, after []any) []int {
	from := slices.Repeat([]int{-1}, len(after))
	used := make([]bool, len(before))
	for _, identity := range []func(any) string{textOf, nameOf} {
		known := map[string][]int{}
		for j, b := range before {
			if id := identity(b); id != "" && !used[j] {
				known[id] = append(known[id], j)
			}
		}
		for i, a := range after {
			if same := known[identity(a)]; from[i] < 0 && len(same) > 0 {
				from[i], used[same[0]] = same[0], true
				known[identity(a)] = same[1:]
			}
		}
	}
	unnamedBefore := slices.DeleteFunc(indexes(len(before)), func(j int) bool { return used[j] || nameOf(before[j]) != "" })
	unnamedAfter := slices.DeleteFunc(indexes(len(after)), func(i int) bool { return from[i] >= 0 || nameOf(after[i]) != "" })
	if len(unnamedBefore) == len(unnamedAfter) {
		for n, i := range unnamedAfter {
			from[i] = unnamedBefore[n]
		}
	}
	return from
}

func indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// textOf returns the JSON of an element, with sorted members.
func textOf(element any) string {
	text, _ := json.Marshal(element) // it came from JSON
	return string(text)
}

// nameOf returns the member "name" of an element, by which most lists of Kubernetes are merged.
func nameOf(element any) string {
	members, _ := element.(map[string]any)
	name, _ := members["name"].(string)
	return name
}

// diff appends the operations that change from into to.
func diff(operations []operation, path string, from, to any) []operation {
	if reflect.DeepEqual(from, to) {
		return operations
	}
	switch t := to.(type) {
	case map[string]any:
		if f, ok := from.(map[string]any); ok {
			return diffObjects(operations, path, f, t)
		}
	case []any:
		if f, ok := from.([]any); ok {
			return diffLists(operations, path, f, t)
		}
	}
	return append(operations, operation{"replace", path, &to})
}

func diffObjects(operations []operation, path string, from, to map[string]any) []operation {
	all := maps.Clone(from)
	maps.Copy(all, to)
	for _, name := range slices.Sorted(maps.Keys(all)) { // in a fixed order
		f, was := from[name]
		t, is := to[name]
		at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		switch {
		case !is:
			operations = append(operations, operation{"remove", at, nil})
		case !was:
			operations = append(operations, operation{"add", at, &t})
		default:
			operations = diff(operations, at, f, t)
		}
	}
	return operations
}

// diffLists changes the elements between the equal beginning and the equal end.
func diffLists(operations []operation, path string, from, to []any) []operation {
	start := 0
	for start < min(len(from), len(to)) && reflect.DeepEqual(from[start], to[start]) {
		start++
	}
	fromEnd, toEnd := len(from), len(to)
	for fromEnd > start && toEnd > start && reflect.DeepEqual(from[fromEnd-1], to[toEnd-1]) {
		fromEnd--
		toEnd--
	}
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	both := min(fromEnd, toEnd)
	for i := start; i < both; i++ {
		operations = diff(operations, at(i), from[i], to[i])
	}
	for i := fromEnd - 1; i >= both; i-- { // the last one first, because a removal moves those behind it
		operations = append(operations, operation{"remove", at(i), nil})
	}
	for i := both; i < toEnd; i++ {
		operations = append(operations, operation{"add", at(i), &to[i]})
	}
	return operations
}
