package codec

import (
	"io"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/codec/internal/wireplan"
)

// toTheEnd means that only the end of the stream ends the message.
const toTheEnd = -1

// protobufList reads a list in an envelope. All items are in one long field; it reads them one by one and never holds
// the whole field.
type protobufList struct {
	a      *answer
	object protobufObject // the current item; its envelope has only raw
	head   envelope       // of the list, without raw
	hasRaw bool
	meta   metav1.ListMeta
}

func (c *protobufCodec) list(a *answer) (metav1.ListMeta, error) {
	l := protobufList{a: a, object: c.newObjects(a)}
	return l.read()
}

func (l *protobufList) read() (metav1.ListMeta, error) {
	head, err := l.a.window.Need(len(magic))
	if err != nil {
		return l.meta, err
	}
	if string(head) != magic {
		return l.meta, malformed(0, "an answer without the prefix of Kubernetes' protobuf")
	}
	l.a.window.Drop(len(magic))
	if err := l.fields(toTheEnd, l.envelopeField); err != nil {
		return l.meta, err
	}
	if err := l.head.check(); err != nil {
		return l.meta, malformed(l.a.window.Offset(), "%w", err)
	}
	if !l.hasRaw {
		// The message of an empty list has no bytes.
		return l.meta, l.kindError()
	}
	return l.meta, nil
}

// envelopeField reads a field of the envelope, of size bytes.
func (l *protobufList) envelopeField(num protowire.Number, size int64) error {
	switch num {
	case unknownRaw:
		return l.raw(size)
	case unknownTypeMeta, unknownContentEncoding, unknownContentType:
	default:
		return l.skip(size)
	}
	if size > maxHeadBytes {
		return malformed(l.a.window.Offset(), "an envelope with a field of %d bytes", size)
	}
	b, err := l.a.window.Need(int(size))
	if err != nil {
		return err
	}
	if err := l.head.set(num, append([]byte(nil), b...)); err != nil {
		return malformed(l.a.window.Offset(), "%w", err)
	}
	l.a.window.Drop(int(size))
	return nil
}

// raw reads the list itself. The kind must come first, so that no other content is read as a list. Every encoder writes
// fields in the order of their numbers.
func (l *protobufList) raw(size int64) error {
	if l.hasRaw {
		return malformed(l.a.window.Offset(), "an envelope with two contents")
	}
	l.hasRaw = true
	if isStatusKind(l.head.apiVersion, l.head.kind) {
		b, err := l.a.window.Need(int(min(size, int64(l.a.window.Limit())+1)))
		if err != nil {
			return err
		}
		l.object.envelope = l.head
		l.object.raw = b
		return l.a.statusError(&l.object)
	}
	if err := l.kindError(); err != nil {
		return err
	}
	if l.a.kind == "" {
		l.a.apiVersion, l.a.kind = string(l.head.apiVersion), strings.TrimSuffix(string(l.head.kind), "List")
	}
	return l.fields(l.a.window.Offset()+size, l.listField)
}

func (l *protobufList) kindError() error {
	kind := string(l.head.kind)
	if apiVersion := string(l.head.apiVersion); !strings.HasSuffix(kind, "List") || isTable(apiVersion, kind) {
		return l.a.unexpected(apiVersion, kind)
	}
	return l.a.checkList(string(l.head.apiVersion), kind)
}

// listField reads a field of the list, of size bytes.
func (l *protobufList) listField(num protowire.Number, size int64) error {
	if num != listMetadata && num != listItems {
		return l.skip(size)
	}
	b, err := l.a.window.Need(int(min(size, int64(l.a.window.Limit())+1)))
	if err != nil {
		return err
	}
	if num == listMetadata {
		if err := listMetaMessage.Unmarshal(&l.meta, b); err != nil {
			return malformed(l.a.window.Offset(), "metadata of a list: %w", err)
		}
	} else {
		l.object.raw = b
		obj, _, ok, err := l.a.item(&l.object, "")
		if err == nil && ok {
			err = l.a.each(obj)
		}
		if err != nil {
			return err
		}
	}
	l.a.window.Drop(int(size))
	return nil
}

// fields calls field for each length-delimited field of a message that ends at end, with its size. field must read the
// content. fields skips numbers.
func (l *protobufList) fields(end int64, field func(num protowire.Number, size int64) error) error {
	for l.a.window.Offset() != end {
		num, typ, size, err := l.key(end)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case typ == protowire.BytesType:
			err = field(num, size)
		default:
			err = l.skip(size)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// key reads the tag and the length of a field, and returns the size of its content. If a message without a known end
// has ended, it returns io.EOF.
func (l *protobufList) key(end int64) (num protowire.Number, typ protowire.Type, size int64, err error) {
	if end == toTheEnd && len(l.a.window.Bytes()) == 0 {
		if err := l.a.window.More(); err != nil {
			return 0, 0, 0, err
		}
	}
	tag, err := l.varint()
	if err != nil {
		return 0, 0, 0, err
	}
	num, typ = protowire.DecodeTag(tag)
	switch typ {
	case protowire.VarintType:
		_, err = l.varint()
	case protowire.Fixed32Type:
		size = 4
	case protowire.Fixed64Type:
		size = 8
	case protowire.BytesType:
		var n uint64
		n, err = l.varint()
		size = int64(min(n, math.MaxInt64/2))
	default:
		num = 0
	}
	if err == nil && (num < 1 || end != toTheEnd && size > end-l.a.window.Offset()) {
		err = malformed(l.a.window.Offset(), "%w", wireplan.ErrWire)
	}
	return num, typ, size, err
}

func (l *protobufList) varint() (uint64, error) {
	for {
		b := l.a.window.Bytes()
		v, n := protowire.ConsumeVarint(b)
		switch {
		case n > 0:
			l.a.window.Drop(n)
			return v, nil
		case len(b) >= 10: // the longest varint
			return 0, malformed(l.a.window.Offset(), "%w", wireplan.ErrWire)
		}
		if _, err := l.a.window.Need(len(b) + 1); err != nil {
			return 0, err
		}
	}
}

// skip reads size bytes without holding them.
func (l *protobufList) skip(size int64) error {
	for size > 0 {
		if _, err := l.a.window.Need(1); err != nil {
			return err
		}
		n := min(size, int64(len(l.a.window.Bytes())))
		l.a.window.Drop(int(n))
		size -= n
	}
	return nil
}
