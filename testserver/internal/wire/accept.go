package wire

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const partialObject = "PartialObjectMetadata"

// PartialList is the kind of a list of metadata.
const PartialList = partialObject + "List"

// Media is the representation of an answer.
type Media struct {
	Type        string                     // JSON, YAML or Protobuf
	Errors      string                     // the media type of an error, which has no other form than a Status
	As          string                     // "", the kind of metadata or of their list, or Table
	Version     string                     // of As: "v1" or "v1beta1"
	dropManaged bool                       // omit metadata.managedFields
	Include     metav1.IncludeObjectPolicy // the part of the object that a row of a table contains
	NoColumns   bool                       // omit the columns of a table: a watch has them in its first event only
	Empty       bool                       // the list has no items
}

// metaVersion returns the apiVersion of metadata and tables.
func (m Media) metaVersion() string { return metav1.GroupName + "/" + m.Version }

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

// Offer is what a path can answer.
type Offer struct {
	// Types are the media types in the order of kube-apiserver. The first one is JSON.
	Types []string
	// Route says that the path has a route, which declares Types. kube-apiserver first compares them with the header,
	// without parameters and without "application/*". Custom resources and lists of groups have no route.
	Route bool
	// Text and Streams say that the route also declares plain text, or the types of streams.
	Text, Streams bool
	// Kinds are the kinds besides metadata into which objects can be converted.
	Kinds []string
	// Custom is set for custom resources. Whole ones have no form in protobuf, but their metadata do.
	Custom bool
	// DropFields allows the client to omit managedFields.
	DropFields bool
	// Plain is set for documents, which have no other form, not even metadata.
	Plain bool
}

// Negotiate returns the first representation in an Accept header that the offer has: the object, its metadata, or one
// of the kinds. The result of an error has the media type in which the error is sent.
func (o Offer) Negotiate(header string) (Media, error) {
	clauses := parseAccept(header)
	m := Media{Type: JSON, Errors: o.errors(clauses)}
	if len(clauses) == 0 {
		return m, nil
	}
	if err := o.CheckRoute(header); o.Route && err != nil {
		return m, err
	}
	for _, c := range clauses {
		for _, kind := range o.Types {
			if !c.covers(kind) || !c.streams(kind) {
				continue
			}
			as, ok := o.converts(c, kind)
			if !ok {
				continue
			}
			m.Type, m.As, m.Version = kind, as, c.params["v"]
			m.dropManaged = o.DropFields && c.params["drop"] == "metadata.managedFields"
			return m, nil
		}
	}
	return m, accepted(o.Types)
}

// CheckStream returns an error if a watch has no form in the media type, which is YAML. As in kube-apiserver, types
// that follow in the header do not help, and errors in the parameters of the request come first.
func (o Offer) CheckStream(m Media) error {
	if m.Type == YAML {
		return accepted(streams(o.Types))
	}
	return nil
}

// accepted returns the error that names the media types which the client may accept.
func accepted(types []string) error {
	return notAcceptable("only the following media types are accepted: " + strings.Join(types, ", "))
}

// CheckRoute returns an error for a header without a type that the route declares.
func (o Offer) CheckRoute(header string) error {
	if header == "" || o.declared(header) {
		return nil
	}
	types := slices.Clone(o.Types)
	if o.Text {
		types = slices.Insert(types, 0, plainText)
	}
	if o.Streams {
		types = append(types, streams(o.Types)...)
	}
	err := notAcceptable("406: Not Acceptable\n\nAvailable representations: " + strings.Join(types, ", "))
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

const plainText = "text/plain"

// streams returns the media types of watches as kube-apiserver names them.
func streams(types []string) []string {
	var out []string
	for _, kind := range types {
		if kind != YAML {
			out = append(out, kind+";stream=watch")
		}
	}
	return out
}

func notAcceptable(message string) *apierrors.StatusError {
	return Error(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, message)
}

// errors returns the media type of errors: that of the first clause without a conversion.
func (o Offer) errors(clauses []clause) string {
	for _, c := range clauses {
		for _, kind := range o.Types {
			if c.covers(kind) && c.streams(kind) && c.plain() {
				return kind
			}
		}
	}
	return JSON
}

// declared reports whether the header has a type of the route. The types of streams have parameters, so no header has
// them.
func (o Offer) declared(header string) bool {
	for clause := range strings.SplitSeq(header, ",") {
		kind, _, _ := strings.Cut(clause, ";")
		kind = strings.TrimSpace(kind)
		if kind == "*/*" || o.Text && kind == plainText || slices.Contains(o.Types, kind) {
			return true
		}
	}
	return false
}

// covers reports whether the media range has a type.
func (c clause) covers(kind string) bool {
	major, _, _ := strings.Cut(kind, "/")
	return c.kind == kind || c.kind == "*/*" || c.kind == major+"/*"
}

// streams reports whether kube-apiserver has the form of streams that the clause wants. The only one is "watch", and
// YAML does not have it.
func (c clause) streams(kind string) bool {
	return c.params["stream"] == "" || c.params["stream"] == "watch" && kind != YAML
}

// plain reports whether the clause wants no conversion.
func (c clause) plain() bool {
	return c.params["as"] == "" && c.params["g"] == "" && c.params["v"] == ""
}

// converts reports whether the offer has a media type in the form that a clause wants, and returns the kind.
func (o Offer) converts(c clause, kind string) (as string, ok bool) {
	as = c.params["as"]
	switch {
	case c.plain():
		return "", !o.Custom || kind != Protobuf
	case o.Plain || c.params["g"] != metav1.GroupName || c.params["v"] != "v1" && c.params["v"] != "v1beta1":
		return "", false
	case as == partialObject || as == PartialList:
		return as, true
	}
	return as, kind != Protobuf && slices.Contains(o.Kinds, as)
}

// CheckListKind rejects the metadata of one object for a list, and the reverse. goType is the type that the error
// names. kube-apiserver checks this after it has found the objects, so such a client does not get its second choice.
func (m Media) CheckListKind(list bool, goType string) error {
	switch {
	case list && m.As == partialObject:
		return notAcceptable(fmt.Sprintf("you requested %s, but the requested object is a list (%s)", m.As, goType))
	case !list && m.As == PartialList:
		return notAcceptable(fmt.Sprintf("you requested %s, but the requested object is not a list (%s)", m.As, goType))
	}
	return nil
}

// AggregatedType returns the media type of aggregated discovery if that is what the first clause of an Accept header
// that the server supports wants, and otherwise "".
func AggregatedType(header string) string {
	for _, c := range parseAccept(header) {
		kind := JSON
		if !c.covers(JSON) {
			if kind = YAML; !c.covers(YAML) {
				continue
			}
		}
		as, g, v := c.params["as"], c.params["g"], c.params["v"]
		if as == "APIGroupDiscoveryList" && g == "apidiscovery.k8s.io" && v == "v2" {
			return kind
		}
		if as == "" {
			return ""
		}
	}
	return ""
}
