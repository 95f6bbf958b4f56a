package compare

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// comparedHeaders are the headers of an answer that are compared. The others differ between any two answers, or are
// about the connection.
var comparedHeaders = []string{
	"Allow", "Cache-Control", "Content-Encoding", "Content-Type", "Location", "Retry-After", "Vary", "Warning",
	"Www-Authenticate", "X-Content-Type-Options",
}

// indented is compared like a header: whether JSON has line breaks.
const indented = "indented"

// Answer is the answer to a step: to a request, or of a command.
type Answer struct {
	Command bool
	Status  int // of HTTP, or the exit code of the command
	Header  map[string]string
	Value   any    // the body, or the output of the command, if it has a structure
	Text    string // otherwise its text
	Errors  string // the standard error of the command
	Failure string // of the connection
}

// contains reports whether a text is in the body.
func (a *Answer) contains(text string) bool {
	encoded, err := json.Marshal(a.Value)
	return err == nil && strings.Contains(string(encoded)+a.Text, text)
}

func readAnswer(r *http.Response, content []byte, watch bool) *Answer {
	a := &Answer{Status: r.StatusCode, Header: map[string]string{}}
	for _, name := range comparedHeaders {
		if values := r.Header.Values(name); len(values) > 0 {
			a.Header[name] = strings.Join(values, "\n")
		}
	}
	if r.Header.Get("Content-Encoding") == "gzip" {
		content = unzip(content)
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	stream := watch && r.StatusCode == http.StatusOK
	var err error
	switch {
	case strings.HasPrefix(kind, protobufType) && stream:
		a.Value, err = fromProtobufStream(content)
	case strings.HasPrefix(kind, protobufType):
		a.Value, err = fromProtobuf(content)
	case strings.HasSuffix(kind, "json"):
		a.Value, err = readJSON(content, stream)
		if bytes.HasPrefix(content, []byte("{\n")) {
			a.Header[indented] = "yes"
		}
	case kind == "application/yaml":
		a.Value, err = readYAML(content)
	case !utf8.Valid(content):
		a.Text = "<binary>"
	default:
		a.Text = string(content)
	}
	if err != nil {
		a.Value, a.Text = nil, string(content)
	}
	return a
}

// unzip returns the content of a gzip stream as far as it can be read.
func unzip(content []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return content
	}
	plain, _ := io.ReadAll(z) // a stream that breaks off differs from one that does not
	return plain
}

// readJSON reads one value, or all values of a stream.
func readJSON(content []byte, stream bool) (any, error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	values := []any{}
	for {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	if stream {
		return slices.DeleteFunc(values, isPeriodicBookmark), nil
	}
	if len(values) != 1 {
		return nil, errors.New("not one value")
	}
	return values[0], nil
}

// isPeriodicBookmark reports whether an event is a bookmark that does not end an initial list. The timers of
// kube-apiserver decide when it sends one, also at the end of a watch, so these bookmarks cannot be compared.
func isPeriodicBookmark(event any) bool {
	fields, _ := event.(map[string]any)
	object, _ := fields["object"].(map[string]any)
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	return fields["type"] == "BOOKMARK" && annotations[metav1.InitialEventsAnnotationKey] == nil
}

func readYAML(content []byte) (any, error) {
	plain, err := yaml.YAMLToJSON(content)
	if err != nil {
		return nil, err
	}
	return readJSON(plain, false)
}

// readOutput reads the output of a command that writes JSON or YAML.
func (a *Answer) readOutput(args []string) {
	has := func(form string) bool {
		return slices.Contains(args, "-o"+form) || slices.Contains(args, "--output="+form) || slices.Contains(args, "-o="+form) ||
			slices.ContainsFunc(args, func(arg string) bool { return arg == form })
	}
	var err error
	switch {
	case a.Text == "":
		return
	case has("json") || slices.Contains(args, "--raw"):
		a.Value, err = readJSON([]byte(a.Text), false)
	case has("yaml"):
		a.Value, err = readYAML([]byte(a.Text))
	default:
		return
	}
	if err != nil {
		a.Value = nil
		return
	}
	a.Text = ""
}
