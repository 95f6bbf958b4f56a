package object

import (
	"encoding/json"
	"strconv"
)

// Member is a member of a tree that is still a Go value. The trees of a write have Members only where the caller agreed
// to them, because such a member is neither a map nor a list. A Member must not be used after its Go value changes.
type Member interface {
	// AppendJSON appends what encoding/json would write for the stored member.
	AppendJSON(dst []byte) ([]byte, error)
	// Text returns the text of the value at a path, as TextAt does.
	Text(path ...string) string
}

// AppendText appends a string as encoding/json writes it.
func AppendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			encoded, _ := json.Marshal(s) // strings cannot fail
			return append(dst, encoded...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// AppendValue appends a value of a tree as encoding/json writes it.
func AppendValue(dst []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return AppendText(dst, v), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	}
	encoded, err := json.Marshal(value)
	return append(dst, encoded...), err
}
