package zstd_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/leatproject/leat/packed/zstd"
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

// TestBlocks compresses blocks of a recording, and decompresses them on several goroutines, with a limit.
func TestBlocks(t *testing.T) {
	b, err := zstd.NewBlocks()
	if err != nil {
		t.Fatal(err)
	}
	if b.ID() != 2 {
		t.Error("the number of zstd in recordings is 2")
	}
	var all sync.WaitGroup
	for _, text := range append(samples(100), nil, bytes.Repeat([]byte("long "), 1<<16)) {
		packed := b.Compress([]byte("before"), text)[len("before"):]
		all.Go(func() {
			back, err := b.Decompress([]byte("before"), packed, len(text))
			if err != nil || string(back) != "before"+string(text) {
				t.Errorf("%d bytes became %d: %v", len(text), len(back), err)
			}
			if len(text) > 0 {
				if _, err := b.Decompress(nil, packed, len(text)-1); err == nil {
					t.Error("more bytes than the limit were accepted")
				}
			}
		})
	}
	all.Wait()
	for _, wrong := range []string{"no frame", "\x28\xb5\x2f\xfd"} {
		if _, err := b.Decompress(nil, []byte(wrong), 100); err == nil {
			t.Errorf("%q was decompressed", wrong)
		}
	}
}
