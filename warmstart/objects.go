package warmstart

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// objects encodes the objects of one type.
type objects struct {
	mediaType string
	contents  string // a hash of the fields of the type
	resource  api.Resource
}

func newObjects[T any](r api.Resource) objects {
	t := reflect.TypeFor[T]()
	mediaType := mediaJSON
	if t.Kind() == reflect.Pointer {
		if _, err := codec.Marshal(reflect.New(t.Elem()).Interface(), mediaProtobuf, r); err == nil {
			mediaType = mediaProtobuf
		}
	}
	hash := sha256.New()
	describe(hash, t, map[reflect.Type]bool{})
	return objects{mediaType: mediaType, contents: hex.EncodeToString(hash.Sum(nil)), resource: r}
}

// encode returns an object in JSON, or its message in protobuf.
func (o *objects) encode(object any) ([]byte, error) {
	if o.mediaType == mediaProtobuf {
		return object.(interface{ Marshal() ([]byte, error) }).Marshal() // without the envelope
	}
	return codec.Marshal(object, o.mediaType, o.resource)
}

// describe writes what the encoding of a type depends on: its fields, their names, types and tags, and those of the
// types in it.
func describe(w io.Writer, t reflect.Type, seen map[reflect.Type]bool) {
	fmt.Fprintf(w, "%s %s;", t.Kind(), t)
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(w, t.Elem(), seen)
	case reflect.Map:
		describe(w, t.Key(), seen)
		describe(w, t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			fmt.Fprintf(w, "%s %q ", f.Name, f.Tag)
			describe(w, f.Type, seen)
		}
	}
}

// list is the answer of a server that lists the objects of a file. The codec decodes it, so its equal strings are
// shared, and nothing is in memory twice.
type list struct {
	all     *newest
	json    bool
	items   bool // the next item is not the first
	pending []byte
	tail    string
}

// list returns the answer.
func (o *objects) list(r *replayed) io.Reader {
	out := &list{all: r.file.newest(r.index), json: o.mediaType == mediaJSON}
	apiVersion, kind := o.resource.GroupVersion().String(), o.resource.Kind+"List"
	if out.json {
		out.pending = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q},"items":[`, kind, apiVersion, r.version)
		out.tail = "]}"
		return out
	}
	// A message Unknown in an envelope. Its fields are the type (1) and the list (2), whose fields are the metadata
	// (1), with the version (2), and the items (2).
	meta := field(nil, 1, field(nil, 2, []byte(r.version)))
	size := len(meta)
	for _, p := range r.index {
		size += len(tag(nil, 2, p.length)) + p.length
	}
	out.pending = field([]byte("k8s\x00"), 1, field(field(nil, 1, []byte(apiVersion)), 2, []byte(kind)))
	out.pending = append(tag(out.pending, 2, size), meta...)
	return out
}

// tag appends the beginning of a field of protobuf with a length.
func tag(dst []byte, number, length int) []byte {
	return binary.AppendUvarint(append(dst, byte(number<<3|2)), uint64(length))
}

func field(dst []byte, number int, value []byte) []byte {
	return append(tag(dst, number, len(value)), value...)
}

// Read implements io.Reader.
func (l *list) Read(p []byte) (int, error) {
	for len(l.pending) == 0 {
		if l.all == nil {
			return 0, io.EOF
		}
		_, object, err := l.all.next()
		switch {
		case errors.Is(err, io.EOF):
			l.all, l.pending = nil, append(l.pending, l.tail...)
		case err != nil:
			return 0, err
		case l.json && l.items:
			l.pending = append(append(l.pending[:0], ','), object...)
		case l.json:
			l.pending, l.items = append(l.pending[:0], object...), true
		default:
			l.pending = append(tag(l.pending[:0], 2, len(object)), object...)
		}
	}
	n := copy(p, l.pending)
	l.pending = l.pending[n:]
	return n, nil
}
