package disturb

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/faults"
)

// Target is a request that faults may affect.
type Target struct {
	HTTP            *http.Request
	Verb            string
	Group, Resource string
	Subresource     string
	Namespace, Name string
}

// Matches reports whether a request matches.
func (t Target) Matches(m faults.Match) bool {
	return t.matches(m) && matchesObject(m, t.Namespace, t.Name)
}

// matches compares everything except the object.
func (t Target) matches(m faults.Match) bool {
	name := schema.GroupResource{Group: t.Group, Resource: t.Resource}.String()
	switch {
	case len(m.Verbs) > 0 && !slices.Contains(m.Verbs, t.Verb),
		m.Resource != "" && m.Resource != name && m.Resource != name+"/"+t.Subresource,
		m.UserAgent != "" && !strings.HasPrefix(t.HTTP.UserAgent(), m.UserAgent):
		return false
	}
	return m.Func == nil || m.Func(t.HTTP)
}

func matchesObject(m faults.Match, namespace, name string) bool {
	return (m.Namespace == "" || m.Namespace == namespace) && (m.Name == "" || m.Name == name)
}

// Frame is one event of a watch before it is sent, or one item of a list.
type Frame struct {
	Kind watch.EventType
	Key  api.Key
}

func (f Frame) matches(m faults.Match) bool {
	if len(m.Frames) == 0 {
		if f.Kind == faults.Item {
			return false
		}
	} else if !slices.Contains(m.Frames, f.Kind) {
		return false
	}
	return matchesObject(m, f.Key.Namespace, f.Key.Name)
}
