package aggregation

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/cluster/internal/bootstrap"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Aggregator keeps the APIServices of one server.
type Aggregator struct {
	store  *store.Store
	remote atomic.Pointer[[]service] // those with a Service, in the order of discovery
}

// service is what an APIService says.
type service struct {
	record    *store.Record
	tree      object.Tree
	gv        schema.GroupVersion
	group     int64 // priority of the group
	version   int64 // priority of the version in the group
	reference object.Tree
	managed   bool // restored by Run
}

// The keys of what a record keeps; see store.Value.
type (
	serviceKey struct{}
	servedKey  struct{}
)

// New returns an aggregator without a server.
func New() *Aggregator { return &Aggregator{} }

// Fork returns an aggregator without a server, for a fork of the cluster. It answers for the groups of this one until
// it runs.
func (a *Aggregator) Fork() *Aggregator {
	out := New()
	out.remote.Store(a.remote.Load())
	return out
}

// Connect gives the aggregator the objects of a server. It is called before the first request.
func (a *Aggregator) Connect(s *store.Store) { a.store = s }

// collections are the resources on which APIServices depend.
var collections = []schema.GroupResource{
	registry.CRDs, apiServices, {Resource: "services"}, {Group: "discovery.k8s.io", Resource: "endpointslices"},
}

var apiServices = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}

// Run works until ctx ends.
func (a *Aggregator) Run(ctx context.Context) error {
	for {
		var wakes []<-chan struct{}
		for _, of := range collections {
			wakes = append(wakes, a.changed(of)) // before the look at the objects, so that no change is missed
		}
		if err := a.sync(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wakes[0]:
		case <-wakes[1]:
		case <-wakes[2]:
		case <-wakes[3]:
		}
	}
}

// changed returns a channel that closes at the next change of a collection.
func (a *Aggregator) changed(of schema.GroupResource) <-chan struct{} {
	a.store.Lock()
	defer a.store.Unlock()
	return a.store.Collection(of).Changed()
}

// view returns the present state of a collection.
func (a *Aggregator) view(of schema.GroupResource) store.View {
	a.store.Lock()
	c := a.store.Collection(of)
	a.store.Unlock()
	return a.store.View(c)
}

// sync brings the APIServices to what they should be.
func (a *Aggregator) sync() error {
	wanted, present := a.wanted(), a.view(apiServices)
	var remote []service
	for r := range present.All() {
		s, _ := store.Value(r, serviceKey{}, func() (service, error) { return parse(r), nil })
		switch {
		case s.managed && wanted[r.Key.Name] == (schema.GroupVersion{}):
			a.drop(r)
		case s.reference != nil:
			remote = append(remote, s)
			if err := a.report(s); err != nil {
				return err
			}
		}
	}
	for name, gv := range wanted {
		if present.Get(api.Key{Name: name}) == nil {
			if err := a.create(name, gv); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(remote, func(x, y service) int {
		return cmp.Or(cmp.Compare(y.group, x.group), cmp.Compare(x.gv.Group, y.gv.Group),
			cmp.Compare(y.version, x.version), version.CompareKubeAwareVersionStrings(y.gv.Version, x.gv.Version))
	})
	a.remote.Store(&remote)
	return nil
}

func parse(r *store.Record) service {
	tree := r.Tree()
	spec := object.MapAt(tree, "spec")
	group, _ := object.IntAt(spec, "groupPriorityMinimum")
	priority, _ := object.IntAt(spec, "versionPriority")
	return service{
		record: r, tree: tree, group: group, version: priority, reference: object.MapAt(spec, "service"),
		gv:      schema.GroupVersion{Group: object.StringAt(spec, "group"), Version: object.StringAt(spec, "version")},
		managed: object.Labels(object.Metadata(tree))[bootstrap.Managed] == bootstrap.Always,
	}
}

// wanted returns the served versions of custom resources and of metrics, by the names of their APIServices.
func (a *Aggregator) wanted() map[string]schema.GroupVersion {
	out := map[string]schema.GroupVersion{}
	for r := range a.view(registry.CRDs).All() {
		all, _ := store.Value(r, servedKey{}, func() ([]schema.GroupVersion, error) { return served(r), nil })
		for _, gv := range all {
			out[gv.Version+"."+gv.Group] = gv
		}
	}
	for _, d := range a.store.Definitions() {
		if d.Compute != nil { // metrics
			out[d.Version+"."+d.Group] = d.GroupVersion()
		}
	}
	return out
}

// served returns the served versions of a definition.
func served(r *store.Record) (all []schema.GroupVersion) {
	spec := object.MapAt(r.Tree(), "spec")
	for _, v := range object.SliceAt(spec, "versions") {
		v, _ := v.(object.Tree)
		if served, _ := v["served"].(bool); served {
			all = append(all, schema.GroupVersion{Group: object.StringAt(spec, "group"), Version: object.StringAt(v, "name")})
		}
	}
	return all
}

// create stores the APIService of a version, unless there is one.
func (a *Aggregator) create(name string, gv schema.GroupVersion) error {
	a.store.Lock()
	defer a.store.Unlock()
	c := a.store.Collection(apiServices)
	if c.Get(api.Key{Name: name}) != nil {
		return nil
	}
	tree, err := bootstrap.Custom(gv, time.Now().UTC().Format(time.RFC3339), a.store.NewUID())
	if err == nil {
		_, err = a.store.Put(c, nil, tree)
	}
	if err != nil {
		return fmt.Errorf("aggregation: create the APIService %s: %w", name, err)
	}
	return nil
}

// drop deletes an APIService, unless it has changed.
func (a *Aggregator) drop(r *store.Record) {
	a.store.Lock()
	defer a.store.Unlock()
	if c := a.store.Collection(apiServices); c.Get(r.Key) == r {
		a.store.Drop(c, r)
	}
}

// services returns the APIServices with a Service.
func (a *Aggregator) services() []service {
	if all := a.remote.Load(); all != nil {
		return *all
	}
	return nil
}

// Groups returns the groups that belong to Services.
func (a *Aggregator) Groups() []registry.RemoteGroup {
	var out []registry.RemoteGroup
	for _, s := range a.services() {
		if last := len(out) - 1; last >= 0 && out[last].Name == s.gv.Group {
			out[last].Versions = append(out[last].Versions, s.gv.Version)
			continue
		}
		out = append(out, registry.RemoteGroup{Name: s.gv.Group, Versions: []string{s.gv.Version}})
	}
	return out
}

// Serve answers a request for a version that belongs to a Service. It returns false for others.
func (a *Aggregator) Serve(w http.ResponseWriter, r *http.Request) bool {
	all := a.services()
	if len(all) == 0 {
		return false
	}
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 4)
	if len(parts) < 3 || parts[0] != "apis" {
		return false
	}
	gv := schema.GroupVersion{Group: parts[1], Version: parts[2]}
	if !slices.ContainsFunc(all, func(s service) bool { return s.gv == gv }) {
		return false
	}
	http.Error(w, "service unavailable", http.StatusServiceUnavailable)
	return true
}
