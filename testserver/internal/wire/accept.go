package wire

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PartialList is the kind of a list of metadata.
const PartialList = "PartialObjectMetadataList"

// Media is the representation of an answer. It is always JSON.
type Media struct {
	As          string                     // "", "PartialObjectMetadata", "PartialObjectMetadataList" or "Table"
	dropManaged bool                       // omit metadata.managedFields
	Include     metav1.IncludeObjectPolicy // the part of the object that a row of a table contains
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

// Negotiate returns the first representation in an Accept header that the server supports: JSON of the object, of its
// metadata, or of one of kinds. It skips protobuf, CBOR and YAML. Only custom resources accept "application/*", because
// the routes of kube-apiserver for built-in resources do not know it. dropFields allows the client to omit
// managedFields.
func Negotiate(header string, dropFields, custom bool, kinds ...string) (Media, error) {
	if strings.TrimSpace(header) == "" {
		return Media{}, nil
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
		m := Media{As: c.params["as"]}
		m.dropManaged = dropFields && c.params["drop"] == "metadata.managedFields"
		switch {
		case m.As == "" && c.params["g"] == "" && c.params["v"] == "":
			return m, nil
		case (m.As == "PartialObjectMetadata" || m.As == PartialList) &&
			c.params["g"] == metav1.GroupName && c.params["v"] == "v1":
			return m, nil
		case slices.Contains(kinds, m.As) && c.params["g"] == metav1.GroupName && c.params["v"] == "v1":
			return m, nil
		}
	}
	return Media{}, Error(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: application/json, application/json;stream=watch")
}

// CheckListKind rejects the metadata of one object for a list, and the reverse. kube-apiserver checks this after it has
// accepted the media type, so such a client does not get its second choice.
func (m Media) CheckListKind(list bool) error {
	want := "PartialObjectMetadata"
	if list {
		want += "List"
	}
	if m.As == "" || m.As == Table || m.As == want {
		return nil
	}
	return Error(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		fmt.Sprintf("you requested %s, but the requested object is of the other kind: ask for %s", m.As, want))
}

// WantsAggregated reports whether aggregated discovery is the first clause of an Accept header that the server
// supports.
func WantsAggregated(header string) bool {
	for _, c := range parseAccept(header) {
		if c.kind != "application/json" && c.kind != "application/*" && c.kind != "*/*" {
			continue
		}
		as, g, v := c.params["as"], c.params["g"], c.params["v"]
		if as == "APIGroupDiscoveryList" && g == "apidiscovery.k8s.io" && v == "v2" {
			return true
		}
		if as == "" {
			return false
		}
	}
	return false
}
