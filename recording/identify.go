package recording

import (
	"bytes"
	"hash/maphash"

	"google.golang.org/protobuf/encoding/protowire"
)

// objectID says which object a frame is about.
type objectID struct {
	id    uint64 // equal for all frames of the object, and rarely for others
	start int    // of the object in the frame
	exact bool   // it is not that of another object, because name and UID were found in the metadata itself
}

// An identity decides only which keyframe a frame is compared with. A wrong one costs bytes, and never correctness. So
// it is found without reading the whole frame, at the places where a kube-apiserver writes it.
var (
	jsonObject   = []byte(`"object":{`)
	jsonMetadata = []byte(`"metadata":{`)
	jsonName     = []byte(`"name":"`)
	jsonUID      = []byte(`"uid":"`)
)

const (
	// maxObjectAt is the number of bytes in which an object begins.
	maxObjectAt = 64
	// maxIdentity is the number of bytes in which name and UID are searched. In custom resources they are behind
	// annotations, labels and managedFields.
	maxIdentity = 32 << 10
)

// identifyJSON finds the name and UID in the beginning of a frame. more reports that they may be in bytes that follow.
// In an object with its members in alphabetical order, other members precede them. The first ones are then taken, which
// may be a label and the UID of an owner; both together rarely are those of another object.
func identifyJSON(seed maphash.Seed, frame []byte) (i objectID, known, more bool) {
	head := frame[:min(len(frame), maxObjectAt)]
	if end := bytes.IndexByte(head, '\n'); end >= 0 {
		head = head[:end] // the next frame is about another object
	}
	at := bytes.Index(head, jsonObject)
	if at < 0 {
		return i, false, len(head) == len(frame) && len(head) < maxObjectAt
	}
	i.start = at + len(jsonObject) - 1
	object := frame[i.start:min(len(frame), i.start+maxIdentity)]
	more = len(object) < maxIdentity
	rest := object[1:]
	for !bytes.HasPrefix(rest, jsonMetadata) {
		var ok bool
		if _, _, rest, ok = textMember(rest); !ok {
			return i, false, more
		}
	}
	kind := object[:len(object)-len(rest)]
	m := textMembers(rest[len(jsonMetadata):])
	name, uid, rest := m.name, m.uid, m.rest
	if i.exact = name != nil && uid != nil; i.exact && !m.versioned {
		// Nearly all frames of the object begin with the same bytes. One hash of them costs less than one of each text.
		i.id = maphash.Bytes(seed, object[:len(object)-len(rest)])
		return i, true, false
	}
	if uid == nil {
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			rest, more = rest[:end], false // the next frame is about another object
		}
		if name == nil {
			name, rest = textBehind(rest, jsonName)
		}
		var behind []byte
		uid, behind = textBehind(rest, jsonUID)
		if more && len(behind) == 1 {
			return i, false, true // it may be a member of the metadata, whose comma has not arrived
		}
	}
	if name == nil || uid == nil {
		return i, false, more
	}
	i.id = identityHash(seed, kind, name, m.namespace, uid)
	return i, true, false
}

// textMetadata is what textMembers finds in metadata.
type textMetadata struct {
	name, namespace, uid []byte // nil for what is missing
	versioned            bool   // the version precedes the UID
	rest                 []byte // what follows
}

// textMembers reads members of metadata up to the UID, or to the first one that textMember does not split off.
func textMembers(metadata []byte) (m textMetadata) {
	m.rest = metadata
	for m.uid == nil {
		member, text, behind, ok := textMember(m.rest)
		if !ok {
			break
		}
		switch string(member) {
		case "name":
			m.name = text
		case "namespace":
			m.namespace = text
		case "uid":
			m.uid = text
		case "resourceVersion":
			m.versioned = true
		}
		m.rest = behind
	}
	return m
}

