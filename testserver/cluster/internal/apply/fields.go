package apply

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/leatproject/leat/testserver/internal/object"
)

var errFields = errors.New("a set of fields consists of JSON objects only")

// parseFields parses a set of fields in JSON: objects that contain objects. A general decoder would take three times as
// long, and every write parses a set.
func parseFields(data []byte) (object.Tree, error) {
	p := fieldsParser{text: string(data)}
	out, err := p.object()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.at != len(p.text) {
		return nil, errFields
	}
	return out, nil
}

type fieldsParser struct {
	text string
	at   int
}

// object parses one object.
func (p *fieldsParser) object() (object.Tree, error) {
	if !p.take('{') {
		return nil, errFields
	}
	out := object.Tree{}
	if p.take('}') {
		return out, nil
	}
	for {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		if !p.take(':') {
			return nil, errFields
		}
		member, err := p.object()
		if err != nil {
			return nil, err
		}
		out[name] = member
		if p.take('}') {
			return out, nil
		}
		if !p.take(',') {
			return nil, errFields
		}
	}
}

// name parses the name of a member.
func (p *fieldsParser) name() (string, error) {
	if !p.take('"') {
		return "", errFields
	}
	start := p.at
	for end := start; end < len(p.text); end++ {
		switch p.text[end] {
		case '"':
			p.at = end + 1
			return p.text[start:end], nil
		case '\\':
			return p.escapedName(start)
		}
	}
	return "", errFields
}

// escapedName parses a name with escapes, which begins at start.
func (p *fieldsParser) escapedName(start int) (string, error) {
	for end := start; end < len(p.text); end++ {
		switch p.text[end] {
		case '\\':
			end++
		case '"':
			p.at = end + 1
			return unescape(p.text[start:end])
		}
	}
	return "", errFields
}

// unescape decodes the escapes of JSON. Keys of list items have only quotation marks to escape, as a rule.
func unescape(text string) (string, error) {
	simple := strings.ReplaceAll(text, `\"`, `"`)
	if !strings.Contains(simple, `\`) {
		return simple, nil
	}
	var out string
	if err := json.Unmarshal([]byte(`"`+text+`"`), &out); err != nil {
		return "", errFields
	}
	return out, nil
}

func (p *fieldsParser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// take skips white space and one character, if it is the wanted one.
func (p *fieldsParser) take(want byte) bool {
	p.space()
	if p.at < len(p.text) && p.text[p.at] == want {
		p.at++
		return true
	}
	return false
}
