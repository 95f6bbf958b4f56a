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
)

// media is the representation that a client and the server agreed on. It is always JSON.
type media struct {
	as          string                     // "", "PartialObjectMetadata", "PartialObjectMetadataList" or "Table"
	dropManaged bool                       // without metadata.managedFields
	include     metav1.IncludeObjectPolicy // what a row of a table carries of its object
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

// negotiate picks the first clause of an Accept header that the server can satisfy: JSON, as it is or reduced to
// metadata, or as one of the other kinds that the request can be answered with. Protobuf, CBOR and YAML are passed over.
// Only custom resources can be asked for by "application/*": the routes of kube-apiserver's built-in ones do not know it.
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

// checkShape refuses a list as one object's metadata and the reverse, as kube-apiserver does after it has accepted the
// media type: such a client does not get its second choice.
func (m media) checkShape(list bool) error {
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

// shape writes records the way that one request wants them.
type shape struct {
	media
	resource api.Resource
	custom   bool
}

const partialPrefix = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`

// appendObject appends a whole object, its metadata, or a table of it alone.
func (s shape) appendObject(dst []byte, r *record) []byte {
	if s.as == tableKind {
		return s.appendTable(dst, r)
	}
	head, tail := r.metadata(s.dropManaged)
	if s.as != "" {
		dst = append(dst, partialPrefix...)
		return append(append(append(dst, head...), tail...), '}')
	}
	dst = s.appendKind(dst)
	dst = append(dst, ',')
	dst = append(dst, r.body[1:metaStart]...)
	dst = append(append(dst, head...), tail...)
	return append(dst, r.body[r.metaEnd:]...)
}

// appendKind appends the opening brace and the two fields that say what follows.
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

// appendItem appends an object as a list holds it: kube-apiserver's built-in types do not say their kind there.
func (s shape) appendItem(dst []byte, r *record) []byte {
	if s.as == tableKind {
		return s.appendRow(dst, r)
	}
	if s.as != "" || s.custom {
		return s.appendObject(dst, r)
	}
	head, tail := r.metadata(s.dropManaged)
	dst = append(dst, r.body[:metaStart]...)
	dst = append(append(dst, head...), tail...)
	return append(dst, r.body[r.metaEnd:]...)
}

// bare is how kube-apiserver answers an error of its storage that nobody has made a Status of: a 500 without a reason.
func bare(err error) error {
	return statusError(http.StatusInternalServerError, metav1.StatusReasonUnknown, err.Error())
}

// statusError is an error that apimachinery has no constructor for.
func statusError(code int, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}}
}
