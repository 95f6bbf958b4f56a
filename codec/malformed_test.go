package codec_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

// malformedLimit is small, so that small inputs can be too large.
const malformedLimit = 96 << 10

// These are the errors with which a malformed answer may end.
var (
	isMalformed   = func(err error) bool { return errors.Is(err, codec.ErrMalformed) }
	isTruncated   = func(err error) bool { return isMalformed(err) && errors.Is(err, io.ErrUnexpectedEOF) }
	isTooLarge    = func(err error) bool { return errors.Is(err, codec.ErrTooLarge) }
	isKind        = func(err error) bool { return errors.Is(err, codec.ErrUnexpectedKind) }
	isUnknown     = func(err error) bool { return errors.Is(err, codec.ErrUnknownEvent) }
	isUndecodable = func(err error) bool {
		return errors.As(err, new(*api.UndecodableError)) && !errors.Is(err, io.ErrUnexpectedEOF)
	}
	isStatus = func(err error) bool { return errors.As(err, new(apierrors.APIStatus)) }
	isFine   = func(err error) bool { return err == nil || err == io.EOF }
)

type malformedCase struct {
	name, body string
	is         func(error) bool
}

func deep(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }

// length is a field of protobuf that claims to be n bytes long.
func length(num byte, n uint64) string {
	return string(binary.AppendUvarint([]byte{num<<3 | 2}, n))
}

