package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec/internal/jsonplan"
	"github.com/leatproject/leat/codec/internal/scan"
	"github.com/leatproject/leat/codec/internal/wireplan"
)

// Packed is an object as bytes: those of the server, without what the caller does not need. It takes a quarter of the
// memory of the decoded object, and decoding it costs about as much as copying the decoded object. The object does not
// change after the codec has passed it on; its bytes may be encoded later, see Delay. It implements api.Object.
// client-go has nothing like it.
type Packed struct {
	identity             string // namespace, name, UID and version, one after the other
	data                 string // in the format of form, or what its coding made of that; not set while form has plain
	form                 atomic.Pointer[form]
	namespace, name, uid uint16 // lengths in identity
}

// shape is what many objects have in common: how to decode their plain bytes.
type shape struct {
	format           int    // the index in formats
	apiVersion, kind string // see target.complete
	overwrite        bool
	bare             bool // the bytes lack the identity; see pruneBare
}

// form tells how to read the bytes of an object. Many objects have the same one.
type form struct {
	*shape
	coding *Coding // nil if the bytes are plain
	// plain has the bytes of one object that may be encoded later; else it is empty. A reader of such a form does not
	// look at Packed.data. So Encode can set data first, and then replace the form, beside readers and without a lock.
	plain string
}

// Coding encodes the bytes of Packed objects, for example with a compression whose dictionary fits them. An object
// keeps the Coding that it was encoded with.
type Coding struct {
	encode func(dst, src []byte) []byte
	decode func(dst, src []byte) ([]byte, error)

	forms map[shape]*form // this and the field below belong to the goroutine that encodes
	dst   []byte
}

// NewCoding returns a Coding of two functions that append to dst. decode must be safe for concurrent use.
func NewCoding(encode func(dst, src []byte) []byte, decode func(dst, src []byte) ([]byte, error)) *Coding {
	return &Coding{encode: encode, decode: decode, forms: map[shape]*form{}}
}

// Encode makes p keep its plain bytes, encoded unless that would not get smaller. It does nothing if p is encoded
// already. It changes p, so only the function that Packer.Codec calls for a new p may call Encode. After p.Delay, it
// may also be called later. One goroutine may use it at a time.
func (c *Coding) Encode(p *Packed, plain []byte) {
	f := p.form.Load()
	if f.coding != nil {
		return
	}
	c.dst = c.encode(c.dst[:0], plain)
	switch {
	case len(c.dst) < len(plain):
		p.data = string(c.dst)
		p.form.Store(c.formOf(f.shape))
	case f.plain == "":
		p.Keep(plain)
	}
}

func (c *Coding) formOf(s *shape) *form {
	f := c.forms[*s]
	if f == nil {
		f = &form{shape: s, coding: c}
		c.forms[*s] = f
	}
	return f
}

// Keep makes p keep a copy of its plain bytes. Only the function that Packer.Codec calls for a new p may call it.
func (p *Packed) Keep(plain []byte) {
	if p.data != string(plain) {
		p.data = string(plain)
	}
}

// Delay is Keep for a p that Coding.Encode may encode later, while other goroutines read it.
func (p *Packed) Delay(plain []byte) {
	p.form.Store(&form{shape: p.form.Load().shape, plain: string(plain)})
	p.data = ""
}

// load returns the bytes of p and their form.
func (p *Packed) load() (*form, string) {
	f := p.form.Load()
	if f.plain != "" {
		return f, f.plain
	}
	return f, p.data
}

// GetNamespace returns the namespace of the object.
func (p *Packed) GetNamespace() string { return p.identity[:p.namespace] }

// GetName returns the name of the object.
func (p *Packed) GetName() string { return p.identity[p.namespace:][:p.name] }

// GetUID returns the UID of the object.
func (p *Packed) GetUID() types.UID {
	return types.UID(p.identity[int(p.namespace)+int(p.name):][:p.uid])
}

// GetResourceVersion returns the version of the object.
func (p *Packed) GetResourceVersion() string {
	return p.identity[int(p.namespace)+int(p.name)+int(p.uid):]
}

// parts returns the identity of the object.
func (p *Packed) parts() identity {
	return identity{
		namespace: []byte(p.GetNamespace()), name: []byte(p.GetName()), uid: []byte(p.GetUID()), version: []byte(p.GetResourceVersion()),
	}
}

