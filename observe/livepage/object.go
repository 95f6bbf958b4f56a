package livepage

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/manager"
)

// longError is the longest text of an error that the page remembers, in bytes.
const longError = 2048

func short(text string) string {
	if len(text) > longError {
		return strings.ToValidUTF8(text[:longError], "") + "…"
	}
	return text
}

// failure is the answer to a request that has no other.
type failure struct {
	Error string `json:"error"`
}

// foundKey is a result of a search.
type foundKey struct {
	Informer string `json:"informer"`
	Key      string `json:"key"`
}

// objectState is the answer about one object.
type objectState struct {
	Now        int64       `json:"now"` // microseconds since 1970
	Informer   string      `json:"informer"`
	Key        string      `json:"key"`
	Cached     bool        `json:"cached"`
	Pinned     bool        `json:"pinned"`
	Began      int64       `json:"began"`      // when the page began to remember the object; sequence numbers begin at 1
	Versions   []version   `json:"versions"`   // those after the request's sequence number, or all after a new beginning
	Reconciles []reconcile `json:"reconciles"` // oldest first
	Deliveries []delivery  `json:"deliveries"` // oldest first
	Working    []working   `json:"working"`
}

// working is what controllers do with the key now. The fields are those of /debug/why/.
type working struct {
	Controller string
	Running    *reconcile
	Gated      *reconcile
}

// serveObjects adds the paths that show objects.
func (p *Page) serveObjects(mux *http.ServeMux) {
	mux.HandleFunc("GET /keys", p.serveKeys)
	mux.HandleFunc("GET /object", p.serveObject)
	mux.HandleFunc("POST /pin", func(w http.ResponseWriter, r *http.Request) { p.servePin(w, r, true) })
	mux.HandleFunc("DELETE /pin", func(w http.ResponseWriter, r *http.Request) { p.servePin(w, r, false) })
}

// refuseDebug answers for a handler without debug.
func refuseDebug(mux *http.ServeMux) {
	for why, patterns := range map[string][]string{
		"livepage: this page shows no keys and no objects; see AdminOptions.Debug": {"GET /keys", "GET /object", "POST /pin", "DELETE /pin"},
		"livepage: this page has no actions; see AdminOptions.Debug":               {"GET /actions", "POST /actions/{name}", "GET /walkthrough", "POST /walkthrough/{move}"},
	} {
		for _, pattern := range patterns {
			mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
				writeJSON(w, http.StatusForbidden, failure{why})
			})
		}
	}
}

// serveKeys finds keys that contain a text. It stops after 50; the same keys give the same 50. It sorts them, because
// informers yield keys in the order of their hashes.
func (p *Page) serveKeys(w http.ResponseWriter, r *http.Request) {
	text := strings.ToLower(strings.TrimSpace(r.URL.Query().Get("q")))
	found := []foundKey{}
search:
	for _, s := range p.look().informers {
		inspect, ok := s.informer.(inspectable)
		if !ok {
			continue
		}
		for key := range inspect.Keys() {
			name := api.FormatKey(key)
			if !strings.Contains(strings.ToLower(s.name+" "+name), text) {
				continue
			}
			if found = append(found, foundKey{s.name, name}); len(found) == mostFound {
				break search
			}
		}
	}
	slices.SortStableFunc(found, func(a, b foundKey) int { return cmp.Compare(a.Key, b.Key) })
	writeJSON(w, http.StatusOK, found)
}

// named returns the object that a request names.
func named(r *http.Request) (place, error) {
	query := r.URL.Query()
	key, err := api.ParseKey(query.Get("key"))
	if err != nil {
		return place{}, fmt.Errorf("livepage: key: %w", err)
	}
	return place{query.Get("informer"), key}, nil
}

// asked returns the object that a request names, with its informer.
func asked(r *http.Request, m members) (*shownInformer, api.Key, error) {
	at, err := named(r)
	if err != nil {
		return nil, at.key, err
	}
	i := slices.IndexFunc(m.informers, func(s *shownInformer) bool { return s.name == at.informer })
	if i < 0 {
		return nil, at.key, errors.New("livepage: there is no informer of this name")
	}
	return m.informers[i], at.key, nil
}

func (p *Page) serveObject(w http.ResponseWriter, r *http.Request) {
	m := p.look()
	s, key, err := asked(r, m)
	if err != nil {
		writeJSON(w, http.StatusNotFound, failure{err.Error()})
		return
	}
	readers := m.readers(s.informer.Status().Resource)
	o, err := p.follow(s, key, readers)
	if err != nil {
		writeJSON(w, http.StatusNotFound, failure{err.Error()})
		return
	}
	now, past := m.why(r, readers, key)
	cached := p.follower.refresh(o, s)
	writeJSON(w, http.StatusOK, p.follower.state(o, cached, past, now, r.URL.Query()))
}

