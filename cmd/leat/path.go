package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/await"
	"github.com/leatproject/leat/internal/quote"
)

// jsonPath selects fields of an object. It supports the part of JSONPath (RFC 9535, and kubectl's notation) that
// selects values without computing any:
//
//	.status.phase                                        members; braces around the path and a $ before it are allowed
//	.metadata.labels.app\.kubernetes\.io/name            a name with dots, or ['app.kubernetes.io/name']
//	.spec.containers[0].image, [-1]                      an item, counted from the beginning or the end
//	.spec.containers[*].image                            all items, or all members
//	.status.conditions[?(@.type=="Ready")].status        the items with a member that has the given value
//
// The zero jsonPath selects the object itself.
type jsonPath struct {
	text  string
	steps []pathStep
}

// pathStep appends the values that it selects in v.
type pathStep func(v any, found []any) []any

// parsePath parses a path. Its error names the position.
func parsePath(text string) (jsonPath, error) {
	p := pathParser{text: text, end: len(text)}
	wrong := func(at int, err error) error { return fmt.Errorf("path %q at byte %d: %w", text, at, err) }
	if strings.HasPrefix(text, "{") {
		if !strings.HasSuffix(text, "}") {
			return jsonPath{}, wrong(len(text), errors.New("the closing brace is missing"))
		}
		p.at, p.end = 1, len(text)-1
	}
	start := p.at
	p.accept("$")
	var steps []pathStep
	for p.at < p.end {
		s, err := p.step(p.at == start)
		if err != nil {
			return jsonPath{}, wrong(p.at, err)
		}
		steps = append(steps, s)
	}
	if len(steps) == 0 {
		return jsonPath{}, wrong(p.at, errors.New("the path is empty"))
	}
	return jsonPath{text: "{" + text[start:p.end] + "}", steps: steps}, nil
}

// String returns the path in braces.
func (p jsonPath) String() string { return p.text }

// values returns the values that the path selects in a JSON object, in the form of package unstructured. There may be
// several if the path has a wildcard. Null counts as no value.
func (p jsonPath) values(object map[string]any) []any { return follow(p.steps, object) }

func follow(steps []pathStep, from any) []any {
	found := []any{from}
	for _, s := range steps {
		var next []any
		for _, v := range found {
			next = s(v, next)
		}
		found = next
	}
	return found
}

func member(name string) pathStep {
	return func(v any, found []any) []any {
		m, _ := v.(map[string]any)
		if value := m[name]; value != nil {
			found = append(found, value)
		}
		return found
	}
}

func item(index int) pathStep {
	return func(v any, found []any) []any {
		list, _ := v.([]any)
		i := index
		if i < 0 {
			i += len(list)
		}
		if i >= 0 && i < len(list) && list[i] != nil {
			found = append(found, list[i])
		}
		return found
	}
}

// everything selects all items of a list, in order, or all members of an object, in no particular order.
func everything(v any, found []any) []any {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if item != nil {
				found = append(found, item)
			}
		}
	case map[string]any:
		for _, value := range v {
			if value != nil {
				found = append(found, value)
			}
		}
	}
	return found
}

// having selects the items for which a path below them selects the given value.
func having(beneath []pathStep, want string) pathStep {
	return func(v any, found []any) []any {
		list, _ := v.([]any)
		for _, item := range list {
			for _, value := range follow(beneath, item) {
				if have, err := scalar(value); err == nil && have == want {
					found = append(found, item)
					break
				}
			}
		}
		return found
	}
}

// pathParser reads text[at:end].
type pathParser struct {
	text    string
	at, end int
}

func (p *pathParser) rest() string { return p.text[p.at:p.end] }

// accept skips the given text if it comes next.
func (p *pathParser) accept(what string) bool {
	if !strings.HasPrefix(p.rest(), what) {
		return false
	}
	p.at += len(what)
	return true
}

func (p *pathParser) expect(what string) error {
	if !p.accept(what) {
		return fmt.Errorf("%q is missing", what)
	}
	return nil
}

// step reads the next step. The dot may be missing before the first step.
func (p *pathParser) step(first bool) (pathStep, error) {
	switch {
	case p.accept("["):
		return p.bracket()
	case p.accept(".."):
		return nil, errors.New("descent to any depth is not supported")
	case p.accept("."), first:
		if p.accept("*") {
			return everything, nil
		}
		name, err := p.name()
		return member(name), err
	default:
		return nil, errors.New("a dot or a bracket is missing")
	}
}

// name reads a member's name. A backslash removes the special meaning of the next byte.
func (p *pathParser) name() (string, error) {
	var b strings.Builder
	for p.at < p.end {
		c := p.text[p.at]
		if c == '\\' && p.at+1 < p.end {
			p.at++
			c = p.text[p.at]
		} else if strings.IndexByte(".[](){}=?@*'\" \\", c) >= 0 {
			break
		}
		b.WriteByte(c)
		p.at++
	}
	if b.Len() == 0 {
		return "", errors.New("a name is missing")
	}
	return b.String(), nil
}

