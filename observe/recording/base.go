package recording

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/regularfile"
)

// base is the state before the first segment of a ring. The bytes of its objects are in a file; memory has their
// identities and their places. The file only grows, until half of it is garbage; then it is copied.
type base struct {
	path      string
	file      *os.File
	size      int64  // with what is unwritten
	unwritten []byte // the end of the file
	places    map[uint64]place
	last      uint64 // number of the last place

	loader *loader[*identified]
	coding *codec.Coding
	at     time.Time // of the last change
	err    error
}

// identified is what memory has of an object.
type identified struct {
	Metadata struct {
		Name            string    `json:"name" protobuf:"bytes,1,opt,name=name"`
		Namespace       string    `json:"namespace" protobuf:"bytes,3,opt,name=namespace"`
		UID             types.UID `json:"uid" protobuf:"bytes,5,opt,name=uid"`
		ResourceVersion string    `json:"resourceVersion" protobuf:"bytes,6,opt,name=resourceVersion"`
	} `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
}

func (i *identified) GetName() string            { return i.Metadata.Name }
func (i *identified) GetNamespace() string       { return i.Metadata.Namespace }
func (i *identified) GetUID() types.UID          { return i.Metadata.UID }
func (i *identified) GetResourceVersion() string { return i.Metadata.ResourceVersion }

// place is where the bytes of an object are.
type place struct {
	offset int64
	size   int
}

// minGarbage is the garbage in bytes that is never worth a copy.
const minGarbage = 16 << 20

// baseName is the name of the file of the state.
const baseName = "segment-base"

func newBase(dir string) (*base, error) {
	b := &base{path: filepath.Join(dir, baseName), places: map[uint64]place{}}
	b.coding = codec.NewCoding(b.store, func([]byte, []byte) ([]byte, error) { return nil, errors.New("recording: not in memory") })
	b.loader = newLoader[*identified](b.coding.Encode)
	b.loader.only = true
	var err error
	b.file, err = regularfile.Create(b.path)
	return b, err
}

// store adds the bytes of an object to the file, and returns the number of their place.
func (b *base) store(dst, src []byte) []byte {
	b.last++
	b.places[b.last] = place{b.size, len(src)}
	b.size += int64(len(src))
	if b.unwritten = append(b.unwritten, src...); len(b.unwritten) >= fullBlock {
		b.write()
	}
	return binary.AppendUvarint(dst, b.last)
}

// write writes what is unwritten. fold calls it last, so that others read from the file.
func (b *base) write() {
	_, err := b.file.WriteAt(b.unwritten, b.size-int64(len(b.unwritten)))
	if b.err == nil {
		b.err = err
	}
	b.unwritten = b.unwritten[:0]
	if cap(b.unwritten) > 4*fullBlock { // one large object does not cost memory forever
		b.unwritten = nil
	}
}

// number returns the number of the place of an object.
func number(p *codec.Packed) uint64 {
	data, _ := p.Data()
	n, _ := binary.Uvarint([]byte(data))
	return n
}

// fold applies the records of a segment.
func (b *base) fold(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for rec := range f.Records(nil) {
		if rec.Kind == Opened && rec.Gap && !rec.Stream.Watch {
			continue // the rest of a list: its beginning is in an earlier segment, which was folded
		}
		b.loader.record(rec)
		b.at = rec.Time
		switch rec.Kind {
		case Opened, Data:
		default:
			delete(b.loader.streams, rec.Stream.ID)
		}
	}
	b.write()
	b.loader.timeline.notes = nil
	for _, k := range b.loader.order {
		for _, sc := range k.all() {
			if sc.kind = k.resource.Kind; sc.stream.partial() {
				sc.kind = asMetadata
			}
		}
	}
	return b.err
}

// collect removes the garbage if it is most of the file. All lists that are not complete are lost, so their objects do
// not matter.
func (b *base) collect() error {
	live := map[uint64]place{}
	size := int64(0)
	b.each(func(_ *scopeState, p *codec.Packed) {
		n := number(p)
		live[n] = b.places[n]
		size += int64(live[n].size)
	})
	b.places = live
	if b.size-size < max(size, minGarbage) {
		return nil
	}
	to, err := regularfile.Create(b.path + "-new")
	if err != nil {
		return err
	}
	end, err := b.move(to)
	if err == nil {
		err = errors.Join(b.file.Close(), os.Rename(b.path+"-new", b.path))
	}
	if err != nil {
		return errors.Join(err, to.Close())
	}
	b.file, b.size = to, end
	return nil
}

// move copies the objects to another file, in the order in which they are, and returns its size. Neighbours are read
// together, and many objects are written together.
func (b *base) move(to *os.File) (end int64, err error) {
	order := slices.SortedFunc(maps.Keys(b.places), func(x, y uint64) int {
		return cmp.Compare(b.places[x].offset, b.places[y].offset)
	})
	var out []byte
	for len(order) > 0 {
		first := b.places[order[0]].offset
		from, next, n := end+int64(len(out))-first, first, 0
		for n < len(order) && b.places[order[n]].offset == next && next-first < fullBlock {
			p := b.places[order[n]]
			next += int64(p.size)
			b.places[order[n]] = place{p.offset + from, p.size}
			n++
		}
		order = order[n:]
		if out, err = b.bytes(out, place{first, int(next - first)}); err != nil {
			return 0, err
		}
		if len(out) >= fullBlock || len(order) == 0 {
			if _, err = to.WriteAt(out, end); err != nil {
				return 0, err
			}
			end, out = end+int64(len(out)), out[:0]
		}
	}
	return end, nil
}

// keep forgets the scopes that used does not report.
func (b *base) keep(used func(*Stream) bool) {
	l := b.loader
	for key, sc := range l.scopes {
		if !used(sc.stream) {
			delete(l.scopes, key)
		}
	}
	for _, k := range l.order {
		k.keep(func(sc *scopeState) bool { return l.scopes[sc.stream.scope()] == sc })
		if len(k.scopes) == 0 {
			delete(l.kinds, k.key)
		}
	}
	l.order = slices.DeleteFunc(l.order, func(k *kind[*identified]) bool { return len(k.scopes) == 0 })
}

// each calls f with all objects.
func (b *base) each(f func(*scopeState, *codec.Packed)) {
	for _, sc := range b.loader.scopes {
		for _, p := range sc.objects {
			f(sc, p)
		}
		for _, p := range sc.pages {
			f(sc, p)
		}
	}
	for _, d := range b.loader.streams {
		for _, p := range d.items {
			f(d.scope, p)
		}
	}
}

func (b *base) bytes(dst []byte, p place) ([]byte, error) {
	dst = slices.Grow(dst, p.size)[:len(dst)+p.size]
	_, err := b.file.ReadAt(dst[len(dst)-p.size:], p.offset)
	return dst, err
}

// baseID is the ID of the first list of the base in a dump. The IDs of streams that were recorded are below.
const baseID = 1 << 40

// copy writes a list for each scope.
func (b *base) copy(w *writer) error {
	if b.err != nil {
		return b.err
	}
	id := uint64(baseID)
	for _, k := range b.loader.order {
		for _, sc := range k.all() {
			if !sc.synced {
				continue
			}
			id++
			if err := b.list(w, id, sc); err != nil {
				return err
			}
		}
	}
	return w.err
}

// list writes the objects of a scope as the answer to a list.
func (b *base) list(w *writer, id uint64, sc *scopeState) error {
	s := &Stream{
		ID: id, At: b.at, Group: sc.stream.Group, Version: sc.stream.Version, Plural: sc.stream.Plural,
		Namespace: sc.stream.Namespace, Code: 200, As: sc.stream.As, ContentType: sc.stream.ContentType,
	}
	for _, name := range []string{"labelSelector", "fieldSelector", "shardSelector"} {
		if v := sc.stream.Options[name]; v != "" {
			s.option(name, v)
		}
	}
	w.opened(s)
	keys := make([]api.Key, 0, len(sc.objects))
	size := 0
	for key, p := range sc.objects {
		keys = append(keys, key)
		item := b.places[number(p)].size
		size += protowire.SizeTag(itemsField) + protowire.SizeBytes(item)
	}
	slices.SortFunc(keys, func(a, b api.Key) int { return strings.Compare(a.String(), b.String()) })
	e := listEncoder{protobuf: s.protobuf()}
	out := e.begin(nil, s.Resource().GroupVersion().String(), sc.kind+"List", sc.version, size)
	for i, key := range keys {
		p := b.places[number(sc.objects[key])]
		out = e.item(out, i, p.size)
		var err error
		if out, err = b.bytes(out, p); err != nil {
			return fmt.Errorf("read the state: %w", err)
		}
		if len(out) >= fullBlock {
			w.data(id, b.at, out)
			out = out[:0]
		}
	}
	w.data(id, b.at, e.end(out))
	w.ended(Ended, id, b.at)
	return w.err
}

// listEncoder encodes a list around the bytes of its items.
type listEncoder struct{ protobuf bool }

// Numbers of fields: of Unknown, of TypeMeta, of a list, and of ListMeta.
const (
	unknownTypeMeta, unknownRaw        = 1, 2
	metaAPIVersion, metaKind           = 1, 2
	listMetaField, itemsField          = 1, 2
	listMetaResourceVersion            = 2
	magic                       string = "k8s\x00"
)

// begin appends what precedes the items, which have size bytes in protobuf.
func (e listEncoder) begin(dst []byte, apiVersion, kind, version string, size int) []byte {
	if !e.protobuf {
		head, _ := json.Marshal(metav1.TypeMeta{Kind: kind, APIVersion: apiVersion}) // strings can always be encoded
		meta, _ := json.Marshal(metav1.ListMeta{ResourceVersion: version})
		return fmt.Appendf(dst, `%s,"metadata":%s,"items":[`, head[:len(head)-1], meta)
	}
	text := func(dst []byte, field protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(dst, field, protowire.BytesType), s)
	}
	typeMeta := text(text(nil, metaAPIVersion, apiVersion), metaKind, kind)
	listMeta := text(nil, listMetaResourceVersion, version)
	raw := text(nil, listMetaField, string(listMeta))
	dst = append(dst, magic...)
	dst = text(dst, unknownTypeMeta, string(typeMeta))
	dst = protowire.AppendTag(dst, unknownRaw, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(len(raw)+size))
	return append(dst, raw...)
}

// item appends what precedes the bytes of an item.
func (e listEncoder) item(dst []byte, i, size int) []byte {
	if e.protobuf {
		return protowire.AppendVarint(protowire.AppendTag(dst, itemsField, protowire.BytesType), uint64(size))
	}
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}

func (e listEncoder) end(dst []byte) []byte {
	if e.protobuf {
		return dst
	}
	return append(dst, "]}\n"...)
}

// close deletes the file.
func (b *base) close() error {
	b.loader.stop()
	_ = os.Remove(b.path + "-new") // exists only if a copy failed
	return errors.Join(b.file.Close(), os.Remove(b.path))
}
