package jsonplan

import (
	"bytes"
	"strconv"

	"github.com/leatproject/leat/codec/internal/scan"
)

// Check returns the error that Decode would return. A type that keeps everything in a map accepts all JSON except
// numbers beyond float64, so Check only looks for those. An object of any other type is decoded and dropped, because
// its fields may have methods of their own.
func (p *Plan) Check(r *Reader, c scan.Cursor, drop bool) error {
	if p.whole != nil || len(c.Tokens) == 0 || c.Kind() != '{' || hasLargeNumber(c) {
		_, err := p.Decode(r, c, drop)
		return err
	}
	return nil
}

// longNumber is the number of characters from which a number may be too large without an exponent.
const longNumber = 300

// hasLargeNumber reports whether a number in the current object is beyond float64.
func hasLargeNumber(c scan.Cursor) bool {
	for end := c.Behind(); c.K < end; c.K++ {
		t := c.Tokens[c.K]
		first := c.B[t.Start()]
		if first != '-' && (first < '0' || first > '9') {
			continue
		}
		digits := c.B[t.Start():t.To]
		if len(digits) < longNumber && bytes.IndexByte(digits, 'e') < 0 && bytes.IndexByte(digits, 'E') < 0 {
			continue
		}
		if _, err := strconv.ParseFloat(string(digits), 64); err != nil {
			return true
		}
	}
	return false
}
