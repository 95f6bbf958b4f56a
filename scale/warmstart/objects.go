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
	typeName  string
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
	return objects{typeName: t.String(), mediaType: mediaType, contents: hex.EncodeToString(hash.Sum(nil)), resource: r}
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

// list is the answer of a server that lists objects of a file. The codec decodes it, so its equal parts are shared.
type list struct {
	all     *newest
	json    bool
	items   bool // the next item is not the first
	head    [1 + binary.MaxVarintLen64]byte
	pending [2][]byte // what stands before the object, and the object
	tail    string
}

// list returns the answer for a part of the objects.
func (o *objects) list(r *replayed, part index) io.Reader {
	out := &list{all: r.file.newest(part), json: o.mediaType == mediaJSON}
	apiVersion, kind := o.resource.GroupVersion().String(), o.resource.Kind+"List"
	if out.json {
		out.pending[0] = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q},"items":[`, kind, apiVersion, r.version)
		out.tail = "]}"
		return out
	}
	// A message Unknown in an envelope. Its fields are the type (1) and the list (2), whose fields are the metadata
	// (1), with the version (2), and the items (2).
	meta := field(nil, 1, field(nil, 2, []byte(r.version)))
	size := len(meta)
	for _, p := range part {
		size += len(tag(nil, 2, int(p.length))) + int(p.length)
	}
	begin := field([]byte("k8s\x00"), 1, field(field(nil, 1, []byte(apiVersion)), 2, []byte(kind)))
	out.pending[0] = append(tag(begin, 2, size), meta...)
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
func (l *list) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(l.pending[0]) == 0 && len(l.pending[1]) == 0 {
			if err := l.next(); err != nil {
				return n, err
			}
		}
		for i, part := range l.pending {
			copied := copy(p[n:], part)
			l.pending[i] = part[copied:]
			n += copied
		}
	}
	return n, nil
}

// next makes the next object pending, or the end of the list.
func (l *list) next() error {
	if l.all == nil {
		return io.EOF
	}
	_, object, err := l.all.next()
	switch {
	case errors.Is(err, io.EOF):
		l.all, l.pending[0] = nil, []byte(l.tail)
		return nil
	case err != nil:
		return err
	case !l.json:
		l.pending[0] = tag(l.head[:0], 2, len(object))
	case l.items:
		l.pending[0] = append(l.head[:0], ',')
	}
	l.pending[1], l.items = object, true
	return nil
}
