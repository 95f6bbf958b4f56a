package warmstart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
)

// sample is a file whose bytes a test changes.
type sample struct {
	*testing.T
	path string
	want header
	seal *sealer
}

func newSample(t *testing.T, key []byte) *sample {
	seal := must.Get(newSealer(key))(t)
	return &sample{t, filepath.Join(t.TempDir(), "file"), header{Format: format, Boot: "boot", Cluster: "test"}, seal}
}

var sampleKey = bytes.Repeat([]byte{7}, 32)

// onSample calls test without a key and with one.
func onSample(t *testing.T, test func(s *sample)) {
	t.Run("without a key", func(t *testing.T) { test(newSample(t, nil)) })
	t.Run("with a key", func(t *testing.T) { test(newSample(t, sampleKey)) })
}

func change(kind kind, version, name, data string) record {
	return record{kind: kind, version: version, key: api.Key{Namespace: "default", Name: name}, data: []byte(data)}
}

// write writes a file of a list and of changes. It returns the bytes, and the end of each frame.
func (s *sample) write(changes ...record) (file []byte, ends []int) {
	s.Helper()
	f := must.Get(createLog(s.path, s.seal))(s)
	payloads := [][]byte{
		s.want.encode(), change(put, "7", "a", "{1}").encode(), change(put, "8", "b", "{1}").encode(),
		record{kind: whole, version: "9"}.encode(),
	}
	for _, r := range changes {
		payloads = append(payloads, r.encode())
	}
	for _, payload := range payloads {
		require.NoError(s, f.append(payload))
		ends = append(ends, int(f.size))
	}
	require.NoError(s, f.close())
	file = must.Get(os.ReadFile(s.path))(s)
	return file, ends
}

// read returns what a process that starts with these bytes would show, or "" if it would list. more are changes that
// this process writes.
func (s *sample) read(file []byte, more ...record) string {
	s.Helper()
	require.NoError(s, os.WriteFile(s.path, file, 0o600))
	state, err := openLog(s.path, s.seal, s.want)
	if err != nil {
		require.ErrorIs(s, err, errMalformed)
		return ""
	}
	defer func() { require.NoError(s, state.file.close()) }()
	for _, r := range more {
		require.NoError(s, state.file.append(r.encode()))
	}
	out := state.version
	for all := state.file.newest(state.index); ; {
		payload, _, err := all.next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(s, err)
		r := must.Get(decodeRecord(payload))(s)
		out += fmt.Sprintf(" %s@%s=%s", r.key.Name, r.version, r.data)
	}
}

// TestDamage flips each bit of a file, cuts it at each byte, and does both. A whole file with a flipped bit leads to a
// list. A file that is cut off in its list does too. Another one leads to the state after its last whole frame, and can
// be continued.
func TestDamage(t *testing.T) {
	onSample(t, func(s *sample) {
		file, ends := s.write(
			change(put, "12", "a", "{2}"), change(reached, "14", "", ""), change(deleted, "15", "b", ""), change(put, "16", "c", "{long}"),
		)
		states := []string{
			"", "", "", "9 a@7={1} b@8={1}", "12 b@8={1} a@12={2}", "14 b@8={1} a@12={2}", "15 a@12={2}", "16 a@12={2} c@16={long}",
		} // after each frame
		for at := range file {
			for bit := range 8 {
				frames := &frames{in: bytes.NewReader(flipped(file, at, bit)), seal: s.seal}
				_, _, err := frames.next()
				if err == nil {
					_, err = scan(frames, &logFile{})
				}
				require.ErrorIs(s, err, errMalformed, "bit %d of byte %d", bit, at)
			}
			require.Empty(s, s.read(flipped(file, at, at%8)), "bit %d of byte %d", at%8, at)
		}
		whole := 0 // frames
		for cut := range len(file) + 1 {
			if whole < len(ends) && cut == ends[whole] {
				whole++
			}
			want := ""
			if whole > 0 {
				want = states[whole-1]
			}
			require.Equal(s, want, s.read(file[:cut]), "cut off after %d bytes", cut)
			if want != "" {
				s.read(file[:cut], change(put, "20", "d", "{3}"))
				continued := must.Get(os.ReadFile(s.path))(s)
				_, objects, _ := strings.Cut(want, " ")
				require.Equal(s, "20 "+objects+" d@20={3}", s.read(continued), "continued after %d bytes", cut)
			}
			if cut > 0 {
				at := cut - 1 - cut%min(cut, 2*frameHead) // mostly in the last frame, and in its head
				got := s.read(flipped(file[:cut], at, cut%8))
				last := whole > 0 && at >= ends[whole-1] // the flipped bit is in the frame that is cut off
				require.True(s, got == "" || last && got == want, "%q: byte %d is changed, and %d bytes are left", got, at, cut)
			}
		}
	})
}

// flipped returns a copy of a file with one other bit.
func flipped(file []byte, at, bit int) []byte {
	out := bytes.Clone(file)
	out[at] ^= 1 << bit
	return out
}

// TestCopiesAreNotMixed has a key, and two files that continue the same file, as a stranger gets them who copies the
// file, cuts it off, and lets the next process continue. A mixture of both leads to a list. So does a mixture of two
// lists.
func TestCopiesAreNotMixed(t *testing.T) {
	s := newSample(t, sampleKey)
	changes := func(data string) []record {
		return []record{change(put, "12", "a", data), change(put, "13", "b", data), change(put, "14", "c", data)}
	}
	one, ends := s.write(changes("{2}")...)
	require.Equal(t, "14 a@12={2} b@13={2} c@14={2}", s.read(one))
	s.read(one[:ends[3]], changes("{3}")...)
	two := must.Get(os.ReadFile(s.path))(t)
	require.Equal(t, "14 a@12={3} b@13={3} c@14={3}", s.read(two))
	three, _ := s.write(changes("{4}")...)
	require.Equal(t, "14 a@12={4} b@13={4} c@14={4}", s.read(three))

	begins := append([]int{0}, ends...)
	for _, other := range [][]byte{two, three} {
		for choice := range 1 << len(ends) {
			mixed := bytes.Clone(one)
			for i := range ends {
				if choice>>i&1 == 1 {
					copy(mixed[begins[i]:ends[i]], other[begins[i]:ends[i]])
				}
			}
			same := bytes.Equal(mixed, one) || bytes.Equal(mixed, other)
			require.Equal(t, same, s.read(mixed) != "", "%07b", choice)
		}
	}
}

// TestAFileThatIsCutOffInUse is cut off while the process writes it. The process does not write a copy, which would
// have its version without its changes.
func TestAFileThatIsCutOffInUse(t *testing.T) {
	onSample(t, func(s *sample) {
		file, ends := s.write(change(put, "12", "a", "{2}"), change(put, "13", "b", "{2}"))
		require.NoError(s, os.WriteFile(s.path, file, 0o600))
		state := must.Get(openLog(s.path, s.seal, s.want))(s)
		for _, cut := range []int{len(file) - 1, ends[4]} {
			require.NoError(s, os.Truncate(s.path, int64(cut)))
			require.ErrorIs(s, must.Err(compacted(state.file, s.path+".new", func(int64) error { return nil })), errMalformed)
			require.NoFileExists(s, s.path+".new")
		}
		require.NoError(s, state.file.append(change(put, "14", "b", "{3}").encode()))
		require.NoError(s, state.file.close())
		file = must.Get(os.ReadFile(s.path))(s)
		require.Empty(s, s.read(file), "a hole instead of a frame")
	})
}