// Len returns the number of bytes that hold the object, besides its identity.
func (p *Packed) Len() int {
	_, data := p.load()
	return len(data)
}

// Data returns the bytes of an object that is not encoded, as a sample for a Coding. It reports false for one that is.
func (p *Packed) Data() (string, bool) {
	f, data := p.load()
	return data, f.coding == nil
}

// MarshalJSON returns the bytes as a string, so that objects with equal bytes are equal as JSON, whatever their Coding.
func (p *Packed) MarshalJSON() ([]byte, error) {
	_, b, err := p.plain(&unpacker{})
	if err != nil {
		return nil, err
	}
	return json.Marshal(b)
}

// Plain returns the plain bytes of the object, without the envelope of protobuf. It reports false if they have another
// media type, or cannot be decoded.
func (p *Packed) Plain(mediaType string) ([]byte, bool) {
	if formats[p.form.Load().format].mediaType() != mediaType {
		return nil, false
	}
	_, b, err := p.plain(&unpacker{})
	return b, err == nil
}

// plain returns the shape and the plain bytes of the object. The bytes are valid until the next use of u.
func (p *Packed) plain(u *unpacker) (s *shape, _ []byte, err error) {
	f, data := p.load()
	if f.bare {
		u.data = appendIdentified(u.data[:0], p, data)
	} else {
		u.data = append(u.data[:0], data...)
	}
	if f.coding == nil {
		return f.shape, u.data, nil
	}
	u.decoded, err = f.coding.decode(u.decoded[:0], u.data)
	return f.shape, u.decoded, err
}

var errLongIdentity = errors.New("a namespace, name or UID that is too long")

// newPacked returns a Packed with the identity of the object in data.
func newPacked(f *form, id identity, data string) (*Packed, error) {
	if max(len(id.namespace), len(id.name), len(id.uid)) > math.MaxUint16 {
		return nil, errLongIdentity
	}
	var identity strings.Builder
	identity.Grow(len(id.namespace) + len(id.name) + len(id.uid) + len(id.version))
	for _, part := range [...][]byte{id.namespace, id.name, id.uid, id.version} {
		identity.Write(part)
	}
	p := &Packed{
		identity: identity.String(), data: data,
		namespace: uint16(len(id.namespace)), name: uint16(len(id.name)), uid: uint16(len(id.uid)),
	}
	p.form.Store(f)
	return p, nil
}

// Packer packs objects of one Go type, and unpacks them. It is safe for concurrent use.
type Packer[T any] struct {
	packer
}

// packer is a Packer without its type parameter.
type packer struct {
	d         decoder
	mask      *Mask                // may be nil
	form      atomic.Pointer[form] // the last one
	unpackers sync.Pool
}

// NewPacker returns a Packer for a T that New accepts. It is a function and not a method of Codec, so that programs
// without packed objects do not link it.
func NewPacker[T any](o Options) *Packer[T] {
	k := &Packer[T]{}
	k.d.compile(reflect.TypeFor[T](), o)
	return k
}

// NewPackerOf is NewPacker for a type that is known only at run time; see NewOf.
func NewPackerOf[T any](object reflect.Type, o Options) *Packer[T] {
	mustImplement(object, reflect.TypeFor[T]())
	k := &Packer[T]{}
	k.d.compile(object, o)
	return k
}

// Codec returns a Codec that reads the answers that a Codec of T reads, and keeps their objects as bytes. An object
// that a Codec of T would report as undecodable is reported too. keep is called with each new object and its plain
// bytes, which are valid during the call, before the Codec passes the object on. It calls Packed.Keep or Coding.Encode.
// It is not called with an object that Options.Known returned. Nil means Packed.Keep.
func (k *Packer[T]) Codec(keep func(p *Packed, plain []byte)) *Codec[*Packed] {
	bare := keep == nil && k.mask != nil
	if keep == nil {
		keep = (*Packed).Keep
	}
	c := &Codec[*Packed]{d: k.d}
	c.d.target.pack = func(a *answer, o encoded, drop bool) (any, error) {
		return k.packEncoded(a, o, drop, bare, keep)
	}
	return c
}

