package transport_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient/internal/transport"
)

// FuzzInflate compares with gzip.Reader, which returns the same bytes, but later.
func FuzzInflate(f *testing.F) {
	zip := func(texts ...string) []byte {
		var b bytes.Buffer
		for _, text := range texts {
			z := gzip.NewWriter(&b)
			_, _ = io.WriteString(z, text)
			_ = z.Close()
		}
		return b.Bytes()
	}
	f.Add(zip("a", "b"))
	f.Add(zip("some text that compresses to more than thirty bytes")[:30])
	f.Add(append(zip("a"), "more"...))
	f.Add(zip())
	f.Add(zip("", "", "x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, gotErr := io.ReadAll(io.LimitReader(transport.Inflate(io.NopCloser(iotest.OneByteReader(bytes.NewReader(data)))), 1<<20))
		if len(data) == 0 {
			require.NoError(t, gotErr)
			return
		}
		var want []byte
		z, wantErr := gzip.NewReader(bytes.NewReader(data))
		if wantErr == nil {
			want, wantErr = io.ReadAll(io.LimitReader(z, 1<<20))
		}
		require.Equal(t, string(want), string(got))
		require.Equal(t, wantErr == nil, gotErr == nil, "%v %v", wantErr, gotErr)
	})
}