// readers returns which controllers have the keys of a resource.
func (m members) readers(resource api.Resource) map[string]bool {
	readers := map[string]bool{}
	for _, c := range m.controllers {
		readers[c.name] = slices.ContainsFunc(c.controller.Stats().Sources, func(source controller.SourceStats) bool {
			return source.Name == resourceName(resource)
		})
	}
	return readers
}

// follow returns the memory of an object, and attaches the hooks.
func (p *Page) follow(s *shownInformer, key api.Key, readers map[string]bool) (*followed, error) {
	o, err := p.follower.follow(s, key, readers)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follower.attach(p.informers, p.controllers)
	return o, nil
}

// state returns the answer about an object. The query may have the last sequence number of an earlier answer, and the
// beginning that this answer named. After a pause or a restart of the program, the memory is a new one: all is sent.
func (f *follower) state(o *followed, cached bool, past []reconcile, now []working, query url.Values) objectState {
	after, _ := strconv.Atoi(query.Get("after")) // a wrong number is like none
	f.mu.Lock()
	defer f.mu.Unlock()
	began := strconv.FormatInt(o.began, 10)
	if after > o.sequence || query.Has("began") && query.Get("began") != began {
		after = 0
	}
	for _, r := range past {
		o.note(r)
	}
	out := objectState{
		Now: time.Now().UnixMicro(), Informer: o.informer, Key: api.FormatKey(o.key), Cached: cached, Pinned: o.pinned,
		Began: o.began, Versions: []version{}, Reconciles: slices.Clone(o.reconciles), Deliveries: slices.Clone(o.deliveries), Working: now,
	}
	for _, v := range o.versions {
		if v.Sequence > after {
			out.Versions = append(out.Versions, v)
		}
	}
	return out
}

// why returns what the controllers say about a key: what they do now, and the reconciles that they remember.
func (m members) why(r *http.Request, readers map[string]bool, key api.Key) (now []working, past []reconcile) {
	now = []working{}
	for _, c := range m.controllers {
		d, ok := c.controller.(manager.Debuggable)
		if !ok || !readers[c.name] {
			continue
		}
		code, body := ask(r, d.DebugHandler(), "/debug/why/"+api.FormatKey(key))
		var said struct {
			Running, Gated *reconcile
			Reconciles     []reconcile
		}
		if code != http.StatusOK || json.Unmarshal(body, &said) != nil {
			continue
		}
		past = append(past, said.Reconciles...)
		if said.Running != nil || said.Gated != nil {
			now = append(now, working{c.name, said.Running, said.Gated})
		}
	}
	return now, past
}

// servePin pins an object of an informer, or releases one whose informer may be gone.
func (p *Page) servePin(w http.ResponseWriter, r *http.Request, yes bool) {
	m := p.look()
	at, err := named(r)
	if err == nil && yes {
		var s *shownInformer
		if s, _, err = asked(r, m); err == nil {
			_, err = p.follow(s, at.key, m.readers(s.informer.Status().Resource))
		}
	}
	if err == nil {
		err = p.follower.pin(at, yes)
	}
	switch {
	case errors.Is(err, errPins):
		writeJSON(w, http.StatusConflict, failure{err.Error()})
	case err != nil:
		writeJSON(w, http.StatusNotFound, failure{err.Error()})
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// resourceName is the name that a source of a controller has by default.
func resourceName(r api.Resource) string { return r.String() }

// readsResource reports whether a source reads a resource: by its default name, or as the owned objects of Owns.
func readsResource(source string, r api.Resource) bool {
	name := resourceName(r)
	return source == name || strings.HasPrefix(source, name+" ")
}

// render returns an object in JSON, without managedFields. Of the data and the annotations of a Secret it has only
// the names and the sizes of the values, with a hash that shows whether a value has changed.
func render(r api.Resource, object api.Object) (json.RawMessage, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		return nil, err
	}
	meta, _ := fields["metadata"].(map[string]any)
	delete(meta, "managedFields")
	if r.Group == "" && r.Plural == "secrets" {
		hideSecret(fields, meta)
	}
	return json.Marshal(fields)
}

// hidingKey makes the hashes of a process useless for guesses at a value.
var hidingKey = func() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return key
}()

func hideSecret(fields, meta map[string]any) {
	hideValues(fields, "data")
	hideValues(fields, "stringData")
	hideValues(meta, "annotations") // tools copy whole manifests into annotations
}

// hideValues replaces the values of a map in a field. It removes a field of another type.
func hideValues(fields map[string]any, name string) {
	values, ok := fields[name].(map[string]any)
	if !ok {
		delete(fields, name)
		return
	}
	for k, v := range values {
		text := fmt.Sprint(v)
		mac := hmac.New(sha256.New, hidingKey)
		_, _ = mac.Write([]byte(text)) // it never fails
		values[k] = fmt.Sprintf("hidden: %d bytes, %s", len(text), hex.EncodeToString(mac.Sum(nil)[:4]))
	}
}
