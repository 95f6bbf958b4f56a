package browsertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/manager/leaderelection"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/workqueue"
)

var (
	configMaps = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	secrets    = api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
)

// config is what the programs of these tests watch.
type config struct {
	metav1.ObjectMeta `json:"metadata"`
}

// program is a program in this process, with every part that a page shows.
type program struct {
	t      *testing.T
	server *testserver.Server
	client *apiclient.Client
}

func newProgram(t *testing.T) *program {
	p := &program{t: t, server: testserver.New(testserver.Options{})}
	fixture.Start(p.t, p.server.Run)
	p.client = must.Get(apiclient.New(apiclient.Config{Host: p.server.URL(), Transport: p.server.Client().Transport}))(t)
	return p
}

func (p *program) watch(r api.Resource, o informer.Options[*config]) *informer.Informer[*config] {
	return informer.New(apiclient.NewPartial[*config](p.client, r, ""), o)
}

func object(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	u.SetNamespace("shop")
	u.SetName(name)
	return u
}

// serve serves a handler on loopback until the test ends, and returns its URL.
func (p *program) serve(h http.Handler) string {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(p.t)
	server := must.Get(manager.NewServer("page", manager.ServerOptions{Listener: listener, Handler: h, SameOrigin: true}))(p.t)
	fixture.Start(p.t, server.Run)
	return fmt.Sprintf("http://%s/", listener.Addr())
}

// mill is a program with a manager. Some of its parts have a problem. It returns the URLs of its page: as the admin
// server serves it with debug, and without.
func (p *program) mill() (debug, bare string) {
	page := must.Get(livepage.New(livepage.Options{Program: "mill"}))(p.t)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(p.t)
	elector := must.Get(leaderelection.New(p.client, leaderelection.Options{Namespace: "shop", Name: "mill", Identity: "mill-0"}))(p.t)
	m := must.Get(manager.New(manager.Options{Elector: elector, Admin: manager.AdminOptions{Listener: listener, Debug: true, Page: page}}))(p.t)
	require.NoError(p.t, m.Readyz().Add("water", func(context.Context) error { return errors.New("the channel is dry") }))

	maps := p.watch(configMaps, informer.Options[*config]{})
	busy := make(chan struct{})
	grind := controller.New("grinder", controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		switch key.Name {
		case "heavy":
			close(busy)
			<-ctx.Done()
		case "bad":
			return controller.Result{}, errors.New("there is a stone in it")
		}
		return controller.Result{}, nil
	}), controller.Options{})
	grind.Watch(controller.For(maps))
	require.NoError(p.t, m.Add(maps, grind))
	fixture.Start(p.t, m.Run)
	<-maps.Synced()

	p.server.Inject(faults.Fault{Effect: faults.Fail{Code: http.StatusForbidden}, Match: faults.Match{Resource: "secrets"}})
	denied := p.watch(secrets, informer.Options[*config]{})
	lonely := p.watch(api.Resource{Version: "v1", Kind: "Service", Plural: "services", Namespaced: true}, informer.Options[*config]{})
	waiting := controller.New("waiting", controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
		return controller.Result{}, nil
	}), controller.Options{})
	waiting.Watch(controller.For(denied))
	mail := workqueue.New[string](workqueue.Options{Name: "mail"})
	mail.Add("a letter")
	for name, part := range map[string]any{
		"": denied, "lonely": lonely, "waiting": waiting, "mail": mail, "writes": cachedclient.NewGate(cachedclient.GateOptions{}),
	} {
		must.Get(page.Register(name, part))(p.t)
	}
	fixture.Start(p.t, denied.Run)
	fixture.Start(p.t, waiting.Run)
	create := func(name string) {
		must.Get(p.server.Create(configMaps, object(name)))(p.t)
	}
	create("heavy")
	<-busy // with the only worker
	create("bad")
	create("good")
	grind.Add(api.Key{Namespace: "shop", Name: "urgent"}, workqueue.Item{Priority: 10})
	return fmt.Sprintf("http://%s/page/", listener.Addr()), p.serve(page.Handler(false))
}