// packEncoded packs an object of an answer, without its identity if bare is set and that is possible.
func (k *packer) packEncoded(a *answer, o encoded, drop, bare bool, keep func(*Packed, []byte)) (*Packed, error) {
	id := o.identity()
	var whole []byte
	if k.mask != nil {
		message, isMessage := o.(*protobufObject)
		if isMessage {
			whole = message.raw
		}
		bare = bare && id.certain && isMessage && k.mask.pruneBare(message)
		if !bare {
			k.mask.prune(o)
			id = o.identity()
		}
		drop = false
	}
	if !id.certain {
		obj, err := o.decode(drop)
		if err != nil {
			return nil, err
		}
		k.d.target.complete(obj, a.apiVersion, a.kind, a.strict)
		p, err := k.pack(obj)
		if err == nil {
			keep(p, []byte(p.data))
		}
		return p, err
	}
	plain, at, err := o.pack(drop)
	if err != nil {
		if bare {
			o.(*protobufObject).raw = whole // the report of the error names the object
		}
		return nil, err
	}
	p, err := newPacked(k.formOf(shape{format: at, apiVersion: a.apiVersion, kind: a.kind, overwrite: a.strict, bare: bare}), id, "")
	if err == nil {
		keep(p, plain)
	}
	return p, err
}

// Pack packs an object that was decoded, and perhaps changed since. It encodes the object in the best format that T is
// decoded from and that has a place for T. It fails if those bytes cannot be decoded. Like a server, it keeps nothing
// that the format has no place for.
func (k *Packer[T]) Pack(object T) (*Packed, error) { return k.pack(object) }

func (k *packer) pack(object any) (*Packed, error) {
	o, ok := object.(api.Object)
	if !ok {
		return nil, fmt.Errorf("codec: %T has no identity", object)
	}
	s, b, err := k.encode(object)
	if err != nil {
		return nil, err
	}
	id := identity{
		namespace: []byte(o.GetNamespace()), name: []byte(o.GetName()), uid: []byte(o.GetUID()), version: []byte(o.GetResourceVersion()),
	}
	p, err := newPacked(k.formOf(s), id, string(b))
	if err == nil {
		_, err = k.unpack(p)
	}
	return p, err
}

// encode returns the bytes of an object, and their shape.
func (k *packer) encode(object any) (s shape, b []byte, err error) {
	err = errNotEncodable
	for i := 0; err == errNotEncodable && i < len(formats); i++ {
		if k.d.readers[i] != nil {
			s.format = i
			b, err = formats[i].marshal(object, api.Resource{})
		}
	}
	if err == nil && s.format == protobufAt {
		var e envelope
		e, err = open(b)
		s.apiVersion, s.kind, b = string(e.apiVersion), string(e.kind), e.raw
	}
	return s, b, err
}

// formOf returns the form of plain bytes of a shape. It is the same one as long as all objects have one kind and one
// format.
func (k *packer) formOf(s shape) *form {
	last := k.form.Load()
	if last == nil || *last.shape != s {
		last = &form{shape: &s}
		k.form.Store(last)
	}
	return last
}

// Unpack returns the object of p, which the caller owns. p must be from a Packer of the same type, or from one of its
// Codecs.
func (k *Packer[T]) Unpack(p *Packed) (T, error) {
	obj, err := k.unpack(p)
	if err != nil {
		var none T
		return none, fmt.Errorf("codec: a packed object cannot be decoded: %w", err)
	}
	return obj.(T), nil
}

// identifiable is a type whose identity can be set.
type identifiable interface {
	SetNamespace(namespace string)
	SetName(name string)
	SetUID(uid types.UID)
	SetResourceVersion(version string)
}

