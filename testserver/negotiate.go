package testserver

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/store"
)

// media is the representation of an answer. It is always JSON.
type media struct {
	as          string                     // "", "PartialObjectMetadata", "PartialObjectMetadataList" or "Table"
	dropManaged bool                       // omit metadata.managedFields
	include     metav1.IncludeObjectPolicy // the part of the object that a row of a table contains
}

// clause is one media range of an Accept header.
type clause struct {
	kind   string // "application/json"
	params map[string]string
	q      float64
}

func parseAccept(header string) []clause {
	var out []clause
	for part := range strings.SplitSeq(header, ",") {
		kind, rest, _ := strings.Cut(part, ";")
		c := clause{kind: strings.ToLower(strings.TrimSpace(kind)), params: map[string]string{}, q: 1}
		for param := range strings.SplitSeq(rest, ";") {
			name, value, ok := strings.Cut(strings.TrimSpace(param), "=")
			if !ok {
				continue
			}
			if name == "q" {
				if q, err := strconv.ParseFloat(value, 64); err == nil {
					c.q = q
				}
				continue
			}
			c.params[name] = value
		}
		if c.kind != "" {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b clause) int {
		switch {
		case a.q > b.q:
			return -1
		case a.q < b.q:
			return 1
		}
		return 0
	})
	return out
}

// negotiate returns the first representation in an Accept header that the server supports: JSON of the object, of its
// metadata, or of one of kinds. It skips protobuf, CBOR and YAML. Only custom resources accept "application/*", because
// the routes of kube-apiserver for built-in resources do not know it.
func (s *Server) negotiate(header string, custom bool, kinds ...string) (media, error) {
	if strings.TrimSpace(header) == "" {
		return media{}, nil
	}
	for _, c := range parseAccept(header) {
		switch c.kind {
		case "application/json", "*/*":
		case "application/*":
			if !custom {
				continue
			}
		default:
			continue
		}
		if stream := c.params["stream"]; stream != "" && stream != "watch" {
			continue
		}
		m := media{as: c.params["as"]}
		m.dropManaged = s.options.DropFields && c.params["drop"] == "metadata.managedFields"
		switch {
		case m.as == "" && c.params["g"] == "" && c.params["v"] == "":
			return m, nil
		case (m.as == "PartialObjectMetadata" || m.as == "PartialObjectMetadataList") &&
			c.params["g"] == metav1.GroupName && c.params["v"] == "v1":
			return m, nil
		case slices.Contains(kinds, m.as) && c.params["g"] == metav1.GroupName && c.params["v"] == "v1":
			return m, nil
		}
	}
	return media{}, statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: application/json, application/json;stream=watch")
}

// checkListKind rejects the metadata of one object for a list, and the reverse. kube-apiserver checks this after it has
// accepted the media type, so such a client does not get its second choice.
func (m media) checkListKind(list bool) error {
	want := "PartialObjectMetadata"
	if list {
		want += "List"
	}
	if m.as == "" || m.as == tableKind || m.as == want {
		return nil
	}
	return statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		fmt.Sprintf("you requested %s, but the requested object is of the other kind: ask for %s", m.as, want))
}

// shape encodes records for one request.
type shape struct {
	media
	resource api.Resource
	custom   bool
}

const partialPrefix = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`

// appendObject appends a whole object, its metadata, or a table with one row.
func (s shape) appendObject(dst []byte, r *store.Record) []byte {
	if s.as == tableKind {
		return s.appendTable(dst, r)
	}
	if s.as != "" {
		return append(r.AppendMetadata(append(dst, partialPrefix...), s.dropManaged), '}')
	}
	return r.AppendMembers(append(s.appendKind(dst), ','), s.dropManaged)
}

// appendKind appends the opening brace, kind and apiVersion.
func (s shape) appendKind(dst []byte) []byte {
	if s.custom && s.as == "" { // the keys of custom resources are sorted
		dst = append(dst, `{"apiVersion":`...)
		dst = strconv.AppendQuote(dst, s.apiVersion())
		dst = append(dst, `,"kind":`...)
		return strconv.AppendQuote(dst, s.kind())
	}
	dst = append(dst, `{"kind":`...)
	dst = strconv.AppendQuote(dst, s.kind())
	dst = append(dst, `,"apiVersion":`...)
	return strconv.AppendQuote(dst, s.apiVersion())
}

func (s shape) kind() string {
	if s.as != "" {
		return "PartialObjectMetadata"
	}
	return s.resource.Kind
}

func (s shape) apiVersion() string {
	if s.as != "" {
		return "meta.k8s.io/v1"
	}
	return s.resource.GroupVersion().String()
}

// appendItem appends an item of a list. Items of built-in types have no kind and apiVersion, as in kube-apiserver.
func (s shape) appendItem(dst []byte, r *store.Record) []byte {
	if s.as == tableKind {
		return s.appendRow(dst, r)
	}
	if s.as != "" || s.custom {
		return s.appendObject(dst, r)
	}
	return r.AppendMembers(append(dst, '{'), s.dropManaged)
}

// statusError returns an error for which apimachinery has no constructor.
func statusError(code int, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}}
}
