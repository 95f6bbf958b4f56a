package browsertest

import (
	"context"
	"errors"
	"testing"
	"time"

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

func TestOneObject(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "#/object", light)
	p.until(`document.activeElement.id === "find"`)
	p.run(chromedp.SendKeys("#find", "shop/"))
	p.until(`document.querySelectorAll(".results a").length > 0`)
	p.run(chromedp.Click(`.results a[href*="replicasets"]`))
	p.until(`document.querySelector(".object-title h2").textContent.startsWith("shop/")`)
	p.until(`document.querySelectorAll(".diff tbody tr").length > 0`) // after the next change
	p.until(`document.querySelectorAll(".steps li").length >= 2`)
	p.until(`document.querySelector("#reconciles-title + div tbody tr td:nth-child(3)").textContent === "succeeded"`)
	p.until(`document.querySelectorAll(".axis circle").length > 1`)
	p.run(chromedp.Click(`.object-body button[aria-pressed]`))
	p.until(`document.querySelector(".object-body button[aria-pressed]").textContent === "Pinned"`)
	p.run(chromedp.Click(`.object-body button[aria-pressed]`))
	p.until(`document.querySelector(".object-body button[aria-pressed]").textContent === "Pin"`)
	// The page begins a new memory, as after a restart of the program: its states replace those of the old one.
	p.run(chromedp.Evaluate(`{
		const real = window.fetch;
		window.fetch = async (path, options) => {
			const answer = await real(path, options);
			if (!path.startsWith("object?")) return answer;
			const body = await answer.json();
			const now = Date.now() * 1000;
			const versions = [{ sequence: 1, type: "Cached", version: "restarted", received: now, stored: now, object: {} }];
			return new Response(JSON.stringify({ ...body, began: 1, versions }));
		};
	}`, nil))
	p.until(`document.querySelectorAll(".axis circle").length === 1`)
	p.until(`document.querySelector(".caption").textContent.startsWith("Cached, version restarted")`)
}

func TestUnknownObject(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", light)
	p.until(rows + `.length === 2`)
	p.expectErrors()
	p.run(chromedp.Evaluate(`location.hash = "#/object/pods/shop%2Fnone"`, nil))
	p.until(`document.querySelector("#object .error-text").textContent.includes("does not hold this object")`)
	require.True(t, eval[bool](p, `document.querySelector(".object-body").hidden`))
	for hash, said := range map[string]string{
		"#/object/pods/%E0": "does not hold this object", "#/object/none/shop%2Fweb": "there is no informer of this name", "#/object/pods/a%2Fb%2Fc": "livepage: key: ",
	} {
		p.run(chromedp.Evaluate(`location.hash = "`+hash+`"`, nil))
		p.until(`document.querySelector("#object .error-text").textContent.includes("` + said + `")`)
		require.True(t, eval[bool](p, `document.querySelector(".object-body").hidden`))
	}
}

// TestObjectOfAProgramThatBeganAgain shows an object that the new process does not know. The old states stay, and the
// page does not say that the object is cached.
func TestObjectOfAProgramThatBeganAgain(t *testing.T) {
	t.Parallel()
	p, _ := followed(t, light)
	require.Equal(t, "configmaps · cached", eval[string](p, `document.querySelector(".object-title .muted").textContent`))
	p.run(chromedp.Evaluate(`{
		const real = window.fetch;
		window.fetch = async (path, options) => path.startsWith("object?") ? new Response('{"error":"it does not hold this object"}', { status: 404 }) : real(path, options);
	}`, nil))
	p.until(`document.querySelector(".object-title .muted").textContent === "configmaps · no longer followed"`)
	require.Equal(t, "idle", eval[string](p, `document.querySelector(".object-title .dot").dataset.state`))
	require.Equal(t, int64(1), eval[int64](p, `document.querySelectorAll(".versions button").length`))
}

