package object

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"
)

// Tree is the parsed JSON of an object: maps, slices, strings, bools, int64 and float64.
type Tree = map[string]any

// Decode parses one JSON object. Integers become int64.
func Decode(data []byte) (Tree, error) {
	var tree Tree
	if err := utiljson.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	if tree == nil {
		return nil, fmt.Errorf("expected an object, got %.40q", data)
	}
	return tree, nil
}

// DecodeStrict does the same, and returns a message for each field that occurs twice in one object. The last value of
// such a field counts.
func DecodeStrict(data []byte) (tree Tree, duplicates []string, err error) {
	found, err := kjson.UnmarshalStrict(data, &tree, kjson.DisallowDuplicateFields)
	if err != nil {
		return nil, nil, err
	}
	if tree == nil {
		return nil, nil, fmt.Errorf("expected an object, got %.40q", data)
	}
	return tree, texts(found), nil
}

// Duplicates returns a message for each field that occurs twice in one object of a JSON document, and nothing if the
// document cannot be parsed.
func Duplicates(data []byte) []string {
	var document any
	found, _ := kjson.UnmarshalStrict(data, &document, kjson.DisallowDuplicateFields) // the decoder reports the error
	return texts(found)
}

func texts(errs []error) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// EncodeLike encodes an object. Where it equals model, the encoding of another object, the members have the order of
// model; elsewhere the order is alphabetical. A nil model is an empty object.
func EncodeLike(model []byte, value any) []byte {
	var members map[string]json.RawMessage
	var have any
	if utiljson.Unmarshal(model, &have) == nil && reflect.DeepEqual(have, value) {
		return bytes.TrimSpace(model)
	}
	tree, ok := value.(Tree)
	if !ok {
		encoded, _ := json.Marshal(value) // a tree consists of JSON values
		return encoded
	}
	_ = json.Unmarshal(model, &members) // if it is not an object, it has no members
	out := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(tree)) {
		if i > 0 {
			out = append(out, ',')
		}
		quoted, _ := json.Marshal(name) // as above
		out = append(append(out, quoted...), ':')
		out = append(out, EncodeLike(members[name], tree[name])...)
	}
	return append(out, '}')
}

// From converts a value that encodes to a JSON object.
func From(v any) (Tree, error) {
	encoded, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("testserver: encode %T: %w", v, err)
	}
	tree, err := Decode(encoded)
	if err != nil {
		return nil, fmt.Errorf("testserver: %T does not encode to a JSON object: %w", v, err)
	}
	return tree, nil
}

// Metadata returns the metadata of tree, and adds empty ones if they are missing.
func Metadata(tree Tree) Tree {
	meta, ok := tree["metadata"].(Tree)
	if !ok {
		meta = Tree{}
		tree["metadata"] = meta
	}
	return meta
}

// Labels returns the labels in the metadata of an object, or nil if it has no labels.
func Labels(meta Tree) map[string]string { return textsAt(meta, "labels") }

// Annotations returns the annotations in the metadata of an object, or nil if it has no annotations.
func Annotations(meta Tree) map[string]string { return textsAt(meta, "annotations") }

func textsAt(m Tree, name string) map[string]string {
	raw := MapAt(m, name)
	if len(raw) == 0 {
		return nil
	}
	out := make(map[string]string, len(raw))
	for k, v := range raw {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}

// StringAt returns a string, or "" if there is no string of this name.
func StringAt(m Tree, name string) string {
	s, _ := m[name].(string)
	return s
}

// SliceAt returns a list, or nil if there is no list of this name.
func SliceAt(m Tree, name string) []any {
	s, _ := m[name].([]any)
	return s
}

// StringsAt returns the strings of a list.
func StringsAt(m Tree, name string) []string {
	var out []string
	for _, v := range SliceAt(m, name) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// MapAt returns an object, or nil if there is no object of this name.
func MapAt(m Tree, name string) Tree {
	s, _ := m[name].(Tree)
	return s
}

// Condition returns the condition of a type in a status, or nil.
func Condition(status Tree, kind string) Tree {
	for _, c := range SliceAt(status, "conditions") {
		if c, ok := c.(Tree); ok && c["type"] == kind {
			return c
		}
	}
	return nil
}

// IntAt returns a whole number; ok is false if there is no such number.
func IntAt(m Tree, name string) (n int64, ok bool) {
	switch v := m[name].(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == float64(int64(v))
	default:
		return 0, false
	}
}

// TextAt returns the text of the value at a path, or "" if there is no value.
func TextAt(tree Tree, path ...string) string {
	var value any = tree
	for _, part := range path {
		m, ok := value.(Tree)
		if !ok {
			return ""
		}
		value = m[part]
	}
	return Text(value)
}

// Text returns the text of a value, or "" for null.
func Text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// SetDefault sets a member that is missing.
func SetDefault(m Tree, name string, value any) {
	if _, ok := m[name]; !ok {
		m[name] = value
	}
}

// SetOrDrop sets a member, or deletes it if value is nil, so that objects contain no empty fields.
func SetOrDrop(m Tree, name string, value any) {
	if value == nil {
		delete(m, name)
		return
	}
	m[name] = value
}

// SetOrDropList is setOrDrop for a list, which is deleted if it is empty.
func SetOrDropList(m Tree, name string, list []any) {
	if len(list) == 0 {
		delete(m, name)
		return
	}
	m[name] = list
}
