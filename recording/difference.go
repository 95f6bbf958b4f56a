package recording

import (
	"encoding/binary"
	"errors"
)

// A difference describes a frame by its keyframe. It is a sequence of: the number of bytes that follow as they are,
// these bytes, the number of bytes that are copied from the keyframe, and the number of its bytes that are skipped
// before. Numbers are varints. The last sequence may end before the copy. A copy never begins before the end of the
// one before, so a frame is not longer than its difference and its keyframe together.

var errDifference = errors.New("a difference does not fit its keyframe")

// appendDifferent appends bytes that follow as they are.
func appendDifferent(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// appendCopy appends a copy of n bytes after skip bytes of the keyframe.
func appendCopy(dst []byte, n, skip int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(n)), uint64(skip))
}

// applyDifference appends the frame that a difference describes to dst.
func applyDifference(dst, keyframe, difference []byte) ([]byte, error) {
	number := func(limit int) (int, bool) {
		v, n := binary.Uvarint(difference)
		if n <= 0 || v > uint64(limit) {
			return 0, false
		}
		difference = difference[n:]
		return int(v), true
	}
	for len(difference) > 0 {
		n, ok := number(len(difference))
		if !ok || n > len(difference) {
			return dst, errDifference
		}
		dst, difference = append(dst, difference[:n]...), difference[n:]
		if len(difference) == 0 {
			break
		}
		n, ok = number(len(keyframe))
		skip, found := number(len(keyframe))
		if !ok || !found || n+skip > len(keyframe) {
			return dst, errDifference
		}
		dst = append(dst, keyframe[skip:skip+n]...)
		keyframe = keyframe[skip+n:]
	}
	return dst, nil
}