// bracket reads the text after an opening bracket.
func (p *pathParser) bracket() (pathStep, error) {
	var s pathStep
	switch {
	case p.accept("*"):
		s = everything
	case p.accept("?("):
		return p.filter()
	case strings.HasPrefix(p.rest(), "'"), strings.HasPrefix(p.rest(), `"`):
		name, err := p.quoted()
		if err != nil {
			return nil, err
		}
		s = member(name)
	default:
		digits := p.rest()[:max(0, strings.IndexByte(p.rest(), ']'))]
		index, err := strconv.Atoi(digits)
		if err != nil {
			return nil, errors.New("an index, a name in quotes, * or a filter is missing")
		}
		p.at += len(digits)
		s = item(index)
	}
	return s, p.expect("]")
}

// filter reads @.type=="Ready")].
func (p *pathParser) filter() (pathStep, error) {
	if err := p.expect("@"); err != nil {
		return nil, err
	}
	var beneath []pathStep
	for strings.HasPrefix(p.rest(), ".") || strings.HasPrefix(p.rest(), "[") {
		s, err := p.step(false)
		if err != nil {
			return nil, err
		}
		beneath = append(beneath, s)
	}
	p.spaces()
	if err := p.expect("=="); err != nil {
		return nil, fmt.Errorf("a filter needs ==: %w", err)
	}
	p.spaces()
	want, err := p.literal()
	if err != nil {
		return nil, err
	}
	p.spaces()
	return having(beneath, want), p.expect(")]")
}

func (p *pathParser) spaces() {
	for p.accept(" ") {
	}
}

// literal reads the value of a filter: a text in quotes, a number, true or false.
func (p *pathParser) literal() (string, error) {
	if strings.HasPrefix(p.rest(), "'") || strings.HasPrefix(p.rest(), `"`) {
		return p.quoted()
	}
	word := p.rest()
	if end := strings.IndexAny(word, " )"); end >= 0 {
		word = word[:end]
	}
	if _, err := strconv.ParseFloat(word, 64); err != nil && word != "true" && word != "false" {
		return "", errors.New("a value to compare with is missing: a text in quotes, a number, true or false")
	}
	p.at += len(word)
	return word, nil
}

// quoted reads a text in single or double quotes. A backslash removes the special meaning of the next byte.
func (p *pathParser) quoted() (string, error) {
	mark := p.text[p.at]
	var b strings.Builder
	for i := p.at + 1; i < p.end; i++ {
		switch c := p.text[i]; {
		case c == '\\' && i+1 < p.end:
			i++
			b.WriteByte(p.text[i])
		case c == mark:
			p.at = i + 1
			return b.String(), nil
		default:
			b.WriteByte(c)
		}
	}
	return "", errors.New("the closing quote is missing")
}

// hasValue waits until a field has a value, compared as text: "Running", "3", "true". If the path selects several
// values, as a wildcard does, there must be at least one, and all of them must be equal to the value. If the path
// selects an object or a list, the wait ends with an error.
func hasValue(path jsonPath, value string) await.Condition[*unstructured.Unstructured] {
	return await.Condition[*unstructured.Unstructured]{
		Name: path.String() + "=" + value,
		Met: func(object *unstructured.Unstructured, exists bool) (bool, error) {
			if !exists {
				return false, nil
			}
			found := path.values(object.Object)
			for _, v := range found {
				have, err := scalar(v)
				if err != nil {
					return false, fmt.Errorf("%s leads to %w", path, err)
				}
				if have != value {
					return false, nil
				}
			}
			return len(found) > 0, nil
		},
		State: path.state,
	}
}

// hasField waits until a field has any value except null. The value may be empty.
func hasField(path jsonPath) await.Condition[*unstructured.Unstructured] {
	return await.Condition[*unstructured.Unstructured]{
		Name: path.String(),
		Met: func(object *unstructured.Unstructured, exists bool) (bool, error) {
			return exists && len(path.values(object.Object)) > 0, nil
		},
		State: path.state,
	}
}

// scalar formats a value as text.
func scalar(v any) (string, error) {
	switch v := v.(type) {
	case map[string]any:
		return "", fmt.Errorf("an object; only a plain value can be compared")
	case []any:
		return "", fmt.Errorf("a list; only a plain value can be compared")
	default:
		return fmt.Sprint(v), nil
	}
}

// state shows up to ten values that a path selects.
func (p jsonPath) state(object *unstructured.Unstructured) string {
	found := p.values(object.Object)
	if len(found) == 0 {
		return "no " + p.String()
	}
	var texts []string
	for _, v := range found {
		text, err := scalar(v)
		if err != nil {
			text = err.Error()
		}
		texts = append(texts, fmt.Sprintf("%q", text))
	}
	return p.String() + " is " + quote.List(texts, ", ")
}
