package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

const (
	rows  = `document.querySelectorAll(".informers > tbody > tr:not(.details)")`
	big   = `[...document.querySelectorAll("#live .stage .big")].map(b => b.textContent)`
	lines = `document.querySelectorAll(".plot canvas").length`
)

func TestLive(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", light)
	p.until(rows + `.length === 2`)
	p.until(big + `.every(s => s !== "–")`)
	p.until(`parseFloat(` + big + `[0]) > 0`) // the demo changes objects
	p.until(lines + ` === 3`)
	require.Equal(t, "leat demo · leat", eval[string](p, `document.title`))
	require.Equal(t, []string{"pods", "replicasets.apps"}, eval[[]string](p, `[...`+rows+`].map(r => r.querySelector("button").textContent)`))
	require.Equal(t, "watching", eval[string](p, rows+`[0].cells[1].textContent`))
	require.Equal(t, "replicas", eval[string](p, `document.querySelector(".card h3").textContent`))
	p.until(`document.querySelector("#announce").textContent === "everything is synced and healthy"`)
}

// TestViews selects each view with the mouse. The title of the window names it.
func TestViews(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", light)
	p.until(rows + `.length === 2`)
	for _, view := range [][2]string{{"object", "One object · leat demo · leat"}, {"lab", "Lab · leat demo · leat"}, {"live", "leat demo · leat"}} {
		p.run(chromedp.Click(`nav a[data-view="` + view[0] + `"]`))
		p.until(`[...document.querySelectorAll("main > section")].every(s => s.hidden === (s.id !== "` + view[0] + `"))`)
		p.until(`document.title === "` + view[1] + `"`)
		require.Equal(t, "page", eval[string](p, `document.querySelector('nav a[data-view="`+view[0]+`"]').getAttribute("aria-current")`))
	}
	p.run(chromedp.Evaluate(`history.back()`, nil))
	p.until(`!document.querySelector("#lab").hidden`)
}

// TestChartsBeforeValues requires that a page that has just been opened has the axes of its charts.
func TestChartsBeforeValues(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", light)
	p.run(chromedp.Evaluate(`{
		const real = window.fetch;
		let first;
		window.fetch = async (path, options) => new Response(await (first ??= real(path, options).then(a => a.text())));
	}`, nil)) // the time stands still, so there is no second point
	p.until(rows + `.length === 2 && ` + lines + ` === 3`)
	require.True(t, eval[bool](p, `[...document.querySelectorAll(".plot canvas")].every(c => {
		const pixels = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		return pixels.some(v => v > 0);
	})`), "an axis is drawn")
	p.fits(light)
}

func TestKeyboard(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", light)
	p.until(rows + `.length === 2`)
	p.run(chromedp.Focus(".disclosure"), chromedp.KeyEvent(kb.Enter))
	p.until(`document.querySelector(".disclosure").getAttribute("aria-expanded") === "true"`)
	p.until(`document.querySelector(".details .handlers tbody th").textContent === "replicas: pods (owned by replicasets.apps)"`)
	p.run(chromedp.KeyEvent(kb.Enter))
	p.until(`document.querySelector(".details").hidden`)
	// A poll keeps the focus.
	p.run(chromedp.Evaluate(`window.version = `+rows+`[0].cells[3].textContent`, nil))
	p.until(rows + `[0].cells[3].textContent !== window.version`)
	require.True(t, eval[bool](p, `document.activeElement.matches(".disclosure")`))
}

// TestSizesAndColours requires that no view is wider than its window, and that both colour schemes are used.
func TestSizesAndColours(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]view{"light": light, "dark": dark, "narrow": narrow, "narrow-dark": narrowDark} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, demoURL, "", v)
			p.until(rows + `.length === 2`)
			p.until(lines + ` === 3`)
			p.fits(v)
			background := map[string]string{"light": "rgb(246, 248, 250)", "dark": "rgb(13, 17, 23)"}[v.scheme]
			require.Equal(t, background, eval[string](p, `getComputedStyle(document.body).backgroundColor`))
			if *shots != "" {
				p.until(`document.querySelector("#about").textContent && performance.now() > 20000`) // the charts fill
			}
			p.shoot("live-" + name)
			p.click(".disclosure")
			p.until(`document.querySelector(".facts").textContent !== ""`)
			p.fits(v)
			p.run(chromedp.Evaluate(`location.hash = "#/object"`, nil))
			p.until(`document.querySelectorAll(".results a").length > 0`)
			p.run(chromedp.Evaluate(`document.querySelector('.results a[href*="replicasets"]').click()`, nil))
			p.until(`document.querySelectorAll(".diff tbody tr").length > 0`)
			p.fits(v)
			p.shoot("object-" + name)
			p.run(chromedp.Evaluate(`location.hash = "#/lab"`, nil))
			p.until(`document.querySelectorAll(".action").length > 20`)
			p.fits(v)
			p.shoot("lab-" + name)
		})
	}
}

