package zstd_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/leatproject/leat/scale/packed/zstd"
)

// samples are n texts that have much in common.
func samples(n int) (all [][]byte) {
	for i := range n {
		all = append(all, []byte(fmt.Sprintf(
			`{"name":"web-%d","uid":"%08x-0000-4000","image":"registry.example.com/team/web:v1.27.%d","node":"node-%d","phase":"Running"}`,
			i, i*7919, i%9, i%100)))
	}
	return all
}

// TestRoundTrip compresses the samples and other texts, and decompresses on many goroutines.
func TestRoundTrip(t *testing.T) {
	compress, decompress, err := zstd.Train(samples(512))
	if err != nil {
		t.Fatal(err)
	}
	plain, compressed := 0, 0
	var all sync.WaitGroup
	for _, text := range append(samples(1000), nil, []byte("x"), bytes.Repeat([]byte("long "), 1<<16)) {
		packed := compress([]byte("before"), text)[len("before"):]
		plain, compressed = plain+len(text), compressed+len(packed)
		all.Go(func() {
			back, err := decompress([]byte("before"), packed)
			if err != nil || string(back) != "before"+string(text) {
				t.Errorf("%d bytes became %d: %v", len(text), len(back), err)
			}
		})
	}
	all.Wait()
	if compressed*2 > plain {
		t.Errorf("%d bytes of %d", compressed, plain)
	}
}

// TestMalformed decompresses what is no frame, and half of one.
func TestMalformed(t *testing.T) {
	compress, decompress, err := zstd.Train(samples(512))
	if err != nil {
		t.Fatal(err)
	}
	frame := compress(nil, samples(1)[0])
	for _, b := range [][]byte{[]byte("no frame"), frame[:len(frame)/2]} {
		if _, err := decompress(nil, b); err == nil {
			t.Errorf("%q was decompressed", b)
		}
	}
}

// TestPoorSamples has samples that make no dictionary.
func TestPoorSamples(t *testing.T) {
	for _, poor := range [][][]byte{nil, {nil}, {[]byte("a")}, {[]byte("a"), []byte("b")}} {
		if _, _, err := zstd.Train(poor); err == nil {
			t.Errorf("a dictionary of %q", poor)
		}
	}
}
