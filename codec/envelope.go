package codec

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leatproject/leat/codec/internal/wireplan"
)

// magic is the prefix of every message of Kubernetes' protobuf; a runtime.Unknown follows.
const magic = "k8s\x00"

// These are the fields of the messages that are read by hand, with the numbers of k8s.io/apimachinery's
// generated.proto.
const (
	unknownTypeMeta        = 1
	unknownRaw             = 2
	unknownContentEncoding = 3
	unknownContentType     = 4

	typeMetaAPIVersion = 1
	typeMetaKind       = 2

	listMetadata = 1
	listItems    = 2

	metaName            = 1
	metaNamespace       = 3
	metaUID             = 5
	metaResourceVersion = 6
	metaAnnotations     = 12

	eventType   = 1
	eventObject = 2

	rawExtensionRaw = 1
)

// These messages are not objects.
var statusMessage, listMetaMessage wireplan.Message

// envelope is a runtime.Unknown. Its slices alias the answer.
type envelope struct {
	apiVersion, kind, raw        []byte
	contentEncoding, contentType []byte
}

// open reads an envelope that is completely in memory.
func open(b []byte) (envelope, error) {
	var e envelope
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return e, errors.New("an object without the prefix of Kubernetes' protobuf")
	}
	for number, value, rest := wireplan.Field(b[len(magic):]); number != wireplan.Ended; number, value, rest = wireplan.Field(rest) {
		if number == 0 {
			return e, fmt.Errorf("envelope: %w", wireplan.ErrWire)
		}
		if err := e.set(number, value); err != nil {
			return e, err
		}
	}
	return e, e.check()
}

func (e *envelope) set(num protowire.Number, v []byte) error {
	switch num {
	case unknownTypeMeta:
		return e.setTypeMeta(v)
	case unknownRaw:
		e.raw = v
	case unknownContentEncoding:
		e.contentEncoding = v
	case unknownContentType:
		e.contentType = v
	}
	return nil
}

func (e *envelope) setTypeMeta(b []byte) error {
	for number, value, rest := wireplan.Field(b); number != wireplan.Ended; number, value, rest = wireplan.Field(rest) {
		switch number {
		case 0:
			return fmt.Errorf("apiVersion and kind: %w", wireplan.ErrWire)
		case typeMetaAPIVersion:
			e.apiVersion = value
		case typeMetaKind:
			e.kind = value
		}
	}
	return nil
}

// check rejects content that is not plain protobuf.
func (e *envelope) check() error {
	if len(e.contentEncoding) > 0 {
		return fmt.Errorf("an object in the content encoding %.64q", e.contentEncoding)
	}
	if len(e.contentType) > 0 && baseType(string(e.contentType)) != MediaTypeProtobuf {
		return fmt.Errorf("an object of the content type %.64q inside protobuf", e.contentType)
	}
	return nil
}