// Identities returns a function that returns an object with only the namespace, name, UID and version of p. It costs a
// fraction of Unpack. The function belongs to one goroutine at a time. If T has the setters of metav1.Object, the
// function uses two objects by turns, because an empty Pod takes more than a kilobyte: a result is valid until the next
// call but one.
func (k *Packer[T]) Identities() func(p *Packed) (T, error) {
	if _, ok := reflect.New(k.d.target.elem).Interface().(identifiable); !ok || k.d.target.isGeneric {
		return k.identity
	}
	var objects [2]struct {
		identifiable
		shape *shape // of which the object has the apiVersion and the kind
	}
	turn := 0
	return func(p *Packed) (T, error) {
		turn = 1 - turn
		o := &objects[turn]
		if s := p.form.Load().shape; o.shape != s {
			o.identifiable, o.shape = reflect.New(k.d.target.elem).Interface().(identifiable), s
			k.d.target.complete(o.identifiable, s.apiVersion, s.kind, s.overwrite)
		}
		o.SetNamespace(p.GetNamespace())
		o.SetName(p.GetName())
		o.SetUID(p.GetUID())
		o.SetResourceVersion(p.GetResourceVersion())
		return o.identifiable.(T), nil
	}
}

// identity returns an object of p's identity by decoding a message that has only that.
func (k *Packer[T]) identity(p *Packed) (T, error) {
	s := p.form.Load().shape
	encode := jsonStub
	if s.format == protobufAt {
		encode = protobufStub
	}
	stub := &Packed{identity: p.identity, namespace: p.namespace, name: p.name, uid: p.uid, data: string(encode(p.parts()))}
	stub.form.Store(&form{shape: s})
	return k.Unpack(stub)
}

// unpacker is the memory that decoding one object needs.
type unpacker struct {
	data, decoded []byte
	wire          wireplan.Reader
	json          jsonplan.Reader
	outline       scan.Outline
}

// maxKeptBytes is the size of the largest buffer that is used again.
const maxKeptBytes = 256 << 10

func (k *packer) unpack(p *Packed) (any, error) {
	u, _ := k.unpackers.Get().(*unpacker)
	if u == nil {
		u = &unpacker{wire: wireplan.NewReader(k.d.target.strings, never), json: jsonplan.NewReader(k.d.target.strings, never)}
		u.wire.Remember()
	}
	s, b, err := p.plain(u)
	if err != nil {
		return nil, err
	}
	obj, err := k.d.readers[s.format].unpack(u, b)
	if max(cap(u.data), cap(u.decoded)) <= maxKeptBytes {
		k.unpackers.Put(u)
	}
	if err == nil {
		k.d.target.complete(obj, s.apiVersion, s.kind, s.overwrite)
		if k.mask != nil {
			k.mask.Mark(obj)
		}
	}
	return obj, err
}

func never() error { return nil }

func (o *protobufObject) pack(drop bool) ([]byte, int, error) {
	if err := o.plan.Check(&o.r, o.raw, drop); err != nil || !drop {
		return o.raw, protobufAt, err
	}
	o.packed = wireplan.AppendWithoutManagedFields(o.packed[:0], o.raw)
	return o.packed, protobufAt, nil
}

func (c *protobufCodec) unpack(u any, b []byte) (any, error) {
	return c.plan.Decode(&u.(*unpacker).wire, b, false)
}

// protobufStub returns the message of an object that has only an identity.
func protobufStub(id identity) []byte {
	var metadata []byte
	metadata = appendField(metadata, metaName, id.name)
	metadata = appendField(metadata, metaNamespace, id.namespace)
	metadata = appendField(metadata, metaUID, id.uid)
	metadata = appendField(metadata, metaResourceVersion, id.version)
	return appendField(nil, protowire.Number(wireplan.ObjectMetadata), metadata)
}

func (o *jsonObject) pack(drop bool) ([]byte, int, error) {
	c := o.outline.At(o.b)
	err := o.plan.Check(&o.r, c, drop)
	switch {
	case err != nil:
		return nil, jsonAt, err
	case !drop:
		return c.Raw(), jsonAt, nil
	}
	o.packed = jsonplan.AppendWithoutManagedFields(o.packed[:0], c)
	return o.packed, jsonAt, nil
}

func (c *jsonCodec) unpack(to any, b []byte) (any, error) {
	u := to.(*unpacker)
	if err := scan.Rescan(&u.outline, b); err != nil {
		return nil, err
	}
	return c.plan.Decode(&u.json, u.outline.At(b), false)
}

// jsonStub is protobufStub in JSON.
func jsonStub(id identity) []byte {
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(map[string]any{"metadata": map[string]string{ // strings can always be encoded
		"name": string(id.name), "namespace": string(id.namespace), "uid": string(id.uid), "resourceVersion": string(id.version),
	}})
	return b.Bytes()
}
