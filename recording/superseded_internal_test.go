package recording

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/codec"
)

// TestSupersededFramesDoNotMatter forgets segments with random changes, with and without their superseded frames. The
// state is the same; much less is stored.
func TestSupersededFramesDoNotMatter(t *testing.T) {
	for seed := range uint64(8) {
		w := newWatched(t, seed, []string{typeJSON, typeProtobuf}[seed%2], seed%4 == 0)
		sink, err := newRingSink(RingOptions{Dir: t.TempDir(), MaxAge: 1 << 60, MaxBytes: 1 << 40}, &atomic.Uint64{}, &atomic.Uint64{})
		require.NoError(t, err)
		for id := range uint64(2) {
			sink.opened(&Stream{ID: id + 1, At: start, Version: "v1", Plural: "pods", Namespace: fmt.Sprint(id), Code: 200, ContentType: w.contentType, Watch: true})
		}
		for range 100 {
			var frames [][]byte
			for range 1 + w.IntN(5) {
				frames = append(frames, w.change())
			}
			sink.data(1+w.Uint64N(2), start, bytes.Join(frames, nil))
		}
		for id := range uint64(2) { // the answers end inside of a frame
			frame := w.change()
			sink.data(id+1, start, frame[:len(frame)-20])
		}
		require.NoError(t, sink.flush())
		path, old := sink.current().path, sink.current().old
		var states [2]map[string]string
		var sizes [2]int64
		for i, old := range []*superseded{old, {}} {
			b, err := newBase(t.TempDir())
			require.NoError(t, err)
			require.NoError(t, b.fold(path, old))
			states[i], sizes[i] = map[string]string{}, b.size
			for _, sc := range b.loader.scopes {
				states[i][sc.stream.Namespace+" version"] = sc.version
			}
			b.each(func(sc *scopeState, p *codec.Packed) {
				object, err := b.bytes(nil, b.places[number(p)])
				require.NoError(t, err)
				states[i][sc.stream.Namespace+" "+p.GetName()] = string(object)
			})
			require.NoError(t, b.close())
		}
		require.Equal(t, states[1], states[0])
		require.Greater(t, len(states[0]), 12)
		if !w.custom || w.contentType == typeProtobuf { // otherwise annotations precede the name
			require.Less(t, sizes[0], sizes[1]/2)
		}
		require.NoError(t, sink.close())
	}
}

// TestSupersededFramesOfOtherNamespaces has objects without UIDs, which some servers have.
func TestSupersededFramesOfOtherNamespaces(t *testing.T) {
	for _, contentType := range []string{typeJSON, typeProtobuf} {
		w := newWatched(t, 1, contentType, false)
		stream := &Stream{ID: 1, ContentType: contentType, Watch: true}
		s := newSuperseded()
		var frames [2][]byte
		for i := range frames {
			pod := w.pods[0]
			pod.Namespace, pod.UID = fmt.Sprint("ns-", i), ""
			frames[i] = []byte(fmt.Sprintf(`{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"ns-%d","uid":"","x":1}}}`+"\n", i))
			if contentType == typeProtobuf {
				frames[i] = w.protobuf(pod)
			}
			s.note(stream, frames[i], false)
		}
		left, _ := s.matters(nil, stream, frames[0], 0)
		require.Equal(t, frames[0], left, contentType)
	}
}

// TestSupersededFramesAreCounted numbers frames in records of any size, also those that are not looked at.
func TestSupersededFramesAreCounted(t *testing.T) {
	s := newSuperseded()
	stream := &Stream{ID: 1, ContentType: typeJSON, Watch: true}
	random := rand.New(rand.NewPCG(1, 1))
	frame := func(n int) string {
		return fmt.Sprintf(`{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","uid":"%d","resourceVersion":"1"}}}`+"\n", n)
	}
	var records []string
	last := map[int]int{}
	var all []int
	for range 200 {
		record, matter := "", random.IntN(4) == 0
		for range 1 + random.IntN(4) {
			n := random.IntN(30)
			record += frame(n)
			if all = append(all, n); !matter {
				last[n] = len(all) - 1
			} else {
				all[len(all)-1] = -1 - n
			}
		}
		records = append(records, record)
		s.note(stream, []byte(record), matter)
	}
	got, want, n := "", "", 0
	for _, record := range records {
		var frames []byte
		frames, n = s.matters(nil, stream, []byte(record), n)
		got += string(frames)
	}
	for i, n := range all {
		if n < 0 {
			want += frame(-1 - n)
		} else if last[n] == i {
			want += frame(n)
		}
	}
	require.Equal(t, want, got)
	require.Equal(t, len(all), n)
}
