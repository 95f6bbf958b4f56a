package recording

import (
	"bytes"
	"strings"
)

// Payloads returns what is in the blocks of a file, decompressed: the text in which a test searches for secrets.
func Payloads(file []byte) string {
	r := &Reader{from: bytes.NewReader(file), size: int64(len(file)), free: 1 << 30}
	effort := r.effort()
	var all strings.Builder
	for offset := int64(headerSize); ; {
		h, payload, err := r.block(offset, &buffers{}, &effort)
		if err != nil {
			return all.String()
		}
		all.Write(payload)
		offset += blockHeaderSize + int64(h.stored)
	}
}
