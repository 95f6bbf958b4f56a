package history

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/observe/livepage"
)

const (
	mostFound    = 50
	mostVersions = 32 // as the live page remembers
)

// foundKey is a result of a search. The name informer is that of the live page; it is the resource.
type foundKey struct {
	Informer string `json:"informer"`
	Key      string `json:"key"`
	Gone     bool   `json:"gone"` // it does not exist at the moment
}

// serveKeys finds the objects that the recording ever had. It stops after 50.
func (p *Page) serveKeys(w http.ResponseWriter, r *http.Request) {
	at, err := p.moment(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	text := strings.ToLower(strings.TrimSpace(r.URL.Query().Get("q")))
	found := []foundKey{}
	for _, o := range p.keys {
		name := api.FormatKey(o.key)
		if !strings.Contains(strings.ToLower(o.resource+" "+name), text) {
			continue
		}
		if found = append(found, foundKey{o.resource, name, !p.exists(p.objects[o], at)}); len(found) == mostFound {
			break
		}
	}
	answer(w, http.StatusOK, found)
}

// exists reports whether an object existed at a time.
func (p *Page) exists(places []int, at int64) bool {
	n := p.untilOf(places, at)
	return n > 0 && p.changes[places[n-1]].Type != watch.Deleted
}

// objectState is the answer about one object, with the fields of the live page.
type objectState struct {
	Now        int64      `json:"now"` // the moment, in microseconds since 1970
	Informer   string     `json:"informer"`
	Key        string     `json:"key"`
	Cached     bool       `json:"cached"`
	Began      int64      `json:"began"` // differs in each moment, so that a browser takes all states again
	Versions   []version  `json:"versions"`
	Earlier    int        `json:"earlier"` // states before those
	Later      int        `json:"later"`   // states after the moment
	Reconciles []struct{} `json:"reconciles"`
	Deliveries []struct{} `json:"deliveries"`
	Working    []struct{} `json:"working"`
}

type version struct {
	Sequence int             `json:"sequence"`
	Type     string          `json:"type"` // Listed, Added, Updated or Deleted
	Version  string          `json:"version"`
	Received int64           `json:"received"`
	Stored   int64           `json:"stored"` // the same: a recording does not have it
	Unknown  bool            `json:"finalStateUnknown,omitempty"`
	Object   json.RawMessage `json:"object,omitempty"`
	Omitted  string          `json:"omitted,omitempty"`
}

var errUnknown = errors.New("history: the recording has no such object")

// asked returns the changes of the object that a request names.
func (p *Page) asked(r *http.Request) (object, []int, error) {
	query := r.URL.Query()
	key, err := api.ParseKey(query.Get("key"))
	o := object{query.Get("informer"), key}
	if err != nil || p.objects[o] == nil {
		return o, nil, errUnknown
	}
	return o, p.objects[o], nil
}

// serveObject answers with the states of an object up to a moment: the last ones, if there are many.
func (p *Page) serveObject(w http.ResponseWriter, r *http.Request) {
	at, err := p.moment(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	o, all, err := p.asked(r)
	if err != nil {
		refuse(w, http.StatusNotFound, err)
		return
	}
	out := objectState{
		Now: at, Informer: o.resource, Key: api.FormatKey(o.key), Cached: p.exists(all, at), Began: at,
		Versions: []version{}, Reconciles: []struct{}{}, Deliveries: []struct{}{}, Working: []struct{}{},
	}
	n := p.untilOf(all, at)
	out.Later, out.Earlier = len(all)-n, max(0, n-mostVersions)
	for i := out.Earlier; i < n; i++ {
		out.Versions = append(out.Versions, p.version(p.changes[all[i]], i+1))
	}
	answer(w, http.StatusOK, out)
}

func (p *Page) version(c change, sequence int) version {
	v := version{
		Sequence: sequence, Type: c.name(), Version: c.ResourceVersion, Received: c.at, Stored: c.at, Unknown: c.FinalStateUnknown,
	}
	o, err := c.Object()
	if err == nil {
		v.Object, err = livepage.Render(c.Resource, o)
	}
	if err != nil {
		v.Omitted = "the state cannot be decoded: " + err.Error()
	}
	return v
}
