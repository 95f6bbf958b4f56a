package kubeconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/internal/quote"
)

const (
	maxField  = 256  // bytes of a field in an error; the name of an entry may be as long as the file
	maxReason = 1536 // bytes of a reason, which may quote a name and lists up to ten others
)

// Error is an error in a file or in Options. It never has the value of a credential.
type Error struct {
	Path  string // the file, or the list of files; empty for an error in Options
	Field string // such as users[admin].client-key-data or Options.Server; empty for an error of the whole file
	Err   error
}

// Error returns the files, the field and the reason. It shortens long fields and long reasons.
func (e *Error) Error() string {
	text := "kubeconfig"
	if e.Path != "" {
		text += " " + e.Path
	}
	if e.Field != "" {
		text += ": " + quote.Short(e.Field, maxField)
	}
	return text + ": " + quote.Short(e.Err.Error(), maxReason)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// outline is a file whose entries are not decoded yet, so that an error in an entry can name it.
type outline struct {
	Kind           string            `json:"kind"`
	APIVersion     string            `json:"apiVersion"`
	CurrentContext string            `json:"current-context"`
	Clusters       []json.RawMessage `json:"clusters"`
	Users          []json.RawMessage `json:"users"`
	Contexts       []json.RawMessage `json:"contexts"`
}

// parse parses the content of one file.
func parse(path string, data []byte) (*file, error) {
	if indicators(data) > maxIndicators {
		return nil, &Error{Path: path, Err: fmt.Errorf(
			"it is too complex: it has more than %d YAML indicators and line breaks; split it, and list the parts in KUBECONFIG", maxIndicators,
		)}
	}
	if several(data) {
		return nil, &Error{Path: path, Err: errors.New("it has more than one document; a kubeconfig has one")}
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, &Error{Path: path, Err: errors.New(firstLine(err))}
	}
	var o outline
	if err := json.Unmarshal(asJSON, &o); err != nil {
		return nil, explain(path, "", err)
	}
	if o.Kind != "" && o.Kind != "Config" || o.APIVersion != "" && o.APIVersion != "v1" {
		return nil, &Error{Path: path, Field: "kind", Err: fmt.Errorf("it has a %s of %s, not a Config of v1", o.Kind, o.APIVersion)}
	}
	return o.entries(path)
}

// maxIndicators limits the memory that a file takes while it is read. A YAML document takes up to 500 bytes for each
// indicator: a file of 4 MiB could take 800 MB, and this limit takes 150 MB at most. A file with certificates has 35
// indicators and line breaks for each cluster, and one of 25,000 contexts in four lines each has 250,000.
const maxIndicators = 250_000

// indicators counts the characters that begin or separate the nodes of a YAML document. Except for a few, each node has
// one.
func indicators(data []byte) int {
	n := 0
	for _, c := range []string{"\n", ":", ",", "[", "{", "-", "?"} {
		n += bytes.Count(data, []byte(c))
	}
	return n
}

// several reports whether there is more than one document with content. A line that begins with --- ends a document,
// also inside a text.
func several(data []byte) bool {
	documents, blank := 0, true
	for line := range bytes.Lines(data) {
		if after, ok := bytes.CutPrefix(line, []byte("---")); ok && (len(after) == 0 || bytes.IndexByte([]byte(" \t\r\n"), after[0]) >= 0) {
			blank, line = true, after
		}
		line = bytes.TrimSpace(line)
		if blank && len(line) > 0 && line[0] != '#' && line[0] != '%' { // a comment, a directive
			documents++
			blank = false
		}
	}
	return documents > 1
}

// entries decodes the entries of the lists.
func (o *outline) entries(path string) (*file, error) {
	f := &file{CurrentContext: o.CurrentContext}
	var err error
	if f.Clusters, err = decodeList(path, "clusters", o.Clusters, func(c *namedCluster) string { return c.Name }); err != nil {
		return nil, err
	}
	if f.Users, err = decodeList(path, "users", o.Users, func(u *namedUser) string { return u.Name }); err != nil {
		return nil, err
	}
	if f.Contexts, err = decodeList(path, "contexts", o.Contexts, func(c *namedContext) string { return c.Name }); err != nil {
		return nil, err
	}
	return f, nil
}

// decodeList decodes the entries of a list. Each entry must have a name, and the names must differ.
func decodeList[E any](path, list string, raw []json.RawMessage, nameOf func(*E) string) ([]E, error) {
	entries := make([]E, len(raw))
	seen := map[string]bool{}
	for i, text := range raw {
		e := &entries[i]
		err := json.Unmarshal(text, e) // after an error, the name is usually decoded
		name := nameOf(e)
		switch {
		case err != nil && name == "":
			return nil, explain(path, fmt.Sprintf("%s[%d]", list, i), err)
		case err != nil:
			return nil, explain(path, list+"["+name+"]", err)
		case name == "":
			return nil, &Error{Path: path, Field: fmt.Sprintf("%s[%d].name", list, i), Err: errors.New("it is empty")}
		case seen[name]:
			return nil, &Error{Path: path, Field: list, Err: fmt.Errorf("two entries have the name %q", name)}
		}
		seen[name] = true
	}
	return entries, nil
}

// explain returns an error that names the field of a value with the wrong type. It does not quote the value, which may
// be a token.
func explain(path, entry string, err error) error {
	var t *json.UnmarshalTypeError
	if !errors.As(err, &t) {
		return &Error{Path: path, Field: entry, Err: errors.New("it cannot be read as the fields of a kubeconfig")}
	}
	field := t.Field
	if entry != "" {
		_, below, nested := strings.Cut(field, ".") // "user.token" is the token of users[name]
		if field = entry; nested {
			field += "." + below
		} else if t.Field != "" {
			field += "." + t.Field
		}
	}
	found, _, _ := strings.Cut(t.Value, " ")
	hint := ""
	if t.Type.Kind() == reflect.String && found != "object" && found != "array" {
		hint = "; put it in quotes if it is meant as text"
	}
	return &Error{Path: path, Field: field, Err: fmt.Errorf("%s stands where %s belongs%s", inWords(found), inWords(t.Type.Kind().String()), hint)}
}

// inWords translates a kind of encoding/json or reflect into words.
func inWords(kind string) string {
	switch kind {
	case "object", "struct", "map":
		return "a map"
	case "array", "slice":
		return "a list"
	case "bool":
		return "true or false"
	case "string":
		return "text"
	}
	return "a " + kind
}

// firstLine returns the part of a YAML error that quotes no value: the line number, and what the library expected.
func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "\n")
	if strings.Contains(line, "unmarshal errors") { // a list follows, one error a line
		_, rest, _ := strings.Cut(err.Error(), "\n")
		line, _, _ = strings.Cut(strings.TrimSpace(rest), "\n")
	}
	for _, mark := range []string{"`", "anchor '", "invalid map key: "} { // a value follows these
		if before, _, found := strings.Cut(line, mark); found {
			return before + strings.TrimRight(mark, "`' :") + " (not shown)"
		}
	}
	return line
}

// bare removes the operation and the path from an error of the file system, because Error has the path.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
