package testkit_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// cluster is the custom resource of the controllers in these tests. The parts of a cluster are ConfigMaps. In a real
// operator they would be volumes, Secrets or StatefulSets.
type cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Replicas int  `json:"replicas,omitempty"`
		Size     int  `json:"size,omitempty"`
		Proxy    bool `json:"proxy,omitempty"`
	} `json:"spec"`
	Phase string `json:"phase,omitempty"`
}

var (
	clusters = api.Resource{Group: "db.example", Version: "v1", Kind: "Cluster", Plural: "clusters", Namespaced: true}
	parts    = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
)

// pattern is a mistake that controllers make: a reconcile with the mistake and without it, and a story in which it
// shows. The story has a fault only if it is faulty.
type pattern struct {
	kind, name     string   // the kind is one of Sieve's
	mistake, write string   // for the table of docs/verification.md
	bugs           []string // the published bugs that it covers
	reconcile      func(context.Context, *operator, *cluster) error
	story          func(*story)
}

// errBehind makes the controller try again later.
var errBehind = errors.New("the cache is behind")

// operator is a controller of clusters.
type operator struct {
	mended   bool // without the mistake
	clusters *informer.Informer[*cluster]
	parts    *informer.Informer[*corev1.ConfigMap]
	live     *apiclient.TypedClient[*cluster]
	store    *apiclient.TypedClient[*corev1.ConfigMap]
}

// run is the program. A cluster that is not in the cache is reconciled with its name and without a UID.
func (o *operator) run(ctx context.Context, k *testkit.Kit, p pattern) error {
	o.live = apiclient.NewTyped[*cluster](k.Client, clusters, "")
	o.store = apiclient.NewTyped[*corev1.ConfigMap](k.Client, parts, "")
	o.clusters = informer.New(o.live, informer.Options[*cluster]{Logger: k.Logger})
	o.parts = informer.New(o.store, informer.Options[*corev1.ConfigMap]{Logger: k.Logger})
	c := controller.New("clusters", controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		c, ok := o.clusters.Cache().Get(key)
		if !ok {
			c = &cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		}
		return controller.Result{}, p.reconcile(ctx, o, c)
	}), controller.Options{Logger: k.Logger})
	c.Watch(controller.For(o.clusters))
	c.Watch(controller.Map(o.parts, func(p *corev1.ConfigMap) []api.Key {
		return []api.Key{{Namespace: p.Namespace, Name: p.Labels["cluster"]}}
	}))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return o.clusters.Run(ctx) })
	g.Go(func() error { return o.parts.Run(ctx) })
	g.Go(func() error { return c.Run(ctx) })
	return g.Wait()
}

// all returns the parts in the cache. The stories have only one cluster.
func (o *operator) all() []*corev1.ConfigMap { return o.parts.Snapshot().List() }

func (o *operator) part(c *cluster, role string) (*corev1.ConfigMap, bool) {
	return o.parts.Cache().Get(api.Key{Namespace: c.Namespace, Name: c.Name + "-" + role})
}

// newPart returns a part with a fixed name. It names the cluster, the UID and the version that it is for.
func newPart(c *cluster, role, size string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: c.Name + "-" + role,
			Labels:      map[string]string{"cluster": c.Name, "uid": string(c.UID), "role": role},
			Annotations: map[string]string{"version": c.ResourceVersion},
		},
		Data: map[string]string{"size": size},
	}
}

