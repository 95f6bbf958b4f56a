package frame

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

var validKind = regexp.MustCompile(`^[A-Za-z0-9]+$`)

// Kind returns the kind of the objects in an answer that begins with head; empty if head does not have it.
func Kind(head []byte, watch, protobuf bool) (name string) {
	switch {
	case !protobuf:
		name = jsonKind(head)
	case watch:
		name = protobufKind(head)
	default:
		name = kindOfList(protobufKind(head))
	}
	if name == "Status" || !validKind.MatchString(name) {
		return ""
	}
	return name
}

// kindOfList returns the kind of the items of a list; empty if the kind is not that of a list.
func kindOfList(kind string) string {
	name, ok := strings.CutSuffix(kind, "List")
	if !ok {
		return ""
	}
	return name
}

// jsonKind returns the kind of the first object of an event, of the first item of a list, or the kind that the list
// names, whichever comes first. A server writes the kind of a list of custom resources behind the items.
func jsonKind(head []byte) (name string) {
	d := json.NewDecoder(bytes.NewReader(head))
	found := func(path, text string) bool {
		switch path {
		case ".object.kind", ".items.kind":
			name = text
		case ".kind":
			name = kindOfList(text)
		}
		return name != ""
	}
	for !walkJSON(d, "", found) { // one event after the other
	}
	return name
}

// walkJSON calls found with the texts of a value and their paths, without the positions in arrays. It returns true when
// found does, or at the end of the bytes.
func walkJSON(d *json.Decoder, path string, found func(path, text string) bool) (over bool) {
	token, err := d.Token()
	if err != nil {
		return true
	}
	switch token := token.(type) {
	case string:
		return found(path, token)
	case json.Delim:
		for d.More() {
			below := path
			if token == '{' {
				name, err := d.Token()
				if err != nil {
					return true
				}
				below += fmt.Sprintf(".%s", name)
			}
			if walkJSON(d, below, found) {
				return true
			}
		}
		_, err := d.Token() // the end of the value
		return err != nil
	}
	return false
}

// protobufKind returns the kind in the first envelope: the magic number, and the message Unknown, which begins with a
// message of the version and the kind.
func protobufKind(b []byte) string {
	_, b, ok := bytes.Cut(b, []byte("k8s\x00\n"))
	if !ok || len(b) < 3 || b[1] != '\n' || len(b) < 3+int(b[2])+2 {
		return ""
	}
	b = b[3+int(b[2]):]
	if b[0] != 0x12 || len(b) < 2+int(b[1]) {
		return ""
	}
	return string(b[2 : 2+int(b[1])])
}
