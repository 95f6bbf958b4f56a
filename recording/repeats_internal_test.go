package recording

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// frames returns text as watches send it: objects that differ in some fields.
func frames(n int) []byte {
	random := rand.New(rand.NewPCG(1, 1))
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"type":"MODIFIED","object":{"metadata":{"name":"pod-%d","uid":"%x"},"spec":{%s},"status":{"n":%d}}}`+"\n", i%7, random.Uint64(), strings.Repeat(`"name":"a field that stays",`, 60), i)
	}
	return b.Bytes()
}

func TestRepeats(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	c := Repeats()
	for name, src := range map[string][]byte{
		"empty": {}, "short": []byte("a"), "fifteen": []byte("123456789012345"), "zeros": make([]byte, 100_000), "noise": noise, "frames": frames(200),
		"overlap": bytes.Repeat([]byte("abc"), 10_000), "twice": append(noise[:1000:1000], noise[:1000]...),
	} {
		for n := range 3 { // a Compression is used again
			out := c.Compress([]byte("before"), src)
			require.True(t, bytes.HasPrefix(out, []byte("before")), name)
			back, err := c.Decompress([]byte("head"), out[len("before"):], len(src))
			require.NoError(t, err, "%s %d", name, n)
			require.True(t, bytes.Equal(append([]byte("head"), src...), back), name)
			if len(src) > 0 {
				_, err = c.Decompress(nil, out[len("before"):], len(src)-1)
				require.ErrorIs(t, err, errTooLong, name)
			}
		}
	}
	require.Less(t, len(c.Compress(nil, frames(200))), len(frames(200))/10)
	require.Less(t, len(c.Compress(nil, noise)), len(noise)+100)
}

// FuzzRepeats decompresses arbitrary bytes, and compresses them. No input costs more memory than the limit.
func FuzzRepeats(f *testing.F) {
	f.Add([]byte{}, []byte("abcabcabcabcabcabcabcabcabcabcabc"))
	f.Add(Repeats().Compress(nil, frames(3)), frames(2))
	f.Fuzz(func(t *testing.T, compressed, src []byte) {
		const limit = 1 << 16
		if out, err := Repeats().Decompress(nil, compressed, limit); err == nil {
			require.LessOrEqual(t, len(out), limit)
		}
		back, err := Repeats().Decompress(nil, Repeats().Compress(nil, src), len(src))
		require.NoError(t, err)
		require.True(t, bytes.Equal(src, back))
	})
}

// BenchmarkCompress compresses blocks of events of a pod with different methods. ratio is the compressed part.
func BenchmarkCompress(b *testing.B) {
	src := frames(140)[:256<<10]
	for name, c := range map[string]Compression{"repeats": Repeats(), "flate": Flate()} {
		b.Run(name, func(b *testing.B) {
			var out []byte
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				out = c.Compress(out[:0], src)
			}
			b.ReportMetric(float64(len(out))/float64(len(src)), "ratio")
		})
	}
}