// ensure creates parts unless they exist.
func (o *operator) ensure(ctx context.Context, c *cluster, roles ...string) error {
	for _, role := range roles {
		if _, exists := o.part(c, role); exists {
			continue
		}
		_, err := o.store.Create(ctx, newPart(c, role, fmt.Sprint(c.Spec.Size)), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// ensureReplicas creates the parts data-0, data-1 and so on, and returns the roles of parts beyond them.
func (o *operator) ensureReplicas(ctx context.Context, c *cluster) (surplus []string, err error) {
	for i := range c.Spec.Replicas {
		if err := o.ensure(ctx, c, fmt.Sprint("data-", i)); err != nil {
			return nil, err
		}
	}
	for i := c.Spec.Replicas; ; i++ {
		role := fmt.Sprint("data-", i)
		if _, ok := o.part(c, role); !ok {
			return surplus, nil
		}
		surplus = append(surplus, role)
	}
}

// remove deletes parts by name, whatever their UIDs are.
func (o *operator) remove(ctx context.Context, c *cluster, roles ...string) error {
	for _, role := range roles {
		err := o.store.Delete(ctx, api.Key{Namespace: c.Namespace, Name: c.Name + "-" + role}, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// write stores a cluster after a change.
func (o *operator) write(ctx context.Context, c *cluster, change func(*cluster)) error {
	next := *c
	change(&next)
	_, err := o.live.Update(ctx, &next, metav1.UpdateOptions{})
	return err
}

// story is one run of a pattern.
type story struct {
	*testkit.Kit
	pattern        pattern
	mended, faulty bool
	program        *testkit.Program
}

var db = api.Key{Namespace: "default", Name: "db"}

func (s *story) start() {
	o := &operator{mended: s.mended}
	s.program = s.Start(func(ctx context.Context) error { return o.run(ctx, s.Kit, s.pattern) })
}

// create creates the cluster.
func (s *story) create(change func(*cluster)) {
	c := &cluster{ObjectMeta: metav1.ObjectMeta{Namespace: db.Namespace, Name: db.Name}}
	change(c)
	testkit.Create(s.Kit, clusters, c)
}

func (s *story) edit(change func(*cluster)) { testkit.Edit(s.Kit, clusters, db, change) }

func (s *story) editPart(role string, change func(*corev1.ConfigMap)) {
	testkit.Edit(s.Kit, parts, api.Key{Namespace: db.Namespace, Name: db.Name + "-" + role}, change)
}

// fill writes data into a part, as a database does. A part that is deleted and created again has none.
func (s *story) fill(role string) {
	s.editPart(role, func(p *corev1.ConfigMap) { p.Data["rows"] = "5" })
}

// restart starts the program again. If the story is faulty, the new program reads the clusters from an API server that
// is behind: it has the given state for a minute.
func (s *story) restart(behind *testserver.Snapshot) {
	s.program.Stop()
	if s.faulty {
		i := s.Server.Inject(faults.Fault{
			Match:  faults.Match{Verbs: []string{"list", "watch"}, Resource: "clusters.db.example"},
			Effect: faults.Stale{At: behind},
		})
		defer func() {
			s.Pass(time.Minute)
			i.Remove()
		}()
	}
	s.start()
}

// miss calls during while the program sees nothing, and the server forgets what happened, if the story is faulty.
func (s *story) miss(during func()) {
	if s.faulty {
		s.LoseEvents(during)
		return
	}
	during()
}

// crash calls during, stops the program and starts it again. If the story is faulty, the program dies after so many
// writes: no later write arrives.
func (s *story) crash(writes int, during func()) {
	revive := func() {}
	if s.faulty {
		revive = s.Server.Inject(faults.Fault{
			Match: faults.Match{Verbs: []string{"create", "update", "delete"}}, Skip: writes, Effect: faults.Reset{},
		}).Remove
	}
	during()
	s.program.Stop()
	revive()
	s.start()
}

// state returns what the server holds in the end.
func (s *story) state() (lines []string) {
	for _, c := range testkit.List[*cluster](s.Kit, clusters, "") {
		lines = append(lines, fmt.Sprint("cluster ", c.Name, c.Spec, c.Phase))
	}
	for _, p := range testkit.List[*corev1.ConfigMap](s.Kit, parts, "") {
		lines = append(lines, fmt.Sprint("part ", p.Labels["role"], " ", p.Data))
	}
	return lines
}

// play runs a story and returns the end state.
func (p pattern) play(t *testing.T, mended, faulty bool, o testserver.Options) (state []string) {
	began := time.Now()
	testkit.Run(t, testkit.Options{Server: o, Resources: []api.Resource{clusters}}, func(k *testkit.Kit) {
		s := &story{Kit: k, pattern: p, mended: mended, faulty: faulty}
		s.start()
		p.story(s)
		k.Pass(time.Hour) // longer than every backoff
		state = s.state()
	})
	require.Less(t, time.Since(began), 10*time.Second)
	return state
}

// TestPatterns is the oracle of Sieve: a fault that a controller must survive does not change the end state.
func TestPatterns(t *testing.T) {
	behind := testserver.Options{NoWatchList: true} // see TestAWatchListIsNotBehind
	for _, p := range patterns {
		t.Run(p.name, func(t *testing.T) {
			require.NotEqual(t, p.play(t, false, false, behind), p.play(t, false, true, behind), "the fault shows no mistake")
			require.Equal(t, p.play(t, true, false, behind), p.play(t, true, true, behind))
		})
	}
}

// TestAWatchListIsNotBehind runs the controllers that read an old state after a restart. leat begins with a WatchList
// without a version, which the server answers with its newest state. So these mistakes show only with a server that
// refuses WatchLists.
func TestAWatchListIsNotBehind(t *testing.T) {
	for _, p := range patterns {
		if p.kind == "stale" {
			t.Run(p.name, func(t *testing.T) {
				require.Equal(t, p.play(t, false, false, testserver.Options{}), p.play(t, false, true, testserver.Options{}))
			})
		}
	}
}

var rewrite = flag.Bool("rewrite", false, "write the table of docs/verification.md")

// TestThePageListsThePatterns compares the table of the page with the patterns.
func TestThePageListsThePatterns(t *testing.T) {
	const path, begin, end = "../docs/verification.md", "<!-- patterns -->\n", "<!-- end of patterns -->\n"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)

	covered := map[string]bool{}
	rows := "| kind | test | the mistake | write instead | bugs of Sieve |\n|---|---|---|---|---|\n"
	for _, p := range patterns {
		for _, bug := range p.bugs {
			require.False(t, covered[bug], "%s is listed twice", bug)
			covered[bug] = true
		}
		rows += fmt.Sprintf("| %s | `%s` | %s | %s | %s |\n", p.kind, p.name, p.mistake, p.write, strings.Join(p.bugs, ", "))
	}
	require.GreaterOrEqual(t, len(covered), 20)
	rows += fmt.Sprintf("\n%d patterns cover %d of the 46 bugs.\n", len(patterns), len(covered))
	page := before + begin + rows + end + after
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
		return
	}
	require.Equal(t, page, string(text), "go test ./testkit -run TestThePageListsThePatterns -rewrite")
}
