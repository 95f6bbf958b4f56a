package browsertest

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/observe/livepage"
)

// The program of TestCrowd.
const (
	crowd        = 50      // informers, each with a controller
	crowdObjects = 20      // of each informer
	eventRate    = 100_000 // a minute, all informers together
	leastEvents  = 0.8 * eventRate / 60
)

// newCrowd starts the program and returns the URL of its page.
func newCrowd(t *testing.T) string {
	p := newProgram(t)
	page := must.Get(livepage.New(livepage.Options{Program: "crowd"}))(t)
	resources, stuck := make([]api.Resource, crowd), make(chan struct{})
	for n := range resources {
		r := api.Resource{Group: "example.com", Version: "v1", Kind: fmt.Sprintf("Widget%02d", n), Plural: fmt.Sprintf("widgets%02d", n), Namespaced: true}
		resources[n] = r
		p.server.Register(r)
		for o := range crowdObjects {
			u := object(fmt.Sprintf("object-%d", o))
			u.SetGroupVersionKind(r.GroupVersionKind())
			must.Get(p.server.Create(r, u))(t)
		}
		widgets := p.watch(r, informer.Options[*config]{})
		c := controller.New(r.Plural, controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
			return controller.Result{}, nil
		}), controller.Options{})
		c.Watch(controller.For(widgets))
		if n == 42 { // one has a problem
			must.Get(widgets.Subscribe(func(api.Change[*config]) { <-stuck }, informer.HandlerOptions{Name: "stuck"}))(t)
		}
		for _, part := range []any{widgets, c} {
			must.Get(page.Register("", part))(t)
		}
		fixture.Start(p.t, widgets.Run)
		fixture.Start(p.t, c.Run)
	}
	fixture.Start(p.t, func(ctx context.Context) error { return p.churn(ctx, resources) })
	t.Cleanup(func() { close(stuck) }) // before the informers end
	return p.serve(page.Handler(true))
}

// churn changes objects at eventRate until ctx ends. It catches up after a time without the processor.
func (p *program) churn(ctx context.Context, resources []api.Resource) error {
	began, done := time.Now(), 0
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		for due := int(time.Since(began).Seconds() * eventRate / 60); done < due; done++ {
			key := api.Key{Namespace: "shop", Name: fmt.Sprintf("object-%d", done/len(resources)%crowdObjects)}
			_, err := p.server.Edit(resources[done%len(resources)], key, func(u *unstructured.Unstructured) {
				u.SetAnnotations(map[string]string{"change": strconv.Itoa(done)})
			})
			if err != nil {
				return err
			}
		}
	}
}

// TestCrowd shows 50 informers that get 100,000 events a minute. The page stays readable, quick and small.
func TestCrowd(t *testing.T) {
	t.Parallel()
	url := newCrowd(t)
	p := open(t, url, "", light)
	p.run(dom.Disable()) // chromedp follows each change of a node, and these are many
	// It shows all events, and the informer with a problem first.
	p.until(`parseFloat(` + big + `[0].replace(",", "")) >= ` + fmt.Sprint(leastEvents))
	p.until(rows + `[0].textContent.startsWith("widgets42")`)
	// It shows the first 20, and all of them on request. The controllers are as few.
	require.Equal(t, int64(20), eval[int64](p, rows+`.length`))
	require.Equal(t, int64(12), eval[int64](p, `document.querySelectorAll("#controllers-title + .cards > .card").length`))
	p.shoot("crowd")
	p.click(`section[aria-labelledby="informers-title"] .more`)
	p.until(rows + `.length === 50`)
	require.Equal(t, "Show only 20", eval[string](p, `document.querySelector(".more").textContent`))
	p.click(`section[aria-labelledby="informers-title"] .more`)
	p.until(rows + `.length === 20`)
	search := func(text string) {
		p.run(chromedp.Evaluate(`{
			const search = document.querySelector('#live input[type="search"]');
			search.value = "`+text+`";
			search.dispatchEvent(new Event("input"));
		}`, nil))
	}
	search("WIDGETS07")
	p.until(rows + `.length === 1 && ` + rows + `[0].textContent.startsWith("widgets07")`)
	p.until(`document.querySelectorAll("#controllers-title + .cards > .card").length === 1`)
	require.Equal(t, "Informers (1 of 50)", eval[string](p, `document.querySelector("#informers-title").textContent`))
	search("")
	p.until(rows + `.length === 20`)
	p.run(chromedp.Evaluate(`[...document.querySelectorAll(".more")].forEach(b => b.click())`, nil))
	p.until(rows + `.length === 50`)
	for _, width := range []int64{1280, 400} {
		p.run(chromedp.EmulateViewport(width, 860))
		require.LessOrEqual(t, eval[int64](p, `document.documentElement.scrollWidth`), width)
	}
	p.bounded()
}

// bounded polls as quickly as the page can, with a clock that advances by three seconds for each poll. It requires that
// polls are quick, and that memory and nodes do not grow after the charts are full.
func (p *tab) bounded() {
	const polls, full = 220, 110 // the charts keep 300 seconds
	p.run(chromedp.Evaluate(`{
		const realFetch = window.fetch, realTimeout = window.setTimeout;
		window.polls = 0;
		window.setTimeout = (f, ms, ...rest) => realTimeout(f, ms === 1000 ? 0 : ms, ...rest);
		window.fetch = async (path, options) => {
			const answer = await realFetch(path, options);
			const body = await answer.json();
			body.now += 3000 * window.polls++;
			return new Response(JSON.stringify(body));
		};
	}`, nil))
	measure := func(polls int) (m map[string]float64) {
		p.until(fmt.Sprintf(`window.polls >= %d`, polls))
		p.run(heapprofiler.CollectGarbage(), chromedp.ActionFunc(func(ctx context.Context) error {
			all, err := performance.GetMetrics().Do(ctx)
			m = map[string]float64{}
			for _, metric := range all {
				m[metric.Name] = metric.Value
			}
			return err
		}))
		m["polls"] = eval[float64](p, `window.polls`)
		return m
	}
	p.run(performance.Enable())
	before := measure(full)
	after := measure(polls)
	a := func(name string) float64 { return (after[name] - before[name]) / (after["polls"] - before["polls"]) }
	p.t.Logf("a poll: %.1f ms of scripts, %.1f ms of styles and layout; heap %.1f MB, then %.1f MB; nodes %.0f, then %.0f",
		1000*a("ScriptDuration"), 1000*(a("LayoutDuration")+a("RecalcStyleDuration")), before["JSHeapUsedSize"]/1e6, after["JSHeapUsedSize"]/1e6, before["Nodes"], after["Nodes"])
	require.Less(p.t, a("ScriptDuration")+a("LayoutDuration")+a("RecalcStyleDuration"), 0.1, "seconds of work a poll")
	require.Less(p.t, after["JSHeapUsedSize"], 1.2*before["JSHeapUsedSize"]+1e6, "bytes of the heap")
	require.Less(p.t, after["JSHeapUsedSize"], 32e6, "bytes of the heap")
	require.Less(p.t, after["Nodes"], 1.1*before["Nodes"]+500, "nodes of the document")
}
