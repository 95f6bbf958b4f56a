package testserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/leatproject/leat/api"
)

// object is the parsed JSON of an object: maps, slices, strings, bools, int64 and float64.
type object = map[string]any

// record is one version of one object. It is encoded once, when it is written, without kind and apiVersion, because
// these depend on the version that a client requests. The metadata come first, so that they can be sent alone. A record
// never changes.
type record struct {
	path       string // "namespace/name", or "name"; lists are sorted by it
	key        api.Key
	uid        types.UID
	version    uint64
	labels     map[string]string
	fields     []fieldValue // values for field selectors, except name and namespace
	finalizers bool
	deleting   bool // has a deletionTimestamp

	body    []byte // {"metadata":{…},…}
	metaEnd int    // the metadata are body[metaStart:metaEnd]
	digits  span   // the resource version in body
	managed span   // `,"managedFields":…` in body, or empty
}

// span is a part of a byte slice.
type span struct{ start, end int }

// fieldValue is one selectable field.
type fieldValue struct{ name, value string }

const metaStart = len(`{"metadata":`)

// metadataOrder is the order in which kube-apiserver writes the metadata of built-in types. managedFields come last.
// The metadata of custom resources are sorted.
var metadataOrder = []string{
	"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
}

// newRecord encodes tree as the given version of an object. The tree must be validated: its metadata are an object with
// values of the right types. The caller may change the tree afterwards.
func newRecord(d *definition, tree object, version uint64) (*record, error) {
	meta := metadataOf(tree)
	meta["resourceVersion"] = strconv.FormatUint(version, 10)
	if version == 0 {
		delete(meta, "resourceVersion") // an object that a dry run creates has no version
	}
	r := &record{
		key:        api.Key{Namespace: stringAt(meta, "namespace"), Name: stringAt(meta, "name")},
		uid:        types.UID(stringAt(meta, "uid")),
		version:    version,
		labels:     labelsOf(meta),
		finalizers: len(sliceAt(meta, "finalizers")) > 0,
		deleting:   stringAt(meta, "deletionTimestamp") != "",
	}
	r.path = pathOf(r.key)
	if d.fields != nil {
		r.fields = d.fields(tree)
	}
	if err := r.encode(d, tree, meta); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *record) encode(d *definition, tree, meta object) error {
	e := encoder{out: make([]byte, 0, 512)}
	e.raw(`{"metadata":{`)
	for _, name := range metadataNames(d, meta) {
		before := len(e.out)
		e.member(name, meta[name])
		switch name {
		case "resourceVersion":
			end := len(e.out) - 1
			r.digits = span{end - len(stringAt(meta, name)), end}
		case "managedFields": // never the first field
			r.managed = span{before, len(e.out)}
		}
	}
	e.raw("}")
	r.metaEnd = len(e.out)
	if r.managed.end == 0 {
		r.managed = span{r.metaEnd, r.metaEnd}
	}
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if name != "metadata" && name != "kind" && name != "apiVersion" {
			e.raw(",")
			e.first = true
			e.member(name, tree[name])
		}
	}
	e.raw("}")
	r.body = slices.Clip(e.out)
	return e.err
}

// metadataNames returns the names of the metadata in the order of encoding.
func metadataNames(d *definition, meta object) []string {
	sorted := slices.Sorted(maps.Keys(meta))
	if d.custom {
		return sorted
	}
	position := func(name string) int {
		if i := slices.Index(metadataOrder, name); i >= 0 {
			return i
		}
		if name == "managedFields" {
			return len(metadataOrder) + 1
		}
		return len(metadataOrder)
	}
	slices.SortStableFunc(sorted, func(a, b string) int { return position(a) - position(b) })
	return sorted
}

// encoder appends JSON. It keeps the first error.
type encoder struct {
	out   []byte
	first bool // no comma before the next member
	err   error
}

func (e *encoder) raw(s string) {
	e.out = append(e.out, s...)
	e.first = true
}

func (e *encoder) member(name string, value any) {
	if !e.first {
		e.out = append(e.out, ',')
	}
	e.first = false
	key, _ := json.Marshal(name) // encoding a string cannot fail
	encoded, err := json.Marshal(value)
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("testserver: encode %s: %w", name, err)
	}
	e.out = append(append(append(e.out, key...), ':'), encoded...)
}

// tree decodes the record without kind and apiVersion. The caller owns the result.
func (r *record) tree() object {
	tree, err := decodeObject(r.body)
	if err != nil {
		panic(fmt.Sprintf("testserver: decode a record that this server encoded: %v", err))
	}
	return tree
}

// metadata returns the encoded metadata in two parts; if withoutManaged, without managedFields.
func (r *record) metadata(withoutManaged bool) (head, tail []byte) {
	if withoutManaged {
		return r.body[metaStart:r.managed.start], r.body[r.managed.end:r.metaEnd]
	}
	return r.body[metaStart:r.metaEnd], nil
}

// at returns a copy of the record with another version. A DELETED event carries the version of the delete.
func (r *record) at(version uint64) *record {
	digits := strconv.FormatUint(version, 10)
	moved := *r
	moved.version = version
	moved.body = slices.Concat(r.body[:r.digits.start], []byte(digits), r.body[r.digits.end:])
	shift := len(digits) - (r.digits.end - r.digits.start)
	moved.digits.end += shift
	moved.metaEnd += shift
	if r.managed.start >= r.digits.end {
		moved.managed.start += shift
		moved.managed.end += shift
	}
	return &moved
}

// pathOf returns the sort key of an object in lists. The order is that of the keys of kube-apiserver in etcd.
func pathOf(k api.Key) string { return api.FormatKey(k) }

// decodeObject parses one JSON object. Integers become int64.
func decodeObject(data []byte) (object, error) {
	var tree object
	if err := utiljson.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	if tree == nil {
		return nil, fmt.Errorf("expected an object, got %.40q", data)
	}
	return tree, nil
}

// metadataOf returns the metadata of tree, and adds empty ones if they are missing.
func metadataOf(tree object) object {
	meta, ok := tree["metadata"].(object)
	if !ok {
		meta = object{}
		tree["metadata"] = meta
	}
	return meta
}

func stringAt(m object, name string) string {
	s, _ := m[name].(string)
	return s
}

func sliceAt(m object, name string) []any {
	s, _ := m[name].([]any)
	return s
}

func mapAt(m object, name string) object {
	s, _ := m[name].(object)
	return s
}

// intAt returns a whole number; ok is false if there is no such number.
func intAt(m object, name string) (n int64, ok bool) {
	switch v := m[name].(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == float64(int64(v))
	default:
		return 0, false
	}
}

func labelsOf(meta object) map[string]string {
	raw := mapAt(meta, "labels")
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

// setOrDrop sets a member, or deletes it if value is nil, so that objects contain no empty fields.
func setOrDrop(m object, name string, value any) {
	if value == nil {
		delete(m, name)
		return
	}
	m[name] = value
}
