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

// record is one version of one object. It is encoded once, when it is written, without its kind and apiVersion, which
// depend on the version that a client asks for, and with its metadata first, so that metadata alone can be cut out of
// it. A record never changes.
type record struct {
	path       string // "namespace/name", or "name": the order of lists
	key        api.Key
	uid        types.UID
	version    uint64
	labels     map[string]string
	fields     []fieldValue // what field selectors may ask for besides name and namespace
	finalizers bool
	deleting   bool // has a deletionTimestamp

	body    []byte // {"metadata":{…},…}
	metaEnd int    // the metadata are body[metaStart:metaEnd]
	digits  span   // of body: the resource version
	managed span   // of body: `,"managedFields":…`, or nothing
}

// span is a part of a slice of bytes.
type span struct{ start, end int }

// fieldValue is one selectable field.
type fieldValue struct{ name, value string }

const metaStart = len(`{"metadata":`)

// metadataOrder is the order in which kube-apiserver writes the metadata of its built-in types, but for managedFields,
// which come last. Those of custom resources are sorted.
var metadataOrder = []string{
	"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
}

// newRecord encodes tree as the given version of an object. The tree must have gone through validation: its metadata
// are an object, with strings where strings belong. It may be used and changed afterwards.
func newRecord(d *definition, tree object, version uint64) (*record, error) {
	meta := metadataOf(tree)
	meta["resourceVersion"] = strconv.FormatUint(version, 10)
	if version == 0 {
		delete(meta, "resourceVersion") // a dry run creates nothing that could have one
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
		case "managedFields": // never the first
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

// metadataNames returns the names of the metadata in the order in which they are written.
func metadataNames(d *definition, meta object) []string {
	sorted := slices.Sorted(maps.Keys(meta))
	if d.custom {
		return sorted
	}
	place := func(name string) int {
		if i := slices.Index(metadataOrder, name); i >= 0 {
			return i
		}
		if name == "managedFields" {
			return len(metadataOrder) + 1
		}
		return len(metadataOrder)
	}
	slices.SortStableFunc(sorted, func(a, b string) int { return place(a) - place(b) })
	return sorted
}

// encoder appends JSON. Its first error sticks.
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
	key, _ := json.Marshal(name) // a string always has an encoding
	encoded, err := json.Marshal(value)
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("testserver: encode %s: %w", name, err)
	}
	e.out = append(append(append(e.out, key...), ':'), encoded...)
}

// tree decodes the record into an object that the caller owns. Kind and apiVersion are not in it.
func (r *record) tree() object {
	tree, err := decodeObject(r.body)
	if err != nil {
		panic(fmt.Sprintf("testserver: a record that was encoded here does not decode: %v", err))
	}
	return tree
}

// metadata returns the encoded metadata in two parts.
func (r *record) metadata(withoutManaged bool) (head, tail []byte) {
	if withoutManaged {
		return r.body[metaStart:r.managed.start], r.body[r.managed.end:r.metaEnd]
	}
	return r.body[metaStart:r.metaEnd], nil
}

// at returns the record as the object of an event of another version: a deletion carries the version of the deletion.
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

// pathOf gives the order of lists: kube-apiserver's is that of its keys in etcd.
func pathOf(k api.Key) string { return api.FormatKey(k) }

// decodeObject parses one JSON object; integers become int64.
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

// metadataOf returns the metadata of tree, which it makes if there are none.
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

// intAt reads a whole number; ok is false where there is none.
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

// setOrDrop sets a member, or removes it where there is no value, so that objects carry no empty fields.
func setOrDrop(m object, name string, value any) {
	if value == nil {
		delete(m, name)
		return
	}
	m[name] = value
}
