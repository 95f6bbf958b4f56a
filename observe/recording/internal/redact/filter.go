package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash"
	"strings"
)

// Mark is the beginning of every text that stands for a redacted one. The whole text is valid base64.
const Mark = "cmVkYWN0ZWQ6" // base64 of "redacted:"

// hashedBytes are the bytes of a hash in a text. Equal texts have equal hashes; different texts have equal ones
// with a chance of 2^-96.
const hashedBytes = 12

// Filter copies JSON and replaces the values at some paths by keyed hashes. It reads a stream piece by piece and keeps
// nothing but the name of the current member. It belongs to one goroutine.
type Filter struct {
	mac   hash.Hash
	out   []byte
	stack []level
	err   error

	state   filterState
	escape  bool // the last byte of a string was a backslash
	name    []byte
	literal []byte
	value   matched // of the value that comes next, or that is being read
}

// level is an object or an array that is open.
type level struct {
	array bool
	matched
}

// matched says which paths lead to a value.
type matched struct {
	branches           []branch
	below              uint64 // a bit for each tree in which the value is redacted, or is below a redacted field
	hash, remove, mark bool
	begins             byte
}

// branch is a field of one of the trees of paths.
type branch struct {
	*field
	tree   uint64 // the bit of the tree
	folded bool   // the name has another case than in the path
}

// add adds a tree that leads from the value.
func (m *matched) add(root *field) {
	m.branches = append(m.branches, branch{field: root, tree: 1 << len(m.branches)})
}

type filterState byte

const (
	atValue   filterState = iota // before a value
	inString                     // inside of a text that is a value
	inLiteral                    // inside of a number, true, false or null
	atName                       // before the name of a member
	inName                       // inside of it
	atColon                      // behind it
	behind                       // behind a value
)

// errForm means that an answer is not JSON, or has not the form of a list or a watch, so that the filter does not know
// where the values are.
var errForm = errors.New("the answer is not a list or a watch in JSON")

// envelope are the members around objects that stay: the kind, the version and the place of a list, and the type of a
// frame. All others are replaced.
var envelope = []string{
	"kind", "apiVersion", "type", "metadata.resourceVersion", "metadata.continue", "metadata.remainingItemCount",
	"metadata.selfLink",
}

const maxDepth = 1000

// NewFilter returns a filter of lists, watches and tables, whose objects have the paths below roots. It has the paths
// of all of them, because only the server decides what it sends. The cells of a table may repeat redacted values: all
// of them are replaced. So is each member around the objects that the envelope does not name, because a server or a
// proxy may put an object there.
func NewFilter(roots Roots, mac hash.Hash) *Filter {
	f := &Filter{mac: mac}
	for _, root := range roots {
		inside := &field{below: root.below, open: true, begins: '{'}
		items := &field{below: root.below, open: true, begins: '['}
		table := &field{below: map[string]*field{"object": inside, "*": {hash: true}}, open: true, begins: '['}
		top := &field{below: map[string]*field{"items": items, "object": inside, "rows": table, "*": {hash: true}}}
		for _, name := range envelope {
			top.at(strings.Split(name, ".")).keep = true
		}
		f.value.add(top)
		within := &field{below: map[string]*field{"object": root, "cells": {hash: true}}} // an object may have rows of its own
		f.value.add(&field{below: map[string]*field{"object": {below: map[string]*field{"rows": within}}}})
	}
	f.value.begins = '{'
	f.stack = append(f.stack, level{array: true, matched: f.value}) // the stream, as if it were an array of values
	return f
}

// Copy returns the redacted form of the next piece. It is valid until the next call.
func (f *Filter) Copy(piece []byte) ([]byte, error) {
	f.out = f.out[:0]
	for len(piece) > 0 && f.err == nil {
		if n := f.run(piece); n > 0 {
			f.some(piece[:n])
			piece = piece[n:]
			continue
		}
		f.step(piece[0])
		piece = piece[1:]
	}
	return f.out, f.err
}

