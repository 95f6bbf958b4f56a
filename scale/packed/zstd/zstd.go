package zstd

import (
	"fmt"

	"github.com/klauspost/compress/dict"
	"github.com/klauspost/compress/zstd"
)

const (
	// dictionarySize is the size of a dictionary. With 64 KB, a Pod takes half as much as without a dictionary.
	dictionarySize = 64 << 10
	// maxObject bounds the decoded size of one object. It is the limit of package codec.
	maxObject = 16 << 20
)

// Train returns functions that compress and decompress objects like the samples, with a dictionary that is made of
// them. Both append to dst. compress is for one goroutine at a time, decompress is safe for concurrent use. If the
// samples have too little in common for a dictionary, Train returns an error.
func Train(samples [][]byte) (compress func(dst, src []byte) []byte, decompress func(dst, src []byte) ([]byte, error), err error) {
	dictionary, err := build(samples)
	if err != nil {
		return nil, nil, fmt.Errorf("zstd: make a dictionary of %d objects: %w", len(samples), err)
	}
	encoder, err := zstd.NewWriter(nil,
		zstd.WithEncoderDict(dictionary), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(128<<10), zstd.WithSingleSegment(true))
	if err != nil {
		return nil, nil, fmt.Errorf("zstd: %w", err)
	}
	decoder, err := zstd.NewReader(nil,
		zstd.WithDecoderDicts(dictionary), zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxObject))
	if err != nil {
		return nil, nil, fmt.Errorf("zstd: %w", err)
	}
	compress = func(dst, src []byte) []byte {
		if len(src) > maxObject {
			return append(dst, src...) // it is kept as it is, because decompress would refuse it
		}
		return encoder.EncodeAll(src, dst)
	}
	decompress = func(dst, src []byte) ([]byte, error) { return decoder.DecodeAll(src, dst) }
	return compress, decompress, nil
}

// build makes a dictionary. The library panics for some samples that have too little in common.
func build(samples [][]byte) (dictionary []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return dict.BuildZstdDict(samples, dict.Options{MaxDictSize: dictionarySize, HashBytes: 6, ZstdLevel: zstd.SpeedDefault})
}