// TestLateErrorOfAnotherVisit leaves an object during a request, and comes back. The request fails after that, and the
// page goes on to follow the object.
func TestLateErrorOfAnotherVisit(t *testing.T) {
	t.Parallel()
	p, set := followed(t, light)
	p.run(chromedp.Evaluate(`{
		const real = window.fetch;
		window.fetch = (path, options) => path.startsWith("object?") && !window.refuse ? new Promise((_, reject) => window.refuse = () => reject(new Error("too late"))) : real(path, options);
	}`, nil))
	p.until(`Boolean(window.refuse)`)
	versions := `document.querySelectorAll(".versions button").length`
	p.run(chromedp.Evaluate(`location.hash = "#/object"`, nil))
	p.until(`document.querySelector("#object .object-body").hidden`)
	p.run(chromedp.Evaluate(`location.hash = "#/object/configmaps/shop%2Frye"`, nil))
	p.until(`!document.querySelector("#object .object-body").hidden && ` + versions + ` === 1`)
	p.run(chromedp.Evaluate(`refuse()`, nil))
	require.True(t, eval[bool](p, `document.querySelector("#object > .error-text").hidden`))
	set("a")
	p.until(versions + ` === 2`)
}

// TestRefusedPin requires that the reason stays while the page goes on, until the next attempt.
func TestRefusedPin(t *testing.T) {
	t.Parallel()
	p, set := followed(t, light)
	p.run(chromedp.Evaluate(`{
		const real = window.fetch;
		window.full = true;
		window.fetch = async (path, options) => path.startsWith("pin?") && full ? new Response('{"error":"8 objects are pinned already"}', { status: 409 }) : real(path, options);
	}`, nil))
	p.click(".object-title + button")
	said := `document.querySelector("#object > .error-text")`
	p.until(`!` + said + `.hidden && ` + said + `.textContent === "8 objects are pinned already"`)
	set("a")
	p.until(`document.querySelectorAll(".versions button").length === 2`)
	require.False(t, eval[bool](p, said+`.hidden`))
	p.run(chromedp.Evaluate(`window.full = false`, nil))
	p.click(".object-title + button")
	p.until(said + `.hidden && document.querySelector(".object-title + button").textContent === "Pinned"`)
}

// TestObjectThatIsCreatedLater opens the address of an object before the object exists.
func TestObjectThatIsCreatedLater(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	page := must.Get(livepage.New(livepage.Options{Program: "early"}))(t)
	maps := p.watch(configMaps, informer.Options[*config]{})
	must.Get(page.Register("", maps))(t)
	fixture.Start(p.t, maps.Run)
	<-maps.Synced()
	tab := open(t, p.serve(page.Handler(true)), "", light)
	tab.expectErrors()
	tab.run(chromedp.Evaluate(`location.hash = "#/object/configmaps/shop%2Frye"`, nil))
	tab.until(`document.querySelector("#object .error-text").textContent.includes("does not hold this object")`)
	must.Get(p.server.Create(configMaps, object("rye")))(t)
	tab.until(`document.querySelectorAll(".versions button").length === 1 && document.querySelector("#object .error-text").hidden`)
}

// followed opens the page of an informer in this process, with a handler of its own, at one of its objects. set changes
// the object.
func followed(t *testing.T, v view, controllers ...func(*informer.Informer[*config]) *controller.Controller[api.Key]) (tab *tab, set func(value string)) {
	p := newProgram(t)
	page := must.Get(livepage.New(livepage.Options{Program: "followed"}))(t)
	must.Get(p.server.Create(configMaps, object("rye")))(t)
	maps := p.watch(configMaps, informer.Options[*config]{})
	must.Get(maps.Subscribe(func(api.Change[*config]) {}, informer.HandlerOptions{Name: "the counter"}))(t)
	for _, of := range controllers {
		c := of(maps)
		must.Get(page.Register("", c))(t)
		fixture.Start(p.t, c.Run)
	}
	must.Get(page.Register("", maps))(t)
	fixture.Start(p.t, maps.Run)
	<-maps.Synced()
	tab = open(t, p.serve(page.Handler(true)), "#/object/configmaps/shop%2Frye", v)
	tab.until(`document.querySelectorAll(".versions button").length === 1`)
	return tab, func(value string) {
		_, err := p.server.Edit(configMaps, api.Key{Namespace: "shop", Name: "rye"}, func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"grain": value})
		})
		require.NoError(t, err)
	}
}