// TestEveryPanel shows a program with each part that a page can show, through the admin server of its manager.
func TestEveryPanel(t *testing.T) {
	t.Parallel()
	debug, bare := newProgram(t).mill()
	p := open(t, debug, "", light)
	row := func(name string) string {
		return `[...` + rows + `].find(r => r.querySelector("button").textContent === "` + name + `")`
	}
	card := func(title string) string {
		return `[...document.querySelectorAll("#live .card")].find(c => c.querySelector("h3").textContent === "` + title + `")`
	}
	// Informers: the stream's state and why, worst first.
	p.until(rows + `.length === 3 && ` + rows + `[0] === ` + row("secrets"))
	p.until(row("secrets") + `.cells[1].textContent.match(/^(waiting|WatchList|list).*/) && ` + row("secrets") + `.querySelector(".why").textContent.includes("a fault was injected")`)
	p.until(row("services") + `.cells[1].textContent === "not startednothing runs the informer"`)
	p.until(row("configmaps") + `.cells[1].innerText === "watching"`)
	p.until(row("configmaps") + `.cells[2].textContent === "3"`)
	p.run(chromedp.Evaluate(row("secrets")+`.querySelector("button").click()`, nil))
	p.until(`document.querySelector(".details:not([hidden]) .error-text").textContent.includes("a fault was injected")`)
	p.until(`document.querySelector(".details:not([hidden]) .handlers tbody").textContent.includes("waiting: secretsnot synced")`)
	// Controllers: the queue by priority, the worker with its key, and what is missing.
	p.until(card("grinder") + `.querySelector(".workers a").textContent === "shop/heavy"`)
	p.until(card("grinder") + `.querySelector(".workers .num").textContent.match(/ s$/)`)
	p.until(card("grinder") + `.textContent.includes("ready by priority: 10: 1, 0: 2")`)
	p.until(card("grinder") + `.textContent.includes("0 workers idle")`)
	p.until(card("waiting") + `.textContent.includes("waits for its sources")`)
	p.until(card("waiting") + `.querySelector(".error-text").textContent.includes("secrets")`)
	// Leader, gate, other queues, health.
	p.until(card("mill-0") + `.textContent === "mill-0lease shop/millleads"`)
	p.until(card("mail") + `.textContent.startsWith("mailqueue1ready")`)
	p.until(card("writes") + `.textContent.startsWith("writesgate0keys")`)
	p.until(`document.querySelector("#badges").textContent.includes("leads") && /readyz: water \(.*✗ water/s.test(document.querySelector("#badges").textContent)`)
	p.until(`/not synced: (secrets, services|services, secrets).*failing: secrets.*failing checks: readyz/.test(document.querySelector("#announce").textContent)`)
	p.until(`document.querySelector("#about").textContent.includes("goroutine")`)
	p.until(lines + ` === 3`)
	p.until(`document.querySelectorAll("#live .stage .dot[data-state]").length === 6`)
	require.True(t, eval[bool](p, `document.querySelector('nav a[data-view="lab"]').hidden`), "a program has no Lab by itself")
	p.fitsEverywhere()
	p.shoot("panels")
	// The worker's key leads to the object.
	p.run(chromedp.Evaluate(card("grinder")+`.querySelector(".workers a").click()`, nil))
	p.until(`document.querySelector(".object-title").textContent.includes("grinder is at work")`)

	// Without debug there are no keys, no names of replicas and no texts of errors.
	q := open(t, bare, "", light)
	q.until(rows + `.length === 3`)
	q.until(card("elector 1") + `.textContent === "elector 1leads"`)
	q.until(card("grinder") + `.textContent.includes("1 worker at work")`)
	q.run(chromedp.Evaluate(row("secrets")+`.querySelector("button").click()`, nil))
	q.until(`document.querySelector(".details:not([hidden]) .error-text").textContent.includes("when the program allows debugging")`)
	require.NotRegexp(t, "shop/|mill-0|injected|stone|dry", eval[string](q, `document.body.textContent`))
	require.True(t, eval[bool](q, `document.querySelector('nav a[data-view="object"]').hidden`))
	q.expectErrors()
	q.run(chromedp.Evaluate(`location.hash = "#/object/configmaps/shop%2Fheavy"`, nil))
	q.until(`document.querySelector("#object .error-text").textContent.includes("shows no keys and no objects")`)
}

// TestFollower shows a replica that does not lead.
func TestFollower(t *testing.T) {
	t.Parallel()
	program := newProgram(t)
	other := must.Get(leaderelection.New(program.client, leaderelection.Options{Namespace: "shop", Name: "mill", Identity: "mill-1"}))(t)
	fixture.Start(program.t, func(ctx context.Context) error {
		return other.Run(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	})
	<-other.Elected()
	page := must.Get(livepage.New(livepage.Options{Program: "mill"}))(t)
	elector := must.Get(leaderelection.New(program.client, leaderelection.Options{Namespace: "shop", Name: "mill", Identity: "mill-0"}))(t)
	must.Get(page.Register("mill", elector))(t)
	fixture.Start(program.t, func(ctx context.Context) error {
		return elector.Run(ctx, func(context.Context) error { return errors.New("it does not lead") })
	})
	p := open(t, program.serve(page.Handler(true)), "", light)
	p.until(`document.querySelector("#badges .tip-button").textContent === "follows mill-1 (lease shop/mill, this replica is mill-0)"`)
	p.until(`document.querySelector("#electors-title + .cards").textContent.includes("waits for the lease of mill-1")`)
	p.until(`document.querySelector("#announce").textContent === "does not lead"`)
	require.Contains(t, eval[string](p, `document.querySelector("#live .hint").textContent`), "no informer and no controller")
	// A replica that cannot read the lease says so.
	program.server.Inject(faults.Fault{Effect: faults.Fail{Code: http.StatusForbidden}, Match: faults.Match{Resource: "leases.coordination.k8s.io"}})
	p.until(`document.querySelector("#electors-title + .cards .error-text").textContent.includes("a fault was injected")`)
	p.until(`document.querySelector("#badges .tip-button").textContent.includes("the last attempt failed: ")`)
	p.until(`document.querySelector("#badges .dot").dataset.state === "bad"`)
	p.fitsEverywhere()
}
