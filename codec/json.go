package codec

import (
	"bytes"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec/internal/plan"
)

// jsonFormat is JSON.
type jsonFormat struct{}

func (*jsonFormat) mediaType() string { return MediaTypeJSON }

func (*jsonFormat) isText() bool { return true }

func (*jsonFormat) compile(t *target) reader {
	return &jsonCodec{plan: compileJSON(t.elem), strings: t.strings, listMeta: newJSONCompiler().compile(reflect.TypeFor[metav1.ListMeta]())}
}

func (*jsonFormat) status(body []byte) *metav1.Status {
	var o jsonObject
	s := newScanner(nil, &window{r: bytes.NewReader(body), limit: maxStatusBytes})
	s.held = true
	if _, err := s.value(0, &o.outline); err != nil {
		return nil
	}
	o.set(s.b)
	if !isStatusKind(o.typeMeta()) {
		return nil
	}
	status, _ := o.status()
	return status
}

// jsonCodec reads answers in JSON.
type jsonCodec struct {
	plan     jsonPlan
	strings  *plan.Interner
	listMeta decode // into a metav1.ListMeta
}

func (c *jsonCodec) object(a *answer) (any, error) {
	s := newScanner(a.ended, &a.window)
	s.held = true
	i, err := s.next(0)
	if err != nil {
		return nil, err
	}
	if s.b[i] != '{' {
		return nil, s.invalid(i, "an object")
	}
	s.drop(i)
	o := c.newObject(a)
	n, err := s.value(0, &o.outline)
	if err != nil {
		return nil, err
	}
	o.set(s.b[:n])
	obj, err := a.single(&o)
	if err == nil {
		err = s.end(n)
	}
	return obj, err
}

// jsonObject is one object of JSON. An answer uses it for each of its objects.
type jsonObject struct {
	plan    *jsonPlan
	r       jsonReader
	scratch plan.Scratch

	b       []byte
	outline outline // of the object in b
	head    head
}

// newObject returns a place for the objects of an answer.
func (c *jsonCodec) newObject(a *answer) jsonObject {
	return jsonObject{plan: &c.plan, r: jsonReader{strings: c.strings, breaks: breaks{ended: a.ended}}}
}

// set makes b the current object. The outline is that of b already.
func (o *jsonObject) set(b []byte) {
	o.b = b
	o.head = o.outline.head(b)
}

func (o *jsonObject) typeMeta() (apiVersion, kind []byte) {
	return o.outline.stringAt(o.b, o.head.apiVersion), o.outline.stringAt(o.b, o.head.kind)
}

func (o *jsonObject) identity() identity { return identify(o.b, &o.outline, o.head) }

func (o *jsonObject) decode(drop bool) (any, error) {
	o.r.scratch = &o.scratch
	return o.plan.decode(&o.r, o.outline.at(o.b), drop)
}

// status takes an object without a kind for a Status too.
func (o *jsonObject) status() (*metav1.Status, error) {
	c := o.outline.at(o.b)
	if len(c.tokens) == 0 || c.kind() != '{' {
		return nil, nil
	}
	if apiVersion, kind := o.typeMeta(); len(kind) > 0 && !isStatusKind(apiVersion, kind) {
		return nil, nil
	}
	return jsonStatus(c), nil
}

func (o *jsonObject) bookmark() (version string, initialEventsEnd bool) {
	c := o.outline.at(o.b)
	if !c.member("metadata") {
		return "", false
	}
	if at := c; at.member("resourceVersion") {
		version = string(at.stringOf())
	}
	if at := c; at.member("annotations") && at.member(api.InitialEventsEndAnnotation) {
		initialEventsEnd = string(at.stringOf()) == "true"
	}
	return version, initialEventsEnd
}

// identify reads the metadata of the object in b without decoding the rest. It ignores values of the wrong type.
func identify(b []byte, o *outline, h head) identity {
	id := identity{certain: !h.repeated}
	c := cursor{b: b, tokens: o.tokens, k: h.metadata}
	if h.metadata == 0 || c.kind() != '{' {
		return id
	}
	var seen [4]bool
	for end := c.enter(); c.k < end; {
		var to *[]byte
		var k int
		switch string(c.content()) {
		case "namespace":
			to, k = &id.namespace, 0
		case "name":
			to, k = &id.name, 1
		case "uid":
			to, k = &id.uid, 2
		case "resourceVersion":
			to, k = &id.version, 3
		default:
			c.skip()
			continue
		}
		next := c.behind()
		*to = c.stringOf()
		c.k = next
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

func (o *outline) head(b []byte) head {
	var h head
	c := o.at(b)
	if len(c.tokens) == 0 || c.kind() != '{' {
		return h
	}
	for end := c.enter(); c.k < end; c.skip() {
		var at *int
		switch string(c.content()) {
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
		*at = c.k
	}
	return h
}

// jsonStatus reads a Status. It skips members of the wrong type, because the rest of an odd Status is still useful.
func jsonStatus(c cursor) *metav1.Status {
	status := &metav1.Status{}
	plan := newJSONCompiler().structOf(reflect.TypeFor[metav1.Status]())
	r := jsonReader{cursor: c}
	for end := r.enter(); r.k < end; {
		f, next := plan.find(r.content()), r.behind()
		if f != nil {
			to, err := f.of(reflect.ValueOf(status).Elem())
			before := reflect.New(f.typ).Elem()
			before.Set(to)
			if err != nil || f.decode(&r, to) != nil {
				to.Set(before)
			}
		}
		r.k = next
	}
	return status
}
