package recording

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leatproject/leat/api"
)

// Stream is one list or watch of a recording: a request, and its answer.
type Stream struct {
	// ID is unique in a recording.
	ID uint64 `json:"id"`
	// At is the time of the answer's head.
	At time.Time `json:"at"`
	// Watch is true for a watch. Otherwise the stream is a list, or a page of one.
	Watch bool `json:"watch,omitempty"`
	// Group, Version and Plural are the resource, as in the URL of the request.
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Plural  string `json:"plural"`
	// Namespace is the namespace of the request, or empty for all.
	Namespace string `json:"namespace,omitempty"`
	// Options has the parameters of the request that change what the server sends: selectors, versions, limits.
	Options map[string]string `json:"options,omitempty"`
	// As is the kind into which the server converts objects, such as PartialObjectMetadata. It is usually empty.
	As string `json:"as,omitempty"`
	// Code is the status code of the answer. An answer that is not successful has no data.
	Code int `json:"code"`
	// ContentType is the media type of the data.
	ContentType string `json:"contentType,omitempty"`
	// Note says why the recording has no data of the stream. It is empty if it has.
	Note string `json:"note,omitempty"`
}

// Resource returns the resource of the stream. The URL of a request tells neither the kind nor whether objects have a
// namespace.
func (s *Stream) Resource() api.Resource {
	return api.Resource{Group: s.Group, Version: s.Version, Plural: s.Plural}
}

// scope identifies what the streams of one informer have in common.
type scope struct{ group, version, plural, namespace, labels, fields, shard, as, contentType string }

func (s *Stream) scope() scope {
	return scope{
		s.Group, s.Version, s.Plural, s.Namespace, s.Options["labelSelector"], s.Options["fieldSelector"], s.Options["shardSelector"],
		s.As, s.ContentType,
	}
}

// selects reports whether the stream has only a part of the objects in its namespace.
func (s *Stream) selects() bool {
	return s.Options["labelSelector"] != "" || s.Options["fieldSelector"] != "" || s.Options["shardSelector"] != ""
}

// probed is in the field selector of a list with which a reflector asks only for the version of the server.
const probed = "metadata.name=leat-probe"

// isProbe reports whether the stream is such a list. It shows nothing of a collection.
func (s *Stream) isProbe() bool {
	return !s.Watch && s.Options["limit"] == "1" && strings.Contains(s.Options["fieldSelector"], probed)
}

// Kinds into which a server converts objects.
const (
	asMetadata = "PartialObjectMetadata"
	asTable    = "Table"
)

// protobuf reports whether the data are protobuf.
func (s *Stream) protobuf() bool { return s.ContentType == typeProtobuf }

// partial reports whether the stream has only the metadata of the objects.
func (s *Stream) partial() bool { return s.As == asMetadata }

// RecordKind says what a Record is.
type RecordKind byte

const (
	// Opened is the head of an answer.
	Opened RecordKind = iota + 1
	// Data are bytes of an answer: whole frames of a watch, or a part of a list.
	Data
	// Ended is the regular end of an answer.
	Ended
	// Closed is the end of an answer that the client did not read to its end.
	Closed
	// Broken is the end of an answer whose connection failed.
	Broken
	// Lost means that the recorder could not keep the rest of the stream: the disk was too slow, or a frame was too
	// large.
	Lost
)

// String returns the name of the kind.
func (k RecordKind) String() string {
	switch k {
	case Opened:
		return "opened"
	case Data:
		return "data"
	case Ended:
		return "ended"
	case Closed:
		return "closed"
	case Broken:
		return "broken"
	case Lost:
		return "lost"
	default:
		return fmt.Sprintf("RecordKind(%d)", byte(k))
	}
}

// again is Opened for a stream that was opened before. It makes a later part of a file readable by itself. A Reader
// does not return it.
const again RecordKind = 7

// Record is one entry of a recording.
type Record struct {
	Kind   RecordKind
	Stream *Stream
	Time   time.Time
	// Data is set if Kind is Data. It is valid until the next record is read.
	Data []byte
	// Gap reports that records of the stream before this one are missing, because the file is damaged.
	Gap bool
}

// entry is a record in a block: kind, stream, number of the record in the stream, nanoseconds since the first record of
// the block, data.
type entry struct {
	kind   RecordKind
	stream uint64
	number uint64
	at     int64
	data   []byte
}

func (e *entry) append(dst []byte, first int64) []byte {
	dst = append(dst, byte(e.kind))
	dst = binary.AppendUvarint(dst, e.stream)
	dst = binary.AppendUvarint(dst, e.number)
	dst = binary.AppendUvarint(dst, uint64(e.at-first))
	dst = binary.AppendUvarint(dst, uint64(len(e.data)))
	return append(dst, e.data...)
}

var errMalformed = errors.New("a malformed record")

// parseEntry returns the first entry of b and the bytes behind it.
func parseEntry(b []byte, first int64) (e entry, rest []byte, err error) {
	if len(b) == 0 {
		return e, nil, errMalformed
	}
	e.kind, b = RecordKind(b[0]), b[1:]
	var numbers [4]uint64
	for i := range numbers {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return e, nil, errMalformed
		}
		numbers[i], b = v, b[n:]
	}
	if e.kind < Opened || e.kind > again || numbers[3] > uint64(len(b)) {
		return e, nil, errMalformed
	}
	e.stream, e.number, e.at = numbers[0], numbers[1], first+int64(numbers[2])
	e.data = b[:numbers[3]:numbers[3]]
	return e, b[numbers[3]:], nil
}

// parseStream returns the stream that a record of kind Opened describes.
func parseStream(e entry) (*Stream, error) {
	s := &Stream{}
	if err := json.Unmarshal(e.data, s); err != nil {
		return nil, errMalformed
	}
	if s.ID != e.stream || s.Plural == "" || s.Version == "" {
		return nil, errMalformed
	}
	return s, nil
}
