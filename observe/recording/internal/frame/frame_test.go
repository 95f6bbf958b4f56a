package frame

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFramer divides streams into whole frames, whatever the pieces are.
func TestFramer(t *testing.T) {
	frames := map[bool][]string{
		false: {"{\"a\":1}\n", "{}\n", strings.Repeat("x", 100) + "\n"},
		true:  {"\x00\x00\x00\x03abc", "\x00\x00\x00\x00", "\x00\x00\x00\x0a0123456789"},
	}
	for protobuf, all := range frames {
		stream := strings.Join(all, "")
		for n := 1; n <= len(stream); n++ {
			f := Divider{Watch: true, Protobuf: protobuf}
			var out bytes.Buffer
			for at := 0; at < len(stream); at += n {
				first, whole, err := f.Add([]byte(stream[at:min(at+n, len(stream))]))
				require.NoError(t, err)
				for _, part := range [][]byte{first, whole} {
					out.Write(part)
					end := 0
					for _, frame := range all {
						if end += len(frame); end == out.Len() || out.Len() == 0 {
							end = -1
							break
						}
					}
					require.Equal(t, -1, end, "%d bytes are not whole frames", out.Len())
				}
			}
			require.Equal(t, stream, out.String())
			require.EqualValues(t, len(all), f.Frames)
			require.Empty(t, f.Rest())
		}
	}
	huge := Divider{Watch: true, Protobuf: true}
	_, _, err := huge.Add([]byte("\x7f\xff\xff\xff"))
	require.NoError(t, err)
	_, _, err = huge.Add(make([]byte, MaxSize))
	require.ErrorIs(t, err, ErrTooLarge)
}

// TestKindOfJSON finds the kind in lists and events.
func TestKindOfJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"ownerReferences":[{"kind":"Job"}]}}]}`:                          "Pod",
		`{"apiVersion":"a/v1","items":[{"apiVersion":"a/v1","kind":"AllowList","metadata":{}}],"kind":"AllowListList"}`:             "AllowList",
		`{"apiVersion":"a/v1","items":[{"apiVersion":"a/v1","data":{"kind":"No"},"kind":"Widget"`:                                   "Widget",
		`{"apiVersion":"a/v1","items":[],"kind":"WidgetList","metadata":{}}`:                                                        "Widget",
		`{"kind":"Table","rows":[{"object":{"kind":"PartialObjectMetadata"}}]}`:                                                     "",
		`{"type":"ADDED","object":{"spec":{"kind":"No"},"kind":"Widget"}}`:                                                          "Widget",
		`{"type":"BOOKMARK","object":{"metadata":{}}}` + "\n" + `{"type":"ADDED","object":{"metadata":{},"kind":"Widget","spec":{}`: "Widget",
		`{"kind":"Po`: "",
		`]`:           "",
		``:            "",
	} {
		require.Equal(t, want, jsonKind([]byte(text)), text)
	}
}
