package wireplan

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrWire is the error of bytes that are not a message.
var ErrWire = errors.New("bad wire format of protobuf")

// wireValue is the value after a tag on the wire.
type wireValue struct {
	typ    protowire.Type
	number uint64 // of a varint or a fixed number
	bytes  []byte // of a string, of bytes or of a message; aliases the answer
}

// consumeTag is protowire.ConsumeTag, faster for the field numbers that are most frequent.
func consumeTag(b []byte) (protowire.Number, protowire.Type, int) {
	if len(b) > 0 && 8 <= b[0] && b[0] < 0x80 {
		return protowire.Number(b[0] >> 3), protowire.Type(b[0] & 7), 1
	}
	return protowire.ConsumeTag(b)
}

// shortField returns the size of the first field of a message if it is a string, bytes or a message, and its tag and
// its length take one byte each. Otherwise it returns 0. Most fields are short, and this function is inlined.
func shortField(b []byte) int {
	if len(b) > 2 && b[0]&7 == byte(protowire.BytesType) && 8 < b[0] && b[0] < 0x80 && int(b[1]) < min(len(b)-1, 0x80) {
		return 2 + int(b[1])
	}
	return 0
}

// skipValueOf is protowire.ConsumeFieldValue, faster for the most frequent wire type.
func skipValueOf(number protowire.Number, typ protowire.Type, b []byte) int {
	if typ == protowire.BytesType {
		_, n := consumeBytes(b)
		return n
	}
	return protowire.ConsumeFieldValue(number, typ, b)
}

// consumeValue reads the value after a tag. It rejects groups.
func consumeValue(typ protowire.Type, b []byte) (x wireValue, n int) {
	x.typ = typ
	switch typ {
	case protowire.BytesType:
		x.bytes, n = consumeBytes(b)
	case protowire.VarintType:
		x.number, n = protowire.ConsumeVarint(b)
	case protowire.Fixed64Type:
		x.number, n = protowire.ConsumeFixed64(b)
	case protowire.Fixed32Type:
		var word uint32
		word, n = protowire.ConsumeFixed32(b)
		x.number = uint64(word)
	default:
		n = -1
	}
	return x, n
}

// consumeBytes is protowire.ConsumeBytes, faster for short values.
func consumeBytes(b []byte) ([]byte, int) {
	if len(b) > 0 && b[0] < 0x80 && len(b) > int(b[0]) {
		n := 1 + int(b[0])
		return b[1:n], n
	}
	return protowire.ConsumeBytes(b)
}

// want checks the wire type of a value.
func (x wireValue) want(typ protowire.Type) error {
	if x.typ != typ {
		return fmt.Errorf("the wire type %d where %d should be: %w", x.typ, typ, ErrWire)
	}
	return nil
}

// Ended is the number of the field behind the last one.
const Ended = -1

// Field returns the first field of a message that is a string, bytes or a message, and the fields behind it. It skips
// numbers. If the wire format is broken, Field returns the number 0, as the last field. All fields of a message are
//
//	for number, value, rest := Field(message); number != Ended; number, value, rest = Field(rest) {
//
// This is faster than an iterator or a struct with a method, and a tenth of the code of an iterator, which is inlined.
func Field(message []byte) (number protowire.Number, value, rest []byte) {
	for b := message; len(b) > 0; {
		if n := shortField(b); n > 0 {
			return protowire.Number(b[0] >> 3), b[2:n], b[n:]
		}
		number, typ, n := consumeTag(b)
		if n < 0 {
			return 0, nil, nil
		}
		b = b[n:]
		if typ == protowire.BytesType {
			if value, n = consumeBytes(b); n < 0 {
				return 0, nil, nil
			}
			return number, value, b[n:]
		}
		if n = protowire.ConsumeFieldValue(number, typ, b); n < 0 {
			return 0, nil, nil
		}
		b = b[n:]
	}
	return Ended, nil, nil
}
