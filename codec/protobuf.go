package codec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec/internal/plan"
	"github.com/leatproject/leat/codec/internal/wireplan"
)

// protobufFormat is the protobuf of Kubernetes: messages in envelopes.
type protobufFormat struct{}

func (*protobufFormat) mediaType() string { return MediaTypeProtobuf }

func (*protobufFormat) isText() bool { return false }

func (*protobufFormat) compile(t *target) reader {
	if t.isGeneric {
		return nil
	}
	plan := wireplan.Compile(t.elem)
	if plan == nil {
		return nil
	}
	return &protobufCodec{plan: *plan, strings: t.strings, parts: t.parts}
}

func (*protobufFormat) status(body []byte) *metav1.Status {
	var o protobufObject
	if o.open(body) != nil {
		return nil
	}
	status, _ := o.status()
	return status
}

// protobufCodec reads answers in protobuf.
type protobufCodec struct {
	plan    wireplan.Plan
	strings *plan.Interner
	parts   func() *plan.Parts
}

func (c *protobufCodec) object(a *answer) (any, error) {
	b, err := a.window.All()
	if err != nil {
		return nil, err
	}
	o := c.newObject(a)
	if err := o.open(b); err != nil {
		return nil, malformed(0, "%w", err)
	}
	return a.single(&o)
}

// protobufObject is one object of protobuf: a message, and its envelope if it has one. An answer uses it for each of
// its objects.
type protobufObject struct {
	envelope
	plan   *wireplan.Plan
	r      wireplan.Reader
	packed []byte // see pack
}

// newObject returns a place for the objects of an answer.
func (c *protobufCodec) newObject(a *answer) protobufObject {
	return protobufObject{plan: &c.plan, r: wireplan.NewReader(c.strings, a.ended)}
}

// newObjects is newObject for many objects, whose strings repeat.
func (c *protobufCodec) newObjects(a *answer) protobufObject {
	o := c.newObject(a)
	if c.plan.ByNumbers() {
		o.r.Remember()
		if a.share {
			o.r.Share(c.parts())
		}
	}
	return o
}

// open makes the object in an envelope the current one. After an error, the current object is empty.
func (o *protobufObject) open(b []byte) (err error) {
	o.envelope, err = open(b)
	return err
}

func (o *protobufObject) typeMeta() (apiVersion, kind []byte) { return o.apiVersion, o.kind }

func (o *protobufObject) decode(drop bool) (any, error) {
	return o.plan.Decode(&o.r, o.raw, drop)
}

func (o *protobufObject) status() (*metav1.Status, error) {
	if !isStatusKind(o.typeMeta()) {
		return nil, nil
	}
	status := &metav1.Status{}
	if err := statusMessage.Unmarshal(status, o.raw); err != nil {
		return nil, err
	}
	return status, nil
}

func (o *protobufObject) bookmark() (version string, initialEventsEnd bool) {
	for number, value, rest := wireplan.Field(o.raw); number != wireplan.Ended; number, value, rest = wireplan.Field(rest) {
		if number != wireplan.ObjectMetadata {
			continue
		}
		for number, value, rest := wireplan.Field(value); number != wireplan.Ended; number, value, rest = wireplan.Field(rest) {
			switch number {
			case metaResourceVersion:
				version = string(value)
			case metaAnnotations:
				if key, text := mapEntry(value); string(key) == api.InitialEventsEndAnnotation {
					initialEventsEnd = string(text) == "true"
				}
			}
		}
	}
	return version, initialEventsEnd
}

// mapEntry returns the key and the text of an entry of a map.
func mapEntry(entry []byte) (key, text []byte) {
	for number, value, rest := wireplan.Field(entry); number != wireplan.Ended; number, value, rest = wireplan.Field(rest) {
		switch number {
		case wireplan.EntryKey:
			key = value
		case wireplan.EntryValue:
			text = value
		}
	}
	return key, text
}

func (o *protobufObject) identity() identity {
	id := identity{certain: true}
	var metadata []byte
	found := false
	for number, value, rest := wireplan.Field(o.raw); number != wireplan.Ended; number, value, rest = wireplan.Field(rest) {
		switch number {
		case 0:
			id.certain = false
		case wireplan.ObjectMetadata:
			id.certain = id.certain && !found
			metadata, found = value, true
		}
	}
	for number, value, rest := wireplan.Field(metadata); number != wireplan.Ended; number, value, rest = wireplan.Field(rest) {
		switch number {
		case 0:
			id.certain = false
		case metaNamespace:
			id.namespace = value
		case metaName:
			id.name = value
		case metaUID:
			id.uid = value
		case metaResourceVersion:
			id.version = value
		}
	}
	return id
}