// grinder fails in its first reconciles of a change.
func grinder(failures int) func(*informer.Informer[*config]) *controller.Controller[api.Key] {
	return func(maps *informer.Informer[*config]) *controller.Controller[api.Key] {
		c := controller.New("grinder", controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
			if failures--; failures >= 0 {
				return controller.Result{}, errors.New("there is a stone in it")
			}
			return controller.Result{RequeueAfter: time.Hour}, nil
		}), controller.Options{})
		c.Watch(controller.For(maps))
		return c
	}
}

const (
	steps   = `[...document.querySelectorAll(".steps li > b")].map(b => b.textContent).join()`
	caption = `document.querySelector(".caption").textContent`
	diff    = `document.querySelector(".diff tbody").innerText`
)

// TestJourney follows a change through each stage, to a reconcile that requests another one.
func TestJourney(t *testing.T) {
	t.Parallel()
	p, set := followed(t, light, grinder(0))
	require.Contains(t, eval[string](p, `document.querySelector(".journey").textContent`), "before somebody looked")
	require.Contains(t, eval[string](p, `document.querySelector(".versions").textContent`), "Cached · version ")
	require.NotContains(t, eval[string](p, `document.querySelector(".versions").textContent`), "field")
	set("a")
	p.until(`document.querySelectorAll(".versions button").length === 2`)
	p.until(steps + `.split(",").sort().join() === "added,handled,handled,popped,received,reconcile ends,reconcile starts,stored"`)
	require.Regexp(t, `^received,popped,stored,.*handled,.*added,.*reconcile starts,.*reconcile ends`, eval[string](p, steps))
	journey := eval[string](p, `document.querySelector(".steps").textContent`)
	require.Contains(t, journey, "the counter got it, and took ")
	require.Contains(t, journey, "grinder: configmaps got it, and took ")
	require.Contains(t, journey, "a handler added shop/rye to the queue")
	require.Contains(t, journey, "a worker of grinder took it")
	require.True(t, eval[bool](p, `[...document.querySelectorAll(".steps .num")].slice(1).every(n => /^(0|\+[\d.]+ (µs|ms|s))$/.test(n.textContent))`))
	row := `document.querySelector("#reconciles-title + div tbody tr").cells`
	p.until(row + `[2].textContent === "requeued" && ` + row + `[7].textContent.match(/^in (60|59) min$/)`)
	require.Regexp(t, `configmaps update shop/rye @\d+$`, eval[string](p, row+`[6].textContent`))
	// A change ends the delay.
	set("b")
	p.until(`[...document.querySelectorAll("#reconciles-title + div tbody tr")].map(r => r.cells[7].textContent).slice(0, 2).join().match(/^in (60|59) min,came earlier$/)`)
	p.fitsEverywhere()
}

// TestRetries shows a reconcile that failed: its error and when the next attempt is due.
func TestRetries(t *testing.T) {
	t.Parallel()
	p, set := followed(t, light, grinder(12)) // more than all attempts of this test
	set("a")
	row := `document.querySelector("#reconciles-title + div tbody tr").cells`
	p.until(row + `[2].textContent === "failedthere is a stone in it" && Number(` + row + `[5].textContent) > 3`)
	p.until(`[...document.querySelectorAll("#reconciles-title + div tbody tr")].some(r => r.cells[6].textContent.startsWith("grinder retry shop/rye"))`)
	p.until(row + `[7].textContent.match(/^in [\d.]+ (ms|s)$/)`)
	p.fitsEverywhere()
	p.run(chromedp.EmulateViewport(narrow.width, narrow.height))
	require.GreaterOrEqual(t, eval[int64](p, row+`[2].querySelector(".error-text").offsetWidth`), int64(200), "an error has more than a word a line")
}

