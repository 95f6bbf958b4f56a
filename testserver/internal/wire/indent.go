package wire

import (
	"net/http"
	"strings"
)

// Indenter indents JSON as json.MarshalIndent does. It keeps no more than what one Write passes, because a fault may
// make a list endless.
type Indenter struct {
	http.ResponseWriter
	From            int // the lowest status of answers that are indented
	begun, json     bool
	depth           int
	quoted, escaped bool // inside of a string, and after a backslash there
	opened          bool // after a bracket; if it is closed at once, no line breaks
	out             []byte
}

// WriteHeader implements http.ResponseWriter.
func (i *Indenter) WriteHeader(code int) {
	i.begin(code)
	i.ResponseWriter.WriteHeader(code)
}

func (i *Indenter) begin(code int) {
	if !i.begun {
		i.begun, i.json = true, code >= i.From && strings.HasPrefix(i.Header().Get("Content-Type"), JSON)
	}
}

// Unwrap serves http.ResponseController.
func (i *Indenter) Unwrap() http.ResponseWriter { return i.ResponseWriter }

// Write implements http.ResponseWriter.
func (i *Indenter) Write(b []byte) (int, error) {
	if i.begin(http.StatusOK); !i.json {
		return i.ResponseWriter.Write(b)
	}
	i.out = i.out[:0]
	for _, c := range b {
		i.add(c)
	}
	if _, err := i.ResponseWriter.Write(i.out); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (i *Indenter) add(c byte) {
	switch {
	case i.quoted:
		i.out = append(i.out, c)
		i.quoted = c != '"' || i.escaped
		i.escaped = c == '\\' && !i.escaped
		return
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return
	}
	closes := c == '}' || c == ']'
	switch {
	case i.opened && !closes:
		i.depth++
		i.breakLine()
	case closes && !i.opened:
		i.depth--
		i.breakLine()
	}
	i.opened = c == '{' || c == '['
	i.quoted = c == '"'
	i.out = append(i.out, c)
	switch c {
	case ',':
		i.breakLine()
	case ':':
		i.out = append(i.out, ' ')
	}
}

func (i *Indenter) breakLine() {
	i.out = append(i.out, '\n')
	for range i.depth {
		i.out = append(i.out, "  "...)
	}
}