// run returns the number of bytes that belong to the text that is being read and do not change the state.
func (f *Filter) run(piece []byte) int {
	if f.state != inString || f.escape {
		return 0
	}
	n := 0
	for n < len(piece) && piece[n] != '"' && piece[n] != '\\' {
		n++
	}
	return n
}

// some reads bytes of a text.
func (f *Filter) some(b []byte) {
	switch {
	case f.value.remove:
	case f.value.hash:
		_, _ = f.mac.Write(b) // a hash does not fail
	default:
		f.out = append(f.out, b...)
	}
}

// step reads one byte.
func (f *Filter) step(c byte) {
	switch f.state {
	case inString:
		f.text(c)
		return
	case inName:
		f.nameByte(c)
		return
	case inLiteral:
		if isLiteral(c) {
			f.literalByte(c)
			return
		}
		f.endLiteral()
	}
	if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
		f.emit(c)
		return
	}
	switch f.state {
	case atValue:
		f.begin(c)
	case atName:
		f.beginName(c)
	case atColon:
		f.require(c == ':')
		f.emit(c)
		f.state = atValue
	case behind:
		f.separator(c)
	}
}

// emit copies a byte, unless it belongs to a value that is removed.
func (f *Filter) emit(c byte) {
	if !f.top().remove {
		f.out = append(f.out, c)
	}
}

func (f *Filter) top() *level { return &f.stack[len(f.stack)-1] }

func (f *Filter) require(ok bool) {
	if !ok && f.err == nil {
		f.err = errForm
	}
}

// begin reads the first byte of a value.
func (f *Filter) begin(c byte) {
	if c == ']' && f.top().array && len(f.stack) > 1 { // an empty array, or one that ends with a comma
		f.end(c)
		return
	}
	if f.value.remove && !f.top().remove {
		f.out = append(f.out, "null"...)
	}
	hidden := f.value.remove
	f.require(f.value.begins == 0 || c == f.value.begins || c == 'n' && len(f.stack) > 1) // null has no values
	if c == '[' && f.value.begins == '[' {
		f.value.begins = '{' // of each item
	}
	switch {
	case c == '{' || c == '[':
		f.require(len(f.stack) < maxDepth)
		if !hidden {
			f.out = append(f.out, c)
		}
		f.value.hash = f.value.below != 0 // only a text or a number can be a part of the identity
		f.stack = append(f.stack, level{array: c == '[', matched: f.value})
		if f.state = atName; c == '[' {
			f.state = atValue
		}
	case c == '"':
		f.state = inString
		if f.value.hash {
			f.mac.Reset()
		} else if !hidden {
			f.out = append(f.out, c)
		}
	case isLiteral(c):
		f.state, f.literal = inLiteral, f.literal[:0]
		f.literalByte(c)
	default:
		f.require(false)
	}
}

// text reads a byte of a text.
func (f *Filter) text(c byte) {
	if c == '"' && !f.escape {
		switch {
		case f.value.remove:
		case f.value.hash:
			sum := f.mac.Sum(nil)
			if f.value.mark && bytes.Equal(sum, f.hashOf("true")) {
				f.out = append(f.out, `"true"`...)
				break
			}
			f.out = append(f.out, '"')
			f.out = appendMarked(f.out, sum)
			f.out = append(f.out, '"')
		default:
			f.out = append(f.out, c)
		}
		f.state = behind
		return
	}
	f.escape = c == '\\' && !f.escape
	f.some([]byte{c})
}

// appendMarked appends the text that stands for a redacted one with a hash.
func appendMarked(dst, sum []byte) []byte {
	return base64.StdEncoding.AppendEncode(dst, append([]byte("redacted:"), sum[:hashedBytes]...))
}

func (f *Filter) hashOf(text string) []byte { return hashOf(f.mac, text) }

func hashOf(mac hash.Hash, text string) []byte {
	mac.Reset()
	_, _ = mac.Write([]byte(text)) // as above
	return mac.Sum(nil)
}