// TestStates selects older states: in the list with the keyboard, and on the axis with a finger. A newer state does not
// change the selection.
func TestStates(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]view{"wide": light, "narrow": narrow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, set := followed(t, v, grinder(0))
			for n, value := range []string{"a", "b", "c"} {
				set(value)
				p.until(`document.querySelectorAll(".versions button").length === ` + string(rune('2'+n)))
			}
			button := func(n string) string { return `document.querySelectorAll(".versions button")[` + n + `]` }
			version := func(n string) string { return button(n) + `.textContent.match(/version (\d+)/)[1]` }
			p.until(diff + `.includes('"b"\t"c"') && ` + caption + `.startsWith("Updated, version " + ` + version("0") + `)`)
			p.run(chromedp.Evaluate(button("1")+`.focus()`, nil), chromedp.KeyEvent("\r"))
			p.until(diff + `.includes('"a"\t"b"') && ` + caption + `.startsWith("Updated, version " + ` + version("1") + `)`)
			require.Equal(t, "true", eval[string](p, button("1")+`.getAttribute("aria-current")`))
			set("d")
			p.until(`document.querySelectorAll(".versions button").length === 5`)
			require.True(t, eval[bool](p, button("2")+`.getAttribute("aria-current") === "true" && `+diff+`.includes('"a"\t"b"')`))
			require.True(t, eval[bool](p, `document.activeElement === `+button("2")), "a new state keeps the focus")

			p.run(chromedp.Evaluate(`document.querySelectorAll(".axis circle")[0].dispatchEvent(new Event("click"))`, nil))
			p.until(button("4") + `.getAttribute("aria-current") === "true" && ` + caption + `.startsWith("Cached, version ")`)
			p.until(`/began to follow the object/.test(document.querySelector("#object").textContent)`)
			p.run(chromedp.Evaluate(`[...document.querySelectorAll(".axis rect")].at(-1).dispatchEvent(new Event("click"))`, nil))
			p.until(`/^Reconcile of shop\/rye by grinder, .*: requeued, took /.test(` + caption + `)`)
			p.run(chromedp.Evaluate(button("0")+`.click()`, nil))
			p.until(diff + `.includes('"c"\t"d"') && ` + caption + `.startsWith("Updated, version ")`)
			p.fits(v)
		})
	}
}

// TestPressOnTheAxis presses on an older state. The press selects, because the next answer draws the axis again, and
// the click would have no mark.
func TestPressOnTheAxis(t *testing.T) {
	t.Parallel()
	p, set := followed(t, light)
	set("a")
	p.until(`document.querySelectorAll(".axis circle").length === 2`)
	p.run(chromedp.Evaluate(`document.querySelector(".axis circle").dispatchEvent(new PointerEvent("pointerdown"))`, nil))
	p.until(caption + `.startsWith("Cached, version ")`)
	set("b")
	p.until(`document.querySelectorAll(".axis circle").length === 3`)
	require.Contains(t, eval[string](p, caption), "Cached, version ")
}

// TestObjectWithoutController shows an object of a program that has no controller.
func TestObjectWithoutController(t *testing.T) {
	t.Parallel()
	p, set := followed(t, light)
	set("a")
	p.until(diff + `.includes('"a"')`)
	p.until(steps + ` === "received,popped,stored,handled"`)
	require.Contains(t, eval[string](p, `document.querySelector(".steps").textContent`), "No reconcile names this version as a cause.")
	p.until(`document.querySelector("#reconciles-title + div .hint").textContent.startsWith("No controller has reconciled this object")`)
	require.True(t, eval[bool](p, `document.querySelector("#object .error-text").hidden`))
	p.fitsEverywhere()
}
