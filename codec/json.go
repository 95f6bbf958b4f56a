package codec

import (
	"bytes"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec/internal/jsonplan"
	"github.com/leatproject/leat/codec/internal/plan"
	"github.com/leatproject/leat/codec/internal/scan"
)

// listMetaPlan decodes the metadata of lists. All codecs share it, because it takes 2 KB.
var listMetaPlan = sync.OnceValue(func() jsonplan.Plan { return jsonplan.Compile(reflect.TypeFor[metav1.ListMeta]()) })

// jsonFormat is JSON.
type jsonFormat struct{}

func (*jsonFormat) mediaType() string { return MediaTypeJSON }

func (*jsonFormat) isText() bool { return true }

func (*jsonFormat) compile(t *target) reader {
	return &jsonCodec{plan: jsonplan.Compile(t.elem), strings: t.strings, parts: t.parts}
}

func (*jsonFormat) status(body []byte) *metav1.Status {
	var o jsonObject
	w := scan.NewWindow(bytes.NewReader(body), maxStatusBytes)
	s := scan.NewScanner(nil, &w)
	s.Held = true
	if _, err := s.Value(0, &o.outline); err != nil {
		return nil
	}
	o.set(s.B)
	if !isStatusKind(o.typeMeta()) {
		return nil
	}
	status, _ := o.status()
	return status
}

// jsonCodec reads answers in JSON.
type jsonCodec struct {
	plan    jsonplan.Plan
	strings *plan.Interner
	parts   func() *plan.Parts
}

func (c *jsonCodec) object(a *answer) (any, error) {
	s := scan.NewScanner(a.ended, &a.window)
	s.Held = true
	i, err := s.Next(0)
	if err != nil {
		return nil, err
	}
	if s.B[i] != '{' {
		return nil, s.Invalid(i, "an object")
	}
	s.Drop(i)
	o := c.newObject(a)
	n, err := s.Value(0, &o.outline)
	if err != nil {
		return nil, err
	}
	o.set(s.B[:n])
	obj, err := a.single(&o)
	if err == nil {
		err = s.End(n)
	}
	return obj, err
}

// jsonObject is one object of JSON. An answer uses it for each of its objects.
type jsonObject struct {
	plan *jsonplan.Plan
	r    jsonplan.Reader

	b       []byte
	outline scan.Outline // of the object in b
	head    head
	packed  []byte // see pack
}

// newObject returns a place for the objects of an answer.
func (c *jsonCodec) newObject(a *answer) jsonObject {
	return jsonObject{plan: &c.plan, r: jsonplan.NewReader(c.strings, a.ended)}
}

// newObjects is newObject for many objects, which may share parts.
func (c *jsonCodec) newObjects(a *answer) jsonObject {
	o := c.newObject(a)
	if a.share {
		o.r.Share(c.parts())
	}
	return o
}

// set makes b the current object. The outline is that of b already.
func (o *jsonObject) set(b []byte) {
	o.b = b
	o.head = headOf(b, &o.outline)
}

func (o *jsonObject) typeMeta() (apiVersion, kind []byte) {
	return o.outline.StringAt(o.b, o.head.apiVersion), o.outline.StringAt(o.b, o.head.kind)
}

func (o *jsonObject) identity() identity { return identify(o.b, &o.outline, o.head) }

func (o *jsonObject) decode(drop bool) (any, error) {
	return o.plan.Decode(&o.r, o.outline.At(o.b), drop)
}

// status takes an object without a kind for a Status too.
func (o *jsonObject) status() (*metav1.Status, error) {
	c := o.outline.At(o.b)
	if len(c.Tokens) == 0 || c.Kind() != '{' {
		return nil, nil
	}
	if apiVersion, kind := o.typeMeta(); len(kind) > 0 && !isStatusKind(apiVersion, kind) {
		return nil, nil
	}
	status := &metav1.Status{}
	jsonplan.Lenient(c, reflect.ValueOf(status).Elem()) // the rest of an odd Status is still useful
	return status, nil
}

func (o *jsonObject) bookmark() (version string, initialEventsEnd bool) {
	c := o.outline.At(o.b)
	if !c.Member("metadata") {
		return "", false
	}
	if at := c; at.Member("resourceVersion") {
		version = string(at.StringOf())
	}
	if at := c; at.Member("annotations") && at.Member(api.InitialEventsEndAnnotation) {
		initialEventsEnd = string(at.StringOf()) == "true"
	}
	return version, initialEventsEnd
}

// identify reads the metadata of the object in b without decoding the rest. It ignores values of the wrong type.
func identify(b []byte, o *scan.Outline, h head) identity {
	id := identity{certain: !h.repeated}
	c := scan.Cursor{B: b, Tokens: o.Tokens, K: h.metadata}
	if h.metadata == 0 || c.Kind() != '{' {
		return id
	}
	var seen [4]bool
	for end := c.Enter(); c.K < end; {
		var to *[]byte
		var k int
		switch string(c.Content()) {
		case "namespace":
			to, k = &id.namespace, 0
		case "name":
			to, k = &id.name, 1
		case "uid":
			to, k = &id.uid, 2
		case "resourceVersion":
			to, k = &id.version, 3
		default:
			c.Skip()
			continue
		}
		next := c.Behind()
		*to = c.StringOf()
		c.K = next
		id.certain = id.certain && !seen[k]
		seen[k] = true
	}
	return id
}

// head holds the token indices of the members that are read before the rest of an object; 0 means missing. If a name is
// repeated, the last member counts, and repeated is set.
type head struct {
	apiVersion, kind, metadata int
	repeated                   bool
}

func headOf(b []byte, o *scan.Outline) head {
	var h head
	c := o.At(b)
	if len(c.Tokens) == 0 || c.Kind() != '{' {
		return h
	}
	for end := c.Enter(); c.K < end; c.Skip() {
		var at *int
		switch string(c.Content()) {
		case "metadata":
			at = &h.metadata
		case "kind":
			at = &h.kind
		case "apiVersion":
			at = &h.apiVersion
		default:
			continue
		}
		h.repeated = h.repeated || *at > 0
		*at = c.K
	}
	return h
}