const (
	item     = `{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5"}}`
	listHead = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`
	oversize = 120 << 10
)

var malformedJSONObjects = []malformedCase{
	{"nothing", "", isTruncated},
	{"white space", " \n\t", isTruncated},
	{"half a brace", "{", isTruncated},
	{"cut in a name", `{"metad`, isTruncated},
	{"cut behind a name", `{"metadata"`, isTruncated},
	{"cut behind a colon", `{"metadata":`, isTruncated},
	{"cut in a string", `{"metadata":{"name":"abc`, isTruncated},
	{"cut in an escape", `{"metadata":{"name":"\u00`, isTruncated},
	{"cut in a number", `{"metadata":{"generation":12`, isTruncated},
	{"cut in a literal", `{"spec":nul`, isTruncated},
	{"cut before the last brace", item[:len(item)-1], isTruncated},
	{"null", "null", isMalformed},
	{"an array", "[" + item + "]", isMalformed},
	{"a string", `"pod"`, isMalformed},
	{"a number", "42", isMalformed},
	{"a page of HTML", "<html></html>", isMalformed},
	{"a byte order mark", "\ufeff" + item, isMalformed},
	{"protobuf", "k8s\x00\x0a\x00", isMalformed},
	{"zeros", strings.Repeat("\x00", 100), isMalformed},
	{"two objects", item + item, isMalformed},
	{"a comma behind", item + ",", isMalformed},
	{"a brace too many", item + "}", isMalformed},
	{"a brace for a bracket", `{"spec":[}`, isMalformed},
	{"a bracket for a brace", `{"spec":{]`, isMalformed},
	{"a comma too many", `{"spec":1,}`, isMalformed},
	{"a missing comma", `{"spec":1 "status":2}`, isMalformed},
	{"a missing colon", `{"spec" 1}`, isMalformed},
	{"a name without quotes", `{spec:1}`, isMalformed},
	{"single quotes", `{'spec':1}`, isMalformed},
	{"a comment", `{/**/}`, isMalformed},
	{"a control character", "{\"spec\":\"\x01\"}", isMalformed},
	{"a bad escape", `{"spec":"\q"}`, isMalformed},
	{"bad hexadecimal", `{"spec":"\u00zz"}`, isMalformed},
	{"a leading zero", `{"spec":01}`, isMalformed},
	{"a bare minus", `{"spec":-}`, isMalformed},
	{"not a number", `{"spec":NaN}`, isMalformed},
	{"nested too deep", deep(10001), isMalformed},
	{"nested without end", strings.Repeat(`[`, 20000), isMalformed},
	{"arrays nested too deep", `{"spec":` + strings.Repeat("[", 10001), isMalformed},
	{"too large", `{"metadata":{"name":"` + strings.Repeat("x", oversize) + `"}}`, isTooLarge},
	{"too many members", `{"a":1` + strings.Repeat(`,"a":1`, oversize/6) + `}`, isTooLarge},
	{"too long a number", `{"spec":` + strings.Repeat("1", oversize) + `}`, isTooLarge},
	{"a spec of the wrong type", `{"metadata":{"name":"a"},"spec":"none"}`, isUndecodable},
	{"metadata of the wrong type", `{"metadata":[]}`, isMalformed},
	{"a name of the wrong type", `{"metadata":{"name":5}}`, isMalformed},
	{"labels of the wrong type", `{"metadata":{"name":"a","labels":["x"]}}`, isUndecodable},
	{"a bad time", `{"metadata":{"name":"a","creationTimestamp":"yesterday"}}`, isUndecodable},
	{"a bad quantity", `{"metadata":{"name":"a"},"spec":{"overhead":{"cpu":"much"}}}`, isUndecodable},
	{"a number too large", `{"metadata":{"name":"a","generation":99999999999999999999}}`, isUndecodable},
	{"a fraction for an integer", `{"metadata":{"name":"a","generation":1.5}}`, isUndecodable},
	{"a failure", `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`, isStatus},
	{"a success", `{"kind":"Status","apiVersion":"v1","status":"Success"}`, isKind},
	{"an odd status", `{"kind":"Status","apiVersion":"v1","status":5,"code":"x"}`, isStatus},
	{"another kind", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"}}`, isKind},
	{"another version", `{"kind":"Pod","apiVersion":"v2","metadata":{"name":"a"}}`, isKind},
	{"a list", listHead + item + `]}`, isKind},
	{"a table", `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}`, isKind},
}

var malformedJSONLists = []malformedCase{
	{"nothing", "", isTruncated},
	{"cut in the head", `{"kind":"PodLi`, isTruncated},
	{"cut before the first item", listHead, isTruncated},
	{"cut in an item", listHead + item[:20], isTruncated},
	{"cut behind an item", listHead + item, isTruncated},
	{"cut behind a comma", listHead + item + ",", isTruncated},
	{"cut before the last brace", listHead + item + "]", isTruncated},
	{"cut in what is skipped", `{"kind":"PodList","more":{"x":[`, isTruncated},
	{"an array", "[" + item + "]", isMalformed},
	{"null", "null", isMalformed},
	{"items of the wrong type", `{"kind":"PodList","items":{}}`, isMalformed},
	{"items that are a string", `{"kind":"PodList","items":"none"}`, isMalformed},
	{"items that are almost null", `{"kind":"PodList","items":nul}`, isMalformed},
	{"a null item", listHead + "null]}", isMalformed},
	{"an item that is a number", listHead + "7]}", isMalformed},
	{"an item that is an array", listHead + "[" + item + "]]}", isMalformed},
	{"an item without a name", listHead + `{"metadata":{"name":1}}]}`, isMalformed},
	{"an item with bad metadata", listHead + `{"metadata":7}]}`, isMalformed},
	{"no comma between items", listHead + item + item + "]}", isMalformed},
	{"a comma before the end", listHead + item + ",]}", isMalformed},
	{"two commas", listHead + item + ",," + item + "]}", isMalformed},
	{"a brace for a bracket", listHead + item + "}", isMalformed},
	{"bad metadata of the list", `{"kind":"PodList","metadata":{"resourceVersion":7},"items":[]}`, isMalformed},
	{"metadata that is an array", `{"kind":"PodList","metadata":[],"items":[]}`, isMalformed},
	{"something behind the end", listHead + item + "]}]", isMalformed},
	{"a Status of two kinds", `{"kind":"Pod","message":"` + strings.Repeat("x", 65520) + `","kind":"Status"}`, isKind},
	{"another list behind the end", listHead + item + "]}" + listHead + item + "]}", isMalformed},
	{"bad syntax in what is skipped", `{"kind":"PodList","more":{"x":tru},"items":[]}`, isMalformed},
	{"too deep in what is skipped", `{"kind":"PodList","more":` + deep(10001) + `,"items":[]}`, isMalformed},
	{"too large an item", listHead + `{"metadata":{"name":"` + strings.Repeat("x", oversize) + `"}}]}`, isTooLarge},
	{"too large metadata", `{"metadata":{"resourceVersion":"` + strings.Repeat("1", oversize) + `"}}`, isTooLarge},
	{"too large a name", `{"` + strings.Repeat("k", oversize) + `":1}`, isTooLarge},
	{"too long a number in what is skipped", `{"more":` + strings.Repeat("1", oversize) + `}`, isTooLarge},
	{"much to skip", `{"kind":"PodList","more":"` + strings.Repeat("x", 300<<10) + `","items":[` + item + `]}`, isFine},
	{"a large list of small items", listHead + item + strings.Repeat(","+item, 2000) + "]}", isFine},
	{"much white space", strings.Repeat(" ", 90<<10) + listHead + strings.Repeat("\n", 90<<10) + item + "]}" + strings.Repeat(" ", 90<<10), isFine},
	{"too much white space before", strings.Repeat(" ", 300<<10) + listHead + item + "]}", isTooLarge},
	{"too much white space between", listHead + strings.Repeat("\n", 300<<10) + item + "]}", isTooLarge},
	{"too much white space behind", listHead + item + "]}" + strings.Repeat("\t", 300<<10), isTooLarge},
	{"items twice", `{"kind":"PodList","items":[` + item + `],"items":[` + item + `]}`, isFine},
	{"an item that is no pod", listHead + `{"metadata":{"name":"a"},"spec":1}]}`, isUndecodable},
	{"an item of another kind", listHead + `{"kind":"Node","metadata":{"name":"a"}}]}`, isUndecodable},
	{"an object", item, isKind},
	{"a pod", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`, isKind},
	{"an empty object", "{}", isKind},
	{"a table", `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[` + strings.Repeat(`{},`, 10) + `{}]}`, isKind},
	{"a failure", `{"kind":"Status","apiVersion":"v1","status":"Failure","code":504,"details":{"causes":[{}]}}`, isStatus},
	{"a failure with a novel", `{"kind":"Status","apiVersion":"v1","message":"` + strings.Repeat("m", 20<<10) + `","status":"Failure","code":504}`, isStatus},
	{"a failure cut short", `{"kind":"Status","apiVersion":"v1","status":"Failure"`, isTruncated},
}

var malformedJSONEvents = []malformedCase{
	{"nothing", "", isFine},
	{"white space", " \n \n", isFine},
	{"cut in the type", `{"type":"ADD`, isTruncated},
	{"cut in the object", `{"type":"ADDED","object":{"meta`, isTruncated},
	{"cut before the last brace", `{"type":"ADDED","object":` + item, isTruncated},
	{"cut in the second frame", `{"type":"ADDED","object":` + item + "}\n{", isTruncated},
	{"an array", `[{"type":"ADDED"}]`, isMalformed},
	{"null", "null\n", isMalformed},
	{"a bare item", item, isMalformed},
	{"an empty frame", "{}", isMalformed},
	{"no type", `{"object":` + item + `}`, isMalformed},
	{"a null type", `{"type":null,"object":` + item + `}`, isMalformed},
	{"a type that is a number", `{"type":1,"object":` + item + `}`, isMalformed},
	{"a type in lower case", `{"type":"added","object":` + item + `}`, isUnknown},
	{"an endless type", `{"type":"` + strings.Repeat("A", 20<<10) + `","object":` + item + `}`, isUnknown},
	{"no object", `{"type":"ADDED"}`, isMalformed},
	{"a null object", `{"type":"ADDED","object":null}`, isMalformed},
	{"an object that is a string", `{"type":"DELETED","object":"a"}`, isMalformed},
	{"an object without a name", `{"type":"ADDED","object":{"spec":7}}`, isMalformed},
	{"an object that is no pod", `{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":7}}`, isUndecodable},
	{"an object of another kind", `{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"a"}}}`, isUndecodable},
	{"a table", `{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"3"}}}`, isMalformed},
	{"a bookmark without an object", `{"type":"BOOKMARK"}`, isMalformed},
	{"a bookmark without a version", `{"type":"BOOKMARK","object":{"metadata":{}}}`, isMalformed},
	{"a bookmark with a number for a version", `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":7}}}`, isMalformed},
	{"a bookmark with bad annotations", `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":[1]}}}`, isFine},
	{"a bookmark that is no pod", `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"},"spec":1}}`, isFine},
	{"an error without an object", `{"type":"ERROR"}`, isStatus},
	{"an error that is a pod", `{"type":"ERROR","object":` + item + `}`, isStatus},
	{"an error that is a number", `{"type":"ERROR","object":410}`, isStatus},
	{"a comma between frames", `{"type":"ADDED","object":` + item + `},{"type":"ADDED","object":` + item + `}`, isMalformed},
	{"a length before the frame", "\x00\x00\x00\x10{}", isMalformed},
	{"a chunk size of HTTP", "1f\r\n{}", isMalformed},
	{"too large an object", `{"type":"ADDED","object":{"metadata":{"name":"` + strings.Repeat("x", oversize) + `"}}}`, isTooLarge},
	{"too large a frame", `{"other":"` + strings.Repeat("x", oversize) + `","type":"ADDED","object":` + item + `}`, isTooLarge},
	{"nested too deep", `{"type":"ADDED","object":` + deep(10001) + `}`, isMalformed},
	{"bad syntax beside the object", `{"type":"ADDED","other":[1,],"object":` + item + `}`, isMalformed},
	{"a whole list", listHead + item + "]}", isMalformed},
	{"a status", `{"kind":"Status","apiVersion":"v1","status":"Failure","code":410}`, isMalformed},
	{"an old version after a new one", `{"type":"ADDED","object":` + item + `}{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"4"}}}`, isFine},
	{"a frame twice", `{"type":"ADDED","object":` + item + `}{"type":"ADDED","object":` + item + `}`, isFine},
}

func protobufPod() []byte {
	return mustMarshal(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", UID: "u", ResourceVersion: "5"}})
}

func malformedProtobufObjects() []malformedCase {
	good := string(sealed("v1", "Pod", newPod(1)))
	return []malformedCase{
		{"nothing", "", isMalformed},
		{"half the prefix", "k8", isMalformed},
		{"another prefix", "k9s\x00", isMalformed},
		{"nothing but the prefix", "k8s\x00", isFine}, // an object of an unknown kind without bytes
		{"JSON", item, isMalformed},
		{"cut in the envelope", good[:7], isMalformed},
		{"cut in the middle", good[:len(good)/2], isMalformed},
		{"cut before the last byte", good[:len(good)-1], isMalformed},
		{"a lying length", "k8s\x00" + length(2, 1<<40) + "x", isMalformed},
		{"the longest length", "k8s\x00" + length(2, 1<<63), isMalformed},
		{"a varint without end", "k8s\x00" + strings.Repeat("\xff", 20), isMalformed},
		{"field zero", "k8s\x00\x02\x01x", isMalformed},
		{"a group", "k8s\x00\x0b\x0b\x0b", isMalformed},
		{"a bad wire type", "k8s\x00\x0f", isMalformed},
		{"bad apiVersion and kind", "k8s\x00" + length(1, 2) + "\x0a\x7f", isMalformed},
		{"a content encoding", encoded("gzip", ""), isMalformed},
		{"JSON inside", encoded("", asJSON), isMalformed},
		{"protobuf inside", encoded("", asProtobuf), isFine},
		{"a pod cut short", string(sealedBytes("v1", "Pod", append(protobufPod(), 0x12, 0x7f))), isUndecodable},
		{"a pod without a name", string(sealedBytes("v1", "Pod", []byte{0x12, 0x02, 0x0a, 0x7f})), isMalformed},
		{"a pod with a bad spec", string(sealedBytes("v1", "Pod", append(protobufPod(), 0x12, 0x02, 0x0a, 0x7f))), isUndecodable},
		{"a pod with a spec of the wrong wire type", string(sealedBytes("v1", "Pod", append(protobufPod(), 0x10, 0x01))), isUndecodable},
		{"a failure", string(sealed("v1", "Status", &metav1.Status{Status: "Failure", Code: 500})), isStatus},
		{"a bad status", string(sealedBytes("v1", "Status", []byte{0x0a, 0x7f})), isMalformed},
		{"another kind", string(sealed("v1", "Node", &corev1.Node{})), isKind},
		{"a list", string(sealed("v1", "PodList", &corev1.PodList{})), isKind},
		{"too large", string(sealedBytes("v1", "Pod", make([]byte, oversize))), isTooLarge},
	}
}

// encoded is a pod whose envelope names a content encoding.
func encoded(encoding, contentType string) string {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: protobufPod(), ContentEncoding: encoding, ContentType: contentType}
	return "k8s\x00" + string(mustMarshal(&unknown))
}

func malformedProtobufLists() []malformedCase {
	good := string(sealed("v1", "PodList", &corev1.PodList{Items: []corev1.Pod{*newPod(1), *newPod(2)}}))
	list := func(raw string) string { return string(sealedBytes("v1", "PodList", []byte(raw))) }
	head := good[:strings.Index(good, "PodList")+len("PodList")]
	pod := string(protobufPod())
	return []malformedCase{
		{"nothing", "", isTruncated},
		{"half the prefix", "k8", isTruncated},
		{"another prefix", "K8S\x00", isMalformed},
		{"nothing but the prefix", "k8s\x00", isKind},
		{"JSON", listHead + item + "]}", isMalformed},
		{"cut in the envelope", good[:9], isTruncated},
		{"cut in the first item", good[:500], isTruncated},
		{"cut in the second item", good[:len(good)-500], isTruncated},
		{"cut behind the first item", head + length(2, 1000) + length(2, uint64(len(pod))) + pod, isTruncated},
		{"a lying length of the list", head + length(2, 1<<50), isTruncated},
		{"a lying length of an item", head + length(2, 1<<50) + length(2, 1<<49), isTooLarge},
		{"an item longer than the list", list(length(2, 1<<20)), isMalformed},
		{"the longest length", head + length(2, 1<<63) + length(2, 1<<62), isMalformed},
		{"a long type", "k8s\x00" + length(1, 1<<20), isMalformed},
		{"bad apiVersion and kind", "k8s\x00" + length(1, 2) + "\x0a\x7f", isMalformed},
		{"a list before its kind", "k8s\x00" + length(2, 0), isKind},
		{"two lists", good + length(2, 0), isMalformed},
		{"a varint without end", "k8s\x00" + strings.Repeat("\xff", 20), isMalformed},
		{"a varint cut short", head + "\xff", isTruncated},
		{"field zero", list("\x02\x01x"), isMalformed},
		{"a group", list("\x0b"), isMalformed},
		{"a bad wire type", list("\x0f"), isMalformed},
		{"a fixed number cut short", list("\x09abc"), isMalformed},
		{"unknown fields", list("\x18\x05\x21abcdefgh\x2dabcd\x32\x01x"), isFine},
		{"much to skip", list(length(7, 300<<10) + strings.Repeat("x", 300<<10)), isFine},
		{"bad metadata", list(length(1, 2) + "\x0a\x7f"), isMalformed},
		{"too large metadata", list(length(1, oversize) + strings.Repeat("x", oversize)), isTooLarge},
		{"too large an item", list(length(2, oversize) + strings.Repeat("x", oversize)), isTooLarge},
		{"an item without a name", list(length(2, 4) + "\x12\x02\x0a\x7f"), isMalformed},
		{"an item that is no pod", list(length(2, uint64(len(pod)+4)) + pod + "\x12\x02\x0a\x7f"), isUndecodable},
		{"an item of nothing", list(length(2, 0)), isFine},
		{"a content encoding", good + "\x1a\x04gzip", isMalformed},
		{"a status", string(sealed("v1", "Status", &metav1.Status{Status: "Failure", Code: 410})), isStatus},
		{"a bad status", string(sealedBytes("v1", "Status", []byte{0x0a, 0x7f})), isMalformed},
		{"an endless status", strings.Replace(head, "PodList", "Status\x22", 1) + length(2, 1<<50), isKind},
		{"a pod", string(sealed("v1", "Pod", newPod(1))), isKind},
	}
}

func malformedProtobufEvents() []malformedCase {
	good := string(frameOf(asProtobuf, "ADDED", newPod(1)))
	frame := func(message string) string { return string(framed([]byte(message))) }
	event := func(typ string, object []byte) string { return string(protobufFrame(typ, object)) }
	return []malformedCase{
		{"nothing", "", isFine},
		{"half a length", "\x00\x00", isTruncated},
		{"nothing but a length", "\x00\x00\x00\x10", isTruncated},
		{"cut in the frame", good[:100], isTruncated},
		{"cut before the last byte", good[:len(good)-1], isTruncated},
		{"cut in the second frame", good + good[:50], isTruncated},
		{"a lying length", "\x00\x00\x7f\xff" + good[4:], isTruncated},
		{"the longest length", "\xff\xff\xff\xff" + good[4:], isTooLarge},
		{"JSON", `{"type":"ADDED","object":` + item + `}`, isTooLarge}, // its first four bytes are a length of two billion
		{"an empty frame", frame(""), isMalformed},
		{"a bad message", frame("\xff"), isMalformed},
		{"a length too short", "\x00\x00\x00\x05" + good[4:], isMalformed},
		{"no type", frame("\x12\x00"), isMalformed},
		{"an unknown type", event("PRUNED", nil), isUnknown},
		{"no object", frame("\x0a\x05ADDED"), isMalformed},
		{"an object without an envelope", event("ADDED", protobufPod()), isMalformed},
		{"an object of JSON", event("ADDED", []byte(item)), isMalformed},
		{"an envelope cut short", event("ADDED", sealed("v1", "Pod", newPod(1))[:50]), isMalformed},
		{"a bad pod", event("ADDED", sealedBytes("v1", "Pod", append(protobufPod(), 0x12, 0x02, 0x0a, 0x7f))), isUndecodable},
		{"a bad pod without a name", event("ADDED", sealedBytes("v1", "Pod", []byte("\x12\x02\x0a\x7f"))), isMalformed},
		{"another kind", event("ADDED", sealedBytes("v1", "Node", protobufPod())), isUndecodable},
		{"a bookmark without a version", event("BOOKMARK", sealed("v1", "Pod", &corev1.Pod{})), isMalformed},
		{"a bookmark without an object", event("BOOKMARK", nil), isMalformed},
		{"a bookmark that is no pod", event("BOOKMARK", sealedBytes("v1", "Pod", append(protobufPod(), 0x12, 0x02, 0x0a, 0x7f))), isFine},
		{"an error without an object", event("ERROR", nil), isStatus},
		{"an error that is a pod", event("ERROR", sealed("v1", "Pod", newPod(1))), isStatus},
		{"an error that is a bad status", event("ERROR", sealedBytes("v1", "Status", []byte{0x0a, 0x7f})), isStatus},
		{"too large a frame", event("ADDED", make([]byte, oversize)), isTooLarge},
	}
}

// Every malformed answer ends with a typed error, without a panic and with limited memory, however it arrives. The next
// valid answer is decoded normally.
func TestMalformedAnswers(t *testing.T) {
	c := codec.New[*corev1.Pod](codec.Options{MaxObjectBytes: malformedLimit})
	o := podOptions{DropManagedFields: true, Known: func(_, _ []byte) (*corev1.Pod, bool) { return nil, false }}
	object := func(media string) func(io.Reader) error {
		return func(r io.Reader) error { return must.Err(c.DecodeObject(context.Background(), r, media, pods)) }
	}
	list := func(media string) func(io.Reader) error {
		return func(r io.Reader) error {
			return must.Err(c.DecodeList(context.Background(), r, media, pods, o, discard))
		}
	}
	watch := func(media string) func(io.Reader) error {
		return func(r io.Reader) error {
			events, err := c.NewEventReader(context.Background(), r, media, pods, o)
			for err == nil {
				_, err = events.Next()
			}
			return err
		}
	}
	total := 0
	for _, group := range []struct {
		name   string
		decode func(io.Reader) error
		good   []byte
		cases  []malformedCase
	}{
		{"object/json", object(asJSON), mustJSON(newPod(1)), malformedJSONObjects},
		{"list/json", list(asJSON), podList(2, asJSON), malformedJSONLists},
		{"events/json", watch(asJSON), frameOf(asJSON, "ADDED", newPod(1)), malformedJSONEvents},
		{"object/protobuf", object(asProtobuf), sealed("v1", "Pod", newPod(1)), malformedProtobufObjects()},
		{"list/protobuf", list(asProtobuf), podList(2, asProtobuf), malformedProtobufLists()},
		{"events/protobuf", watch(asProtobuf), frameOf(asProtobuf, "ADDED", newPod(1)), malformedProtobufEvents()},
	} {
		for _, test := range group.cases {
			t.Run(group.name+"/"+test.name, func(t *testing.T) {
				for _, r := range []io.Reader{strings.NewReader(test.body), oneByte{strings.NewReader(test.body)}} {
					var err error
					allocated := allocatedBytes(func() { err = group.decode(r) })
					require.True(t, test.is(err), "%T %v", err, err)
					require.Less(t, allocated, uint64(2<<20+40*len(test.body)))
					require.True(t, isFine(group.decode(bytes.NewReader(group.good))))
				}
			})
		}
		total += len(group.cases)
	}
	require.GreaterOrEqual(t, total, 150)
}
