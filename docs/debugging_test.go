package docs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/scale/shard"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

var podsResource = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

var (
	replicaSets = api.Resource{Group: "apps", Version: "v1", Kind: "ReplicaSet", Plural: "replicasets", Namespaced: true}
	leases      = api.Resource{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Plural: "leases", Namespaced: true}
)

// debugged is the program of debugging.md, with the parts that its questions are about. Its Pods cannot be listed until
// somebody heals the server, and another replica keeps all shards until end is called.
type debugged struct {
	t       *testing.T
	server  *testserver.Server
	client  *apiclient.Client
	address string
	end     func()
}

// owned is what the program keeps of its objects.
type owned struct {
	metav1.ObjectMeta `json:"metadata"`
}

func newDebugged(t *testing.T) *debugged {
	d := &debugged{t: t, server: testserver.New(testserver.Options{})}
	set := d.create(replicaSets, "web", nil)
	for n := range 2 {
		d.create(podsResource, fmt.Sprint("web-", n), set)
	}
	d.create(configMaps, "settings", nil)
	d.server.Inject(faults.Fault{Effect: faults.Fail{Code: http.StatusForbidden}, Match: faults.Match{Resource: "pods"}})
	fixture.Start(d.t, d.server.Run)
	d.client = must.Get(apiclient.New(apiclient.Config{Host: d.server.URL(), Transport: d.server.Client().Transport}))(t)

	other, has := d.member("web-1"), make(heldRanges, 1)
	t.Cleanup(other.Follow(has))
	fixture.Start(d.t, other.Run)
	<-has
	_, endFirst, ok := other.Begin(t.Context(), 0)
	require.True(t, ok)
	_, endLast, ok := other.Begin(t.Context(), 1<<63)
	require.True(t, ok)
	d.end = sync.OnceFunc(func() {
		endFirst()
		endLast()
	})
	t.Cleanup(d.end)
	d.run()
	return d
}

// heldRanges receives the first ranges of a replica.
type heldRanges chan hashrange.Set

func (h heldRanges) Follow(held hashrange.Set) {
	select {
	case h <- held:
	default:
	}
}

// create creates an object, with a controller if owner is not nil.
func (d *debugged) create(r api.Resource, name string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.GroupVersionKind())
	u.SetNamespace("shop")
	u.SetName(name)
	if owner != nil {
		u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, replicaSets.GroupVersionKind())})
	}
	u = must.Get(d.server.Create(r, u))(d.t)
	return u
}

// edit changes the Pod web-1.
func (d *debugged) edit(tier string) {
	_, err := d.server.Edit(podsResource, api.Key{Namespace: "shop", Name: "web-1"}, func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"tier": tier})
	})
	require.NoError(d.t, err)
}

func (d *debugged) member(identity string) *shard.Member {
	m := must.Get(shard.New(d.client, shard.Options{Namespace: "shop", Group: "neighbours", Identity: identity, RetryPeriod: 50 * time.Millisecond}))(d.t)
	return m
}

// run starts the program. Its first reconcile fails, and a handler of the Pods is stuck until the test ends.
func (d *debugged) run() {
	page := must.Get(livepage.New(livepage.Options{Program: "neighbours"}))(d.t)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(d.t)
	d.address = listener.Addr().String()
	admin := manager.AdminOptions{Listener: listener, Debug: true, Page: page}
	p := must.Get(program.New(program.Options{
		Name: "neighbours", Client: d.client, Lease: api.Key{Namespace: "shop", Name: "neighbours"}, Logger: zap.NewNop(),
		Manager: manager.Options{Admin: admin, ShowReasons: true},
	}))(d.t)

	sets := program.Partial(p, replicaSets, informer.Options[*owned]{}).Informer()
	pods := program.Partial(p, podsResource, informer.Options[*owned]{Handling: informer.Handling{StuckAfter: time.Millisecond}}).Informer()
	failed := false
	program.Controller(p, "neighbours", controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
		if !failed {
			failed = true
			return controller.Result{}, errors.New("the first attempt fails")
		}
		return controller.Result{}, nil
	}), controller.For(sets), controller.Owns(sets, pods))
	release := make(chan struct{})
	must.Get(pods.Subscribe(func(api.Change[*owned]) { <-release }, informer.HandlerOptions{Name: "accounts"}))(d.t)

	member := d.member("web-0")
	maps := scopes.New(configMaps, scopes.Options[*owned]{})
	streams := shardedsource.NewScopes(maps, apiclient.NewPartial[*owned](d.client, configMaps, ""), hashrange.UID, shardedsource.Options{})
	d.t.Cleanup(member.Follow(streams))
	p.Add(maps, member)
	fixture.Start(d.t, streams.Run)
	fixture.Start(d.t, p.Run)
	d.t.Cleanup(func() { close(release) })
}

// inAShell returns what a line of the page prints.
func inAShell(t *testing.T, line string) string {
	command := exec.CommandContext(t.Context(), "sh", "-c", line)
	command.Stderr = os.Stderr
	out, _ := command.Output() // grep may find nothing yet
	return string(out)
}

// withoutCurl returns the whole answer to the request of a line.
func withoutCurl(t *testing.T, line string) string {
	method, address := http.MethodGet, ""
	line, _, _ = strings.Cut(line, " #")
	words := strings.Fields(line)
	for i, word := range words {
		if word == "-X" {
			method = words[i+1]
		}
		if word = strings.Trim(word, "'"); strings.HasPrefix(word, "http://") {
			address = word
		}
	}
	request := must.Get(http.NewRequestWithContext(t.Context(), method, address, nil))(t)
	answer := must.Get(http.DefaultClient.Do(request))(t)
	defer answer.Body.Close()
	out := must.Get(io.ReadAll(answer.Body))(t)
	return string(out)
}

