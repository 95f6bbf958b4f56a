package testserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// model is the expected state of the server.
type model struct {
	objects map[string]doc // data and labels by name
	events  []modelEvent
}

type modelEvent struct {
	version int
	kind    string
	name    string
	color   string // value of the label after the change
	before  string // value of the label before the change
}

// churn makes n random changes with the methods of the server, and records the expected events.
func churn(b *bench, random *rand.Rand, m *model, n int) {
	colors := []string{"red", "blue"}
	for range n {
		name := fmt.Sprintf("m%02d", random.IntN(25))
		key := api.Key{Namespace: "default", Name: name}
		color := colors[random.IntN(2)]
		have, exists := m.objects[name]
		before, _ := have["color"].(string)
		kind := ""
		switch {
		case !exists:
			kind = "ADDED"
			must.Get(b.Create(configMaps, doc{
				"metadata": doc{"name": name, "namespace": "default", "labels": doc{"color": color}}, "data": doc{"n": "0"},
			}))(b)
			m.objects[name] = doc{"color": color, "n": "0"}
		case random.IntN(3) == 0:
			kind = "DELETED"
			require.NoError(b, b.Delete(configMaps, key))
			delete(m.objects, name)
			color = before
		default:
			kind = "MODIFIED"
			value := strconv.Itoa(random.IntN(1_000_000) + 1)
			u := must.Get(b.Get(configMaps, key))(b)
			u.SetLabels(map[string]string{"color": color})
			u.Object["data"] = doc{"n": value}
			must.Get(b.Update(configMaps, u))(b)
			m.objects[name] = doc{"color": color, "n": value}
		}
		version := must.Get(strconv.Atoi(b.ResourceVersion()))(b)
		m.events = append(m.events, modelEvent{version: version, kind: kind, name: name, color: color, before: before})
	}
}

// seen returns what a watch of a color gets of an event; an empty result means nothing. An empty color selects all
// objects.
func (e modelEvent) seen(color string) string {
	kind := e.kind
	if color != "" {
		was, is := e.before == color && e.kind != "ADDED", e.color == color && e.kind != "DELETED"
		switch {
		case was && is:
			kind = "MODIFIED"
		case was:
			kind = "DELETED"
		case is:
			kind = "ADDED"
		default:
			return ""
		}
	}
	return fmt.Sprintf("%s %s@%d", kind, e.name, e.version)
}

// TestWatchReplaysExactly watches from every version. Each watch must get exactly the later events, with and without
// selectors. An exact list of a version must show the state after the events up to it.
func TestWatchReplaysExactly(t *testing.T) {
	for seed := range uint64(3) {
		inBubble(t, testserver.Options{}, func(b *bench) {
			random := rand.New(rand.NewPCG(seed, 1))
			m := &model{objects: map[string]doc{}}
			churn(b, random, m, 200)
			for _, from := range []int{100, 101, 137, 150, 299, 300} {
				for _, color := range []string{"", "red", "blue"} {
					query := []string{fmt.Sprintf("resourceVersion=%d", from)}
					if color != "" {
						query = append(query, "labelSelector=color="+color)
					}
					w := b.watch(mapsPath, append(query, "timeoutSeconds=1")...)
					for _, e := range m.events {
						if want := e.seen(color); e.version > from && want != "" {
							w.expect(want)
						}
					}
					w.expectEnd()
					l := b.list(mapsPath, append(query, "resourceVersionMatch=Exact")...)
					require.Equal(b, m.at(from, color), l.names())
				}
			}
		})
	}
}