// TestNames requires landmarks, and a name for everything that has the focus.
func TestNames(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", light)
	p.until(rows + `.length === 2`)
	for _, landmark := range []string{"header", "nav[aria-label]", "main", "footer", "h1", `[aria-live="polite"]`} {
		require.True(t, eval[bool](p, `document.querySelector('`+landmark+`') !== null`), landmark)
	}
	for view, ready := range map[string]string{
		"live": lines + ` === 3`, "object": `document.querySelectorAll(".results a").length > 0`, "lab": `document.querySelectorAll(".action").length > 20`,
	} {
		p.run(chromedp.Evaluate(`location.hash = "#/`+view+`"`, nil))
		p.until(ready)
		p.fits(light)
		// A screen reader can jump to a landmark, and the link to the content does not leave the view.
		p.click(".skip")
		p.until(`document.activeElement.id === "main" && location.hash === "#/` + view + `"`)
		require.Equal(t, int64(1), eval[int64](p, `document.querySelectorAll("nav [aria-current=page]").length`))
	}
	require.Equal(t, []string{"Pipeline", "Informers", "Controllers"}, eval[[]string](p, `[...document.querySelectorAll("#live section")].filter(s => !s.hidden)
		.map(s => s.ariaLabel ?? document.getElementById(s.getAttribute("aria-labelledby")).textContent).slice(0, 3)`))
}

// TestProgramThatEnds shows that the page is old.
func TestProgramThatEnds(t *testing.T) {
	t.Parallel()
	url, stop, err := startDemo()
	require.NoError(t, err)
	t.Cleanup(stop)
	p := open(t, url, "", light)
	p.until(rows + `.length === 2`)
	require.True(t, eval[bool](p, `document.querySelector("#offline").hidden`))
	p.expectErrors()
	stop()
	p.until(`!document.querySelector("#offline").hidden`)
	require.Contains(t, eval[string](p, `document.querySelector("#offline").textContent`), "does not answer since")
	p.fitsEverywhere()
}

