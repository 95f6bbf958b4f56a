package recording

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// recordedOptions are the parameters of a list or watch that decide what the server sends, besides those that are true
// or false. Others are not written, because a proxy may accept a credential as a parameter.
var recordedOptions = []string{
	"labelSelector", "fieldSelector", "shardSelector", "resourceVersion", "resourceVersionMatch", "limit", "timeoutSeconds",
}

// streamOf describes a request; ok is false if it is neither a list nor a watch.
func streamOf(req *http.Request) (s *Stream, ok bool) {
	if req.Method != http.MethodGet && req.Method != "" {
		return nil, false
	}
	s = &Stream{}
	segments := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	// The server's URL may have a path, which may contain api and apis: the last root counts.
	for i := len(segments) - 1; i >= 0 && !ok; i-- {
		if i == 0 || segments[i-1] != "namespaces" { // otherwise it is the name of a namespace
			ok = s.locate(segments[i:])
		}
	}
	if !ok {
		return nil, false
	}
	query := req.URL.Query()
	s.Watch = isTrue(query["watch"])
	for _, name := range recordedOptions {
		if v := query.Get(name); v != "" {
			s.option(name, v)
		}
	}
	for _, name := range []string{"sendInitialEvents", "allowWatchBookmarks"} {
		if v := query[name]; len(v) > 0 {
			s.option(name, strconv.FormatBool(isTrue(v)))
		}
	}
	if query.Get("continue") != "" {
		s.option("continue", "true") // the token itself is of no use
	}
	return s, true
}

// isTrue reports whether the server takes a parameter for true. Only its first value counts. "0" is false, and so is
// "false" in any case. Every other value is true, also an empty one. See Convert_Slice_string_To_bool of apimachinery.
func isTrue(values []string) bool {
	return len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

func (s *Stream) option(name, value string) {
	if s.Options == nil {
		s.Options = map[string]string{}
	}
	s.Options[name] = value
}

// locate reads the path of a collection.
func (s *Stream) locate(path []string) bool {
	switch {
	case len(path) >= 3 && path[0] == "api" && path[1] == "v1":
		s.Group, s.Version, path = "", path[1], path[2:]
	case len(path) >= 4 && path[0] == "apis":
		s.Group, s.Version, path = path[1], path[2], path[3:]
	default:
		return false
	}
	switch {
	case len(path) == 1:
		s.Plural = path[0]
	case len(path) == 3 && path[0] == "namespaces" && path[2] != "status" && path[2] != "finalize":
		s.Namespace, s.Plural = path[1], path[2]
	default:
		return false
	}
	return s.Version != "" && s.Plural != ""
}

const (
	typeJSON     = "application/json"
	typeProtobuf = "application/vnd.kubernetes.protobuf"
)

// acceptJSON returns an Accept header without other formats than JSON.
func acceptJSON(header string) string {
	var kept []string
	for choice := range strings.SplitSeq(header, ",") {
		if name, _, err := mime.ParseMediaType(choice); err == nil && name == typeJSON {
			kept = append(kept, strings.TrimSpace(choice))
		}
	}
	if len(kept) == 0 {
		return typeJSON
	}
	return strings.Join(kept, ",")
}

// mediaType returns the media type of an answer. JSON is the default, as in package codec.
func mediaType(header string) string {
	if header == "" {
		return typeJSON
	}
	name, _, err := mime.ParseMediaType(header)
	if err != nil {
		return ""
	}
	return name
}