// at returns the names that exist at a version, selected by color.
func (m *model) at(version int, color string) []string {
	state := map[string]string{}
	for _, e := range m.events {
		if e.version > version {
			break
		}
		delete(state, e.name)
		if e.kind != "DELETED" {
			state[e.name] = e.color
		}
	}
	names := []string{}
	for name, have := range state {
		if color == "" || have == color {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// naive is the simplest client: it lists, watches, and lists again after a 410.
type naive struct {
	*bench
	state   map[string]string // versions by name
	version string
	lists   int
}

// run lists and watches until the function until returns true. It checks that after each watch.
func (n *naive) run(until func() bool) {
	for !until() {
		if n.version == "" {
			n.relist()
		}
		n.follow()
	}
}

func (n *naive) relist() {
	n.lists++
	n.state = map[string]string{}
	for query := []string{"limit=7"}; ; {
		page, ok := n.page(query)
		if !ok {
			<-time.After(time.Second)
			n.state, query = map[string]string{}, []string{"limit=7"}
			continue
		}
		for _, item := range page.Items {
			meta := item["metadata"].(doc)
			n.state[meta["name"].(string)] = meta["resourceVersion"].(string)
		}
		n.version = page.Metadata.ResourceVersion
		if page.Metadata.Continue == "" {
			return
		}
		query = []string{"limit=7", "continue=" + page.Metadata.Continue}
	}
}

// page sends one request of a list.
func (n *naive) page(query []string) (out list, ok bool) {
	res, err := n.client.Do(n.request(http.MethodGet, mapsPath+queryOf(query...), nil))
	if err != nil {
		return out, false
	}
	defer res.Body.Close()
	ok = json.NewDecoder(res.Body).Decode(&out) == nil && res.StatusCode == http.StatusOK
	_, _ = io.Copy(io.Discard, res.Body) // the rest of the body does not matter
	return out, ok
}

func (n *naive) follow() {
	res, err := n.client.Do(n.request(http.MethodGet, mapsPath+queryOf("watch=1", "resourceVersion="+n.version,
		"allowWatchBookmarks=true", "timeoutSeconds=20"), nil))
	if err != nil || res.StatusCode != http.StatusOK {
		if err == nil {
			res.Body.Close()
		}
		<-time.After(time.Second)
		return
	}
	defer res.Body.Close()
	s := newStream(n.bench, res)
	for {
		e, err := s.next()
		if err != nil {
			return
		}
		if e.Type == "ERROR" {
			n.version = ""
			return
		}
		meta := e.Object["metadata"].(doc)
		n.version = meta["resourceVersion"].(string)
		switch name, _ := meta["name"].(string); e.Type {
		case "DELETED":
			delete(n.state, name)
		case "ADDED", "MODIFIED":
			n.state[name] = n.version
		}
	}
}

// TestNaiveClientConverges injects faults, except those that send false data. A client that lists and watches must end
// with the state of the server.
func TestNaiveClientConverges(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(20) {
		inBubble(t, testserver.Options{Seed: seed, History: 40, BookmarkInterval: 3 * time.Second}, func(b *bench) {
			random := rand.New(rand.NewPCG(seed, 2))
			m := &model{objects: map[string]doc{}}
			var stopped atomic.Bool
			done := make(chan struct{})
			client := &naive{bench: b}
			go func() {
				defer close(done)
				client.run(stopped.Load)
			}()
			pick := faults.Match{Resource: "configmaps", Verbs: []string{"watch", "list"}}
			effects := []faults.Effect{
				faults.Disconnect{},
				faults.Disconnect{Abrupt: true},
				faults.Compact{},
				faults.Reset{},
				faults.Fail{Code: 500},
				faults.Delay{For: time.Second},
				faults.Cut{After: 300, Abrupt: true},
				faults.CutFrame{At: 9},
				faults.EndWatch{},
				faults.Duplicate{},
				faults.Outage{},
				faults.ShortWatch{For: time.Second},
				faults.IgnoreLimit{},
				faults.StallEvents{},
				faults.EndWatch{Error: &metav1.Status{Status: metav1.StatusFailure, Code: 500}},
			}
			for range 30 {
				injected := map[*testserver.Injection]faults.Effect{}
				for range 2 { // two at a time, because some errors need two faults
					effect := effects[random.IntN(len(effects))]
					injected[b.Inject(faults.Fault{
						Match: pick, Skip: random.IntN(2), Times: 1 + random.IntN(2), Effect: effect,
					})] = effect
				}
				// The client must send new requests, because faults affect only requests.
				b.Inject(faults.Fault{Times: random.IntN(2), Effect: faults.Disconnect{}}).Remove()
				churn(b, random, m, 1+random.IntN(15))
				<-time.After(time.Duration(random.IntN(5000)) * time.Millisecond)
				for i, effect := range injected {
					seen[fmt.Sprintf("%T", effect)] += i.Seen()
					i.Remove()
				}
			}
			<-time.After(time.Minute)
			stopped.Store(true)
			b.Inject(faults.Fault{Effect: faults.Disconnect{}})
			<-done
			want := map[string]string{}
			for key, version := range b.Snapshot().Versions(configMaps) {
				want[key.Name] = version
			}
			require.Equal(b, want, client.state, "after %d lists", client.lists)
			require.Len(b, want, len(m.objects))
		})
	}
	for _, name := range strings.Fields("Disconnect Compact Reset Fail Delay Cut CutFrame EndWatch Duplicate Outage ShortWatch IgnoreLimit StallEvents") {
		require.NotZero(t, seen["faults."+name], "no seed saw the effect of %s", name)
	}
}

// TestServerIsDeterministic sends equal requests to servers with equal seeds and compares the bytes of the answers.
func TestServerIsDeterministic(t *testing.T) {
	run := func() (out string) {
		inBubble(t, testserver.Options{Seed: 7, ManagedFields: true, BookmarkInterval: time.Second}, func(b *bench) {
			w := b.watch(mapsPath, "resourceVersion=100", "allowWatchBookmarks=true", "timeoutSeconds=30")
			churn(b, rand.New(rand.NewPCG(3, 3)), &model{objects: map[string]doc{}}, 100)
			all := must.Get(io.ReadAll(w.lines))(b)
			out = string(all) + string(b.do(http.MethodGet, mapsPath, nil).body)
		})
		return out
	}
	first := run()
	require.Contains(t, first, "BOOKMARK")
	for range 3 {
		require.True(t, first == run())
	}
}

// TestConcurrentWriters has many clients. Each create must succeed once, each conflict must be reported, and no update
// may be lost.
func TestConcurrentWriters(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, mapsPath, configMap("counter", "n", "0"))
		const writers, rounds = 8, 25
		done := make(chan error, writers)
		for range writers {
			go func() { done <- count(b, rounds) }()
		}
		for range writers {
			require.NoError(b, <-done)
		}
		u := must.Get(b.Get(configMaps, api.Key{Namespace: "default", Name: "counter"}))(b)
		require.Equal(b, doc{"n": strconv.Itoa(writers * rounds)}, u.Object["data"])
		require.Equal(b, strconv.Itoa(101+writers*rounds), u.GetResourceVersion())
	})
}

// count increments the counter with optimistic updates.
func count(b *bench, rounds int) error {
	for done := 0; done < rounds; {
		current := b.do(http.MethodGet, mapsPath+"/counter", nil).json(b.T)
		data := current["data"].(doc)
		n, err := strconv.Atoi(data["n"].(string))
		if err != nil {
			return err
		}
		data["n"] = strconv.Itoa(n + 1)
		switch a := b.do(http.MethodPut, mapsPath+"/counter", current); a.code {
		case http.StatusOK:
			done++
		case http.StatusConflict:
		default:
			return errors.New(string(a.body))
		}
	}
	return nil
}