// TestDebuggingPageAsksAProgram sends the request of each curl line of the page to a program, and requires what the
// page says about the answer. With curl and jq, a shell runs the lines.
func TestDebuggingPageAsksAProgram(t *testing.T) {
	t.Run("without curl", func(t *testing.T) { testDebuggingPage(t, withoutCurl) })
	t.Run("in a shell", func(t *testing.T) {
		for _, name := range []string{"sh", "curl", "jq"} {
			if _, err := exec.LookPath(name); err != nil {
				t.Skip(err)
			}
		}
		testDebuggingPage(t, inAShell)
	})
}

func testDebuggingPage(t *testing.T, run func(t *testing.T, line string) string) {
	var lines []string
	text := must.Get(os.ReadFile("debugging.md"))(t)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "curl ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	d := newDebugged(t)
	// prints runs a line until all texts are in its output. White space does not count, because jq adds it.
	prints := func(line string, texts ...string) {
		t.Helper()
		bare := strings.NewReplacer(" ", "", "\n", "")
		for end := time.Now().Add(time.Minute); ; {
			out := run(t, strings.ReplaceAll(line, "127.0.0.1:8081", d.address))
			missing := slices.DeleteFunc(slices.Clone(texts), func(text string) bool {
				return strings.Contains(bare.Replace(out), bare.Replace(text))
			})
			if len(missing) == 0 {
				return
			}
			require.True(t, time.Now().Before(end), "%s prints no %q but\n%s", line, missing, out)
		}
	}
	// next does the same for the next line of the page.
	next := func(part string, texts ...string) (line string) {
		t.Helper()
		require.NotEmpty(t, lines, "lines of the page; one with %s follows", part)
		line, lines = lines[0], lines[1:]
		require.Contains(t, line, part, "the next line of the page")
		prints(line, texts...)
		return line
	}

	refused := "a fault was injected"
	next("/readyz", "[-]informer-sync failed: pods: not synced, waiting", refused)
	next("/page/state", `"name": "pods"`, `"phase": "waiting"`, `"attempt":`, refused)
	next("/debug/controllers/neighbours", `"NotSynced": "pods: not synced, waiting`, refused)
	d.server.Heal()
	prints(lines[0], `"Outcome": "success"`) // so the next change is an update
	d.edit("front")

	next("/debug/why/shop/web",
		`"Outcome": "error"`, `"the first attempt fails"`, `"Next": "2`, `"Event": "retry"`, `"Outcome": "success"`,
		`"Source": "pods (owned by replicasets.apps)", "Event": "update", "Object": "shop/web-1", "Version": "`)

	next("/page/keys", `{"informer": "replicasets.apps", "key": "shop/web"}`, `{"informer": "pods", "key": "shop/web-1"}`)
	object := next("/page/object", `"type": "Cached"`, `"tier": "front"`, `"stored": 1`)
	pin := next("/page/pin")
	d.edit("back")
	prints(object, `"type": "Updated"`, `"tier": "back"`)
	state := "curl -s 'http://127.0.0.1:8081/page/object?informer=pods&key=shop/web-1'"
	prints(state, `"pinned": true`)
	require.Contains(t, pin, "# and -X DELETE")
	prints(strings.Replace(pin, "POST", "DELETE", 1))
	prints(state, `"pinned": false`)

	next("/page/state", `"name": "accounts"`, `"pending": 3`, `"stuckSince": 1`)
	next("/metrics",
		`leat_informer_handler_pending{handler="accounts", informer="pods"} 3`, `leat_informer_handler_stuck_seconds{handler="accounts",`,
		`workqueue_queue_duration_seconds_sum{controller="neighbours",`)

	next("/page/state", `"leads": true`, `"lease": "shop/neighbours"`, `"leader": "`, `"identity": "`)
	next("/metrics", `leader_election_master_status{name="shop/neighbours"} 1`)

	shards := next("/debug/controllers/shard-neighbours", "waits for 1 range (50.0 % of the hashes), because web-1 has not released them")
	d.end()
	prints(shards, "web-0 holds 1 range (50.0 % of the hashes)", `"Identity": "web-1"`)
	next("/debug/informers", `"Name": "configmaps in scopes"`, `"Name": "0x`, `"Objects":`, `"By": "client"`)
	next("/metrics", `leat_shard_held_ratio{group="neighbours"} 0.5`, `leat_informer_dropped_total{informer="configmaps in scopes"}`)
	require.Empty(t, lines, "lines of the page without a test")

	// What kubectl asks for, and the annotation that a recording has.
	all := apiclient.NewTyped[*unstructured.Unstructured](d.client, leases, "shop")
	leader := must.Get(all.Get(t.Context(), api.Key{Namespace: "shop", Name: "neighbours"}, metav1.GetOptions{}))(t)
	holder, _, err := unstructured.NestedString(leader.Object, "spec", "holderIdentity")
	require.NoError(t, err)
	require.NotEmpty(t, holder)
	members := 0
	_, err = all.List(t.Context(), api.Options[*unstructured.Unstructured]{ListOptions: metav1.ListOptions{
		LabelSelector: "leatproject.github.io/shard-group=neighbours",
	}}, func(lease *unstructured.Unstructured) error {
		members++
		require.Contains(t, lease.GetAnnotations(), "leatproject.github.io/shard-claims")
		require.True(t, strings.HasPrefix(lease.GetName(), "neighbours-"), lease.GetName())
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 2, members)
}