// textMember splits off the first member of an object, if its value is a text without escapes and another member
// follows.
func textMember(b []byte) (name, text, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, b, false
	}
	end := 1 + bytes.IndexByte(b[1:], '"')
	if end == 0 || len(b) < end+3 || b[end+1] != ':' || b[end+2] != '"' {
		return nil, nil, b, false
	}
	from := end + 3
	to := from + bytes.IndexByte(b[from:], '"')
	if to < from || len(b) < to+2 || b[to+1] != ',' {
		return nil, nil, b, false
	}
	return b[1:end], b[from:to], b[to+2:], true
}

// textBehind returns the text behind the first mention of a member, and what follows it. The text is nil if b has none.
func textBehind(b, member []byte) (text, rest []byte) {
	at := bytes.Index(b, member)
	if at < 0 {
		return nil, nil
	}
	b = b[at+len(member):]
	end := bytes.IndexByte(b, '"')
	if end < 0 {
		return nil, nil
	}
	return b[:end], b[end:]
}

// identityHash returns the hash of what tells an object from all others. UIDs alone would do, but some servers that are
// no kube-apiserver have none.
func identityHash(seed maphash.Seed, kind, name, namespace, uid []byte) uint64 {
	const odd = 0x9E3779B97F4A7C15
	return ((maphash.Bytes(seed, kind)*odd+maphash.Bytes(seed, name))*odd+maphash.Bytes(seed, namespace))*odd + maphash.Bytes(seed, uid)
}

// Numbers of fields: of metav1.WatchEvent, of runtime.RawExtension, of an object, and of metav1.ObjectMeta.
const (
	watchEventObject, rawExtensionRaw                  = 2, 1
	objectMetadata                                     = 1
	objectMetaName, objectMetaNamespace, objectMetaUID = 1, 3, 5
)

// identifyProtobuf is identifyJSON for a frame in protobuf, which begins with its length in four bytes.
func identifyProtobuf(seed maphash.Seed, frame []byte) (i objectID, ok, more bool) {
	if len(frame) < 4 {
		return i, false, true
	}
	frame = frame[:min(len(frame), frameSize(frame))]
	r := fieldReader{b: frame[:min(len(frame), maxIdentity)], at: 4}
	r.enter(watchEventObject)
	r.enter(rawExtensionRaw)
	if !r.failed && !bytes.HasPrefix(r.b[r.at:], []byte(magic)) {
		return i, false, len(r.b)-r.at < len(magic)
	}
	r.at += len(magic)
	kind := r.text(unknownTypeMeta)
	r.enter(unknownRaw)
	i.start = r.at
	r.enter(objectMetadata)
	name := r.text(objectMetaName)
	namespace := r.text(objectMetaNamespace)
	uid := r.text(objectMetaUID)
	if r.failed {
		return i, false, len(frame) < maxIdentity
	}
	i.id, i.exact = ^identityHash(seed, kind, name, namespace, uid), true // a frame in JSON has another keyframe
	return i, true, false
}

// fieldReader reads fields whose content is bytes, in messages that may be cut off.
type fieldReader struct {
	b      []byte
	at     int
	failed bool // a field is missing, or not yet in b
}

// enter goes to the content of the next field with a number. Fields before it are skipped.
func (r *fieldReader) enter(number protowire.Number) (size int) {
	for !r.failed && r.at <= len(r.b) {
		found, kind, n := protowire.ConsumeTag(r.b[r.at:])
		if n < 0 || kind != protowire.BytesType {
			break
		}
		length, m := protowire.ConsumeVarint(r.b[r.at+n:])
		if m < 0 {
			break
		}
		r.at += n + m
		if found == number {
			return int(min(length, maxRecord))
		}
		if length > uint64(len(r.b)-r.at) {
			break
		}
		r.at += int(length)
	}
	r.failed = true
	return 0
}

// text returns the content of the next field with a number.
func (r *fieldReader) text(number protowire.Number) []byte {
	size := r.enter(number)
	if r.failed || size > len(r.b)-r.at {
		r.failed = true
		return nil
	}
	r.at += size
	return r.b[r.at-size : r.at]
}