func isLiteral(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// maxLiteral bounds a number. Those of objects have at most 20 digits.
const maxLiteral = 1 << 10

func (f *Filter) literalByte(c byte) {
	f.require(len(f.literal) < maxLiteral)
	f.literal = append(f.literal, c)
}

// endLiteral replaces a number by another one, and a truth value by false. A word without quotes is not JSON; it may be
// a part of a value.
func (f *Filter) endLiteral() {
	f.state = behind
	if f.require(json.Valid(f.literal)); f.err != nil || f.value.remove {
		return
	}
	if !f.value.hash {
		f.out = append(f.out, f.literal...)
		return
	}
	switch text := string(f.literal); text {
	case "null":
		f.out = append(f.out, text...)
	case "true", "false":
		f.out = append(f.out, "false"...)
	default:
		n := binary.BigEndian.Uint32(f.hashOf(text)) >> 1
		b, _ := json.Marshal(n) // a number can always be encoded
		f.out = append(f.out, b...)
	}
}

// beginName reads the quote before a name, or the end of an empty object.
func (f *Filter) beginName(c byte) {
	if c == '}' {
		f.end(c)
		return
	}
	f.require(c == '"')
	f.emit(c)
	f.state, f.name = inName, append(f.name[:0], '"')
}

// maxName bounds the names that are compared with paths. A longer name is in no path.
const maxName = 64 << 10

func (f *Filter) nameByte(c byte) {
	f.emit(c)
	if len(f.name) < maxName {
		f.name = append(f.name, c)
	}
	if c == '"' && !f.escape {
		f.state = atColon
		f.value = f.top().member(f.name)
		return
	}
	f.escape = c == '\\' && !f.escape
}

// member returns which paths lead to a member, whose name is in quotes.
func (l *level) member(quoted []byte) matched {
	if len(l.branches) == 0 {
		return l.at("")
	}
	name := string(quoted[1 : len(quoted)-1])
	for _, c := range quoted {
		if c == '\\' {
			_ = json.Unmarshal(quoted, &name) // otherwise the name is in no path
			break
		}
	}
	m := l.at(name)
	for _, p := range m.branches {
		if p.field.hash && m.hash && !p.folded {
			p.hits.Add(1)
		}
	}
	return m
}

// at returns which paths lead to a member. A tree that keeps the member does not keep it from the other trees. A name
// in another case than in a path is redacted as the path is, because many decoders take it for the same field. It is
// not kept.
func (m *matched) at(name string) matched {
	out := matched{below: m.below, remove: m.remove}
	kept, opened := uint64(0), uint64(0)
	for _, p := range m.branches {
		for _, wanted := range []string{name, "*"} {
			below := p.field.below[wanted]
			if below == nil {
				continue
			}
			out.branches = append(out.branches, branch{field: below, tree: p.tree})
			out.remove, out.mark = out.remove || below.remove, out.mark || below.mark
			out.begins = max(out.begins, below.begins)
			if below.hash {
				out.below |= p.tree
			}
			if below.keep {
				kept |= p.tree
			}
			if below.open {
				opened |= p.tree
			}
		}
		for wanted, below := range p.field.below {
			if wanted != name && strings.EqualFold(wanted, name) {
				out.branches = append(out.branches, branch{field: below, tree: p.tree, folded: true})
				out.remove = out.remove || below.remove
				if below.hash {
					out.below |= p.tree
				}
			}
		}
	}
	out.below &^= opened
	out.hash = out.below&^kept != 0
	return out
}

// separator reads the byte behind a value: another value follows, or the object or array ends.
func (f *Filter) separator(c byte) {
	switch {
	case c == '}' || c == ']':
		f.end(c)
	case len(f.stack) == 1: // the next frame
		f.value, f.state = f.top().matched, atValue
		f.begin(c)
	default:
		f.require(c == ',')
		f.emit(c)
		if f.state = atName; f.top().array {
			f.value, f.state = f.top().matched, atValue
		}
	}
}

// end reads the end of an object or array.
func (f *Filter) end(c byte) {
	f.require(len(f.stack) > 1 && f.top().array == (c == ']'))
	if f.err != nil {
		return
	}
	f.emit(c)
	f.stack = f.stack[:len(f.stack)-1]
	f.state = behind
	f.value = matched{}
}