// TestLab presses every button of a demo of its own, and watches what follows.
func TestLab(t *testing.T) {
	t.Parallel()
	url, stop, err := startDemo()
	require.NoError(t, err)
	t.Cleanup(stop)
	p := open(t, url, "#/lab", light)
	pressed := map[string]bool{}
	press := func(action, said string) {
		t.Helper()
		pressed[action] = true
		button := `document.querySelector('button[data-action="` + action + `"]')`
		p.until(button + ` !== null`)
		p.run(chromedp.Evaluate(button+`.form.querySelector(".said").textContent = ""`, nil), chromedp.Evaluate(button+`.click()`, nil))
		p.until(button + `.form.querySelector(".said").textContent.includes("` + said + `")`)
	}
	enter := func(action, value string) {
		p.run(chromedp.Evaluate(`document.querySelector('button[data-action="`+action+`"]').form.querySelector("input").value = "`+value+`"`, nil))
	}
	stage := func(name string) string { return `document.querySelector('#lab .stage[data-stage="` + name + `"]')` }
	handlers := stage("handlers") + `.querySelector(".note").textContent`

	press("traffic", "0 a second")
	press("create", "shop/mill wants 3")
	p.until(`parseFloat(` + stage("cache") + `.querySelector(".big").textContent) >= 4`)
	press("change", "shop/mill has tier front")
	press("scale", "shop/mill wants 3")
	press("fail-reconciles", "done")
	press("delete-pod", "shop/mill-0")
	p.until(stage("workers") + `.querySelector(".dot").dataset.state === "bad"`)
	press("work", "done")
	press("cut", "done")
	press("compact", "done")
	press("delay", "injected delay 500ms")
	press("fail", "injected fail 503")
	press("fault", "injected delay 500ms")
	press("heal", "done")

	press("panic-handler", "see handlers")
	p.until(handlers + `.includes("panic")`)
	press("remove-handlers", "1 removed")
	press("stuck-handler", "see handlers")
	press("slow-handler", "see handlers")
	p.until(handlers + `.includes("stuck for")`)
	p.until(stage("handlers") + `.querySelector(".dot").dataset.state === "bad"`)
	p.run(chromedp.Evaluate(`location.hash = "#/live"`, nil))
	p.until(rows + `[0].dataset.state === "bad" && ` + rows + `[0].cells[0].textContent === "pods"`)
	p.run(chromedp.Evaluate(rows+`[0].querySelector("button").click()`, nil))
	p.until(`document.querySelector(".details:not([hidden])").textContent.includes("stuck for")`)
	p.run(chromedp.Evaluate(`location.hash = "#/lab"`, nil))
	press("remove-handlers", "2 removed")

	press("replica", "one more than 1")
	p.until(`document.querySelector("#badges").textContent.includes("replica-1 leads, 2 replicas")`)
	press("kill", "replica-1")
	p.run(chromedp.Evaluate(`location.hash = "#/live"`, nil))
	p.until(`document.querySelector("#electors-title + .cards").textContent.includes("replica-2lease default/leat-demoleads")`)
	p.until(`document.querySelector("#badges").textContent.includes("leads")`)
	p.run(chromedp.Evaluate(`location.hash = "#/lab"`, nil))

	press("pause", "done")
	press("delete", "shop/mill")
	for _, held := range [][2]string{
		{"fifo", "the event DELETED of replicasets shop/mill"},
		{"handlers", "the batch of replicasets"},
		{"queue", "the change Deleted of replicasets shop/mill"},
		{"workers", "the key shop/mill"},
	} {
		p.until(`document.querySelector(".held-list li")?.textContent.includes("` + held[1] + `")`)
		p.until(stage(held[0]) + `.classList.contains("holds")`)
		if held[0] == "queue" {
			p.fitsEverywhere()
		}
		press("step", held[1])
	}
	press("resume", "done")
	press("panic-reconciles", "done")
	press("work", "done")
	p.run(chromedp.Evaluate(`location.hash = "#/object"`, nil), chromedp.Evaluate(`document.querySelector("#find").value = "shop/mill"`, nil))
	p.until(`document.querySelector("#find").dispatchEvent(new Event("input")) && document.querySelector(".finder .muted").textContent.startsWith("no object")`)
	require.LessOrEqual(t, eval[int64](p, `document.documentElement.scrollWidth`), light.width)

	p.run(chromedp.Evaluate(`location.hash = "#/lab"`, nil))
	// The picture stays in view, and what gets the focus is below it.
	p.run(chromedp.Evaluate(`document.querySelector('button[data-action="resume"]').focus()`, nil))
	p.until(`scrollY > 0`)
	require.True(t, eval[bool](p, `document.querySelector("#lab .picture").getBoundingClientRect().top >= document.querySelector("header").getBoundingClientRect().bottom - 1`))
	p.walksBelow("#lab .picture")
	p.expectErrors()
	enter("traffic", "many")
	press("traffic", "not a number")
	require.True(t, eval[bool](p, `document.querySelector(".lab-log li").classList.contains("error-text")`))
	p.fitsEverywhere()
	for _, action := range eval[[]string](p, `[...document.querySelectorAll("button[data-action]")].map(b => b.dataset.action)`) {
		require.True(t, pressed[action], "the test does not press %s", action)
	}
}

// TestWalkthrough takes the steps of the text. The lines of each step are those of the text beside it.
func TestWalkthrough(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "#/lab", light)
	next := `document.querySelector(".walk .primary")`
	p.until(`document.querySelector(".walk h2")?.textContent === "The life of one Pod"`)
	for _, title := range []string{"Before the Pod", "It is created", "It changes", "It is gone"} {
		p.until(next + `.textContent.endsWith(": ` + title + `")`)
		p.run(chromedp.Focus(".walk .primary"), chromedp.KeyEvent(kb.Enter))
		p.until(`document.querySelector(".walk .split h3").textContent === "` + title + `"`)
		p.until(`document.querySelector(".walk .printed").textContent.endsWith([...document.querySelectorAll(".walk .prose pre")].at(-1).textContent + "\n")`)
		require.True(t, eval[bool](p, `document.activeElement.matches(".walk .primary")`))
		require.Equal(t, title == "Before the Pod", eval[bool](p, `document.querySelector(".walk .prose").textContent.includes("The controller declares a struct")`))
	}
	require.Equal(t, "true", eval[string](p, next+`.getAttribute("aria-disabled")`))
	require.Equal(t, "It is gone", eval[string](p, `document.querySelector('.walk-steps [aria-current="step"]').textContent`))
	p.fitsEverywhere()
	p.shoot("walkthrough")
	p.run(chromedp.Click(`.walk .buttons button:first-child`))
	p.until(next + `.textContent === "Begin: Before the Pod"`)
}
