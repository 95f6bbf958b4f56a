package codec_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sigsjson "sigs.k8s.io/json"

	"github.com/leatproject/leat/codec"
)

// syntax has every detail of RFC 8259, and inputs that violate it.
var syntax = []string{
	`{}`, `{"a":1}`, ` { "a" : [ 1 , 2 ] } `, `{"a":{"b":{"c":[[[]]]}}}`, `{"":""}`, "{\"a\":\t1,\r\n\"b\":2}",
	`{"a":-0}`, `{"a":0.5e-10}`, `{"a":1E+2}`, `{"a":1e5}`, `{"a":true,"b":false,"c":null}`,
	`{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}`, `{"a":"\ud800"}`, `{"a":"\ude00\ud83d"}`, "{\"a\":\"\xff\xfe\"}", "{\"a\":\"é\u2028\x7f\"}",
	`{"long":"0123456789abcdef0123456789abcdef0123456789abcdef"}`, `{"12345678":"12345678"}`,
	``, ` `, `{`, `}`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{"a":1,,"b":2}`, `{"a" 1}`, `{"a"::1}`, `{a:1}`, `{'a':1}`, `{1:1}`, `{null:1}`,
	`{"a":[1,]}`, `{"a":[,1]}`, `{"a":[1 2]}`, `{"a":[1}`, `{"a":(1)}`, `{"a":[1)}`, `{"a":}`, `{"a":1]`, `{"a":1 "b":2}`,
	`{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":+1}`, `{"a":-}`, `{"a":1e}`, `{"a":1e+}`, `{"a":0x10}`, `{"a":1.5.2}`, `{"a":Infinity}`, `{"a":NaN}`, `{"a":1_000}`, `{"a":--1}`,
	`{"a":tru}`, `{"a":truee}`, `{"a":True}`, `{"a":nul}`, `{"a":undefined}`, `{"a":falsetrue}`,
	`{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, `{"a":"\`, `{"a":"\"}`, `{"a":"` + "\n" + `"}`, "{\"a\":\"\x00\"}", "{\"a\":\"\x1f01234567\"}", `{"a":"b`, `{"a":"b}`, `{"a":'b'}`,
	`{"a":1}}`, `{"a":1}{`, `{"a":1} x`, `{"a":1}]`, "\ufeff{}", "{\"a\":1\u00a0}", "{\x0b}", `{"a":1}//c`, `{/*c*/}`, `{"a":1,"a":2}`,
	`{"a":` + strings.Repeat("[", 9998) + strings.Repeat("]", 9998) + `}`,
	`{"a":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}`,
}

// The scanner accepts exactly the objects that sigs.k8s.io/json accepts, wherever reads end.
func TestScansLikeReference(t *testing.T) {
	for _, text := range syntax {
		var document map[string]any
		want := sigsjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &document)
		for _, r := range []io.Reader{strings.NewReader(text), oneByte{strings.NewReader(text)}} {
			_, err := smallCodec.DecodeObject(context.Background(), r, asJSON, pods)
			if want == nil {
				require.NoError(t, err, "%.100q", text)
			} else {
				require.ErrorIs(t, err, codec.ErrMalformed, "%.100q: sigs.k8s.io/json says %v", text, want)
			}
		}
		if !json.Valid([]byte(text)) || document == nil {
			continue
		}
		// Inside a skipped value, where the scanner holds nothing.
		for _, r := range []io.Reader{strings.NewReader(`{"skip":` + text + `,"items":[]}`), oneByte{strings.NewReader(`{"skip":` + text + `,"items":[]}`)}} {
			_, err := smallCodec.DecodeList(context.Background(), r, asJSON, pods, listOptions, func(*small) error { return nil })
			require.NoError(t, err, "%.100q", text)
		}
	}
}

func TestSkippedValuesAreScanned(t *testing.T) {
	for _, text := range syntax {
		if json.Valid([]byte(text)) || strings.TrimSpace(text) == "" {
			continue
		}
		for _, r := range []io.Reader{strings.NewReader(`{"skip":[` + text + `],"items":[]}`), oneByte{strings.NewReader(`{"skip":[` + text + `],"items":[]}`)}} {
			_, err := smallCodec.DecodeList(context.Background(), r, asJSON, pods, listOptions, func(*small) error { return nil })
			require.ErrorIs(t, err, codec.ErrMalformed, "%.100q", text)
		}
	}
}

func TestMalformedErrorSaysWhere(t *testing.T) {
	_, err := smallCodec.DecodeObject(context.Background(), strings.NewReader(`{"metadata":{"name":oops}}`), asJSON, pods)
	require.EqualError(t, err, `codec: malformed answer at byte 20: 'o' where a value should be`)
	_, err = smallCodec.DecodeObject(context.Background(), strings.NewReader(`  {"metadata"`), asJSON, pods)
	require.EqualError(t, err, `codec: malformed answer at byte 13: it ends too early: unexpected EOF`)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	all, err := events(t, podCodec, append(jsonFrame("ADDED", mustJSON(bareMetadata("1", ""))), `{"type":7.}`...), asJSON, pods, podOptions{})
	require.Len(t, all, 1)
	var malformed *codec.MalformedError
	require.ErrorAs(t, err, &malformed)
	require.EqualValues(t, len(jsonFrame("ADDED", mustJSON(bareMetadata("1", ""))))+len(`{"type":`), malformed.Offset)
}
