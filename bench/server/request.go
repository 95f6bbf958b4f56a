package server

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/leatproject/leat/bench/load"
)

// asked has the parameters of a request.
type asked struct {
	watch, streaming   bool
	metadata, protobuf bool
	from               uint64 // the version to watch from
	first, limit       int    // of a page
	shard              *shard // nil without a shardSelector that is obeyed
}

// request parses a request.
func (s *Server) request(r *http.Request) (asked, error) {
	q := r.URL.Query()
	a := asked{watch: boolean(q.Get("watch")), streaming: boolean(q.Get("sendInitialEvents"))}
	if r.URL.Path != "/api/v1/pods" || r.Method != http.MethodGet || q.Get("labelSelector") != "" || q.Get("fieldSelector") != "" {
		return a, fmt.Errorf("this server only lists and watches the pods of all namespaces: %s %s", r.Method, r.URL)
	}
	for name, number := range map[string]*int{"limit": &a.limit, "continue": &a.first} {
		if err := decimal(q.Get(name), number); err != nil {
			return a, err
		}
	}
	var version int
	if err := decimal(q.Get("resourceVersion"), &version); err != nil {
		return a, err
	}
	a.from = uint64(version)
	if q.Get("resourceVersion") == "0" {
		a.limit = 0 // like the watch cache of kube-apiserver: the whole list, whatever the limit
	}
	if selector := q.Get("shardSelector"); s.o.Shards && selector != "" {
		var err error
		if a.shard, err = newShard(selector); err != nil {
			return a, err
		}
	}
	return a, a.negotiate(r.Header.Get("Accept"))
}

func boolean(s string) bool { return s == "true" || s == "1" }

func decimal(s string, to *int) (err error) {
	*to, err = strconv.Atoi(cmp.Or(s, "0"))
	return err
}

// negotiate uses the first clause of an Accept header that the server supports. It skips a clause with an unknown
// parameter.
func (a *asked) negotiate(accept string) error {
	for clause := range strings.SplitSeq(cmp.Or(accept, "application/json"), ",") {
		name, parameters, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		a.protobuf, a.metadata = name == "application/vnd.kubernetes.protobuf", false
		understood := a.protobuf || name == "application/json" || name == "*/*"
		for key, value := range parameters {
			switch key {
			case "as":
				a.metadata = value == "PartialObjectMetadata" || value == "PartialObjectMetadataList"
				understood = understood && a.metadata
			case "g", "v", "stream", "q":
			default:
				understood = false
			}
		}
		if understood {
			return nil
		}
	}
	return fmt.Errorf("this server supports no media type of %q", accept)
}

// contentType returns the content type of the answer.
func (a *asked) contentType() string {
	switch {
	case a.protobuf && a.watch:
		return "application/vnd.kubernetes.protobuf;stream=watch"
	case a.protobuf:
		return "application/vnd.kubernetes.protobuf"
	default:
		return "application/json"
	}
}

// form returns the form of a pod in the answer.
func (a *asked) form() load.Form {
	switch {
	case a.metadata && a.protobuf:
		return load.MetadataProtobuf
	case a.metadata:
		return load.MetadataJSON
	case a.protobuf:
		return load.Protobuf
	case a.watch:
		return load.JSON
	default:
		return load.JSONInList
	}
}

// noted returns the record of the request.
func (a *asked) noted(r *http.Request) Request {
	return Request{Watch: a.watch, Streaming: a.streaming, Metadata: a.metadata, Protobuf: a.protobuf, Proto: r.Proto, Limit: a.limit, Cut: a.shard != nil}
}

// serve answers one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	a, err := s.request(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", a.contentType())
	if a.watch {
		s.watch(w, r, a)
		return
	}
	s.note(a.noted(r))
	s.list(w, a)
}
