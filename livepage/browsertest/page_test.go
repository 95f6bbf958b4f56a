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

func TestKeyboard(t *testing.T) {
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

func TestOneObject(t *testing.T) {
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
	p.until(`document.querySelector(".axis circle title").textContent === "Cached restarted"`)
}

func TestUnknownObject(t *testing.T) {
	p := open(t, demoURL, "", light)
	p.until(rows + `.length === 2`)
	p.expectErrors()
	p.run(chromedp.Evaluate(`location.hash = "#/object/pods/shop%2Fnone"`, nil))
	p.until(`document.querySelector("#object .error-text").textContent.includes("does not hold this object")`)
	require.True(t, eval[bool](p, `document.querySelector(".object-body").hidden`))
}

// TestSizesAndColours requires that no view is wider than its window, and that both colour schemes are used.
func TestSizesAndColours(t *testing.T) {
	for name, v := range map[string]view{"light": light, "dark": dark, "narrow": narrow} {
		t.Run(name, func(t *testing.T) {
			p := open(t, demoURL, "", v)
			p.until(rows + `.length === 2`)
			p.until(lines + ` === 3`)
			require.LessOrEqual(t, eval[int64](p, `document.documentElement.scrollWidth`), v.width)
			background := map[string]string{"light": "rgb(246, 248, 250)", "dark": "rgb(13, 17, 23)"}[v.scheme]
			require.Equal(t, background, eval[string](p, `getComputedStyle(document.body).backgroundColor`))
			if *shots != "" {
				p.until(`document.querySelector("#process").textContent && performance.now() > 20000`) // the charts fill
			}
			p.shoot("live-" + name)
			p.run(chromedp.Evaluate(`location.hash = "#/object"`, nil))
			p.until(`document.querySelectorAll(".results a").length > 0`)
			p.run(chromedp.Evaluate(`document.querySelector('.results a[href*="replicasets"]').click()`, nil))
			p.until(`document.querySelectorAll(".diff tbody tr").length > 0`)
			require.LessOrEqual(t, eval[int64](p, `document.documentElement.scrollWidth`), v.width)
			p.shoot("object-" + name)
		})
	}
}

// TestNames requires landmarks, and a name for everything that has the focus.
func TestNames(t *testing.T) {
	p := open(t, demoURL, "", light)
	p.until(rows + `.length === 2`)
	for _, landmark := range []string{"header", "nav[aria-label]", "main", "footer", "h1", `[aria-live="polite"]`} {
		require.True(t, eval[bool](p, `document.querySelector('`+landmark+`') !== null`), landmark)
	}
	nameless := `[...document.querySelectorAll("a, button, input, select, [tabindex='0']")].filter(e => e.getClientRects().length &&
		!(e.textContent.trim() || e.ariaLabel || e.labels?.length || e.getAttribute("aria-labelledby"))).map(e => e.outerHTML)`
	require.Empty(t, eval[[]string](p, nameless))
	p.run(chromedp.Evaluate(`location.hash = "#/object"`, nil))
	p.until(`document.querySelectorAll(".results a").length > 0`)
	require.Empty(t, eval[[]string](p, nameless))
}

// TestProgramThatEnds shows that the page is old.
func TestProgramThatEnds(t *testing.T) {
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
}

// TestLab presses every button of a demo of its own, and watches what follows.
func TestLab(t *testing.T) {
	url, stop, err := startDemo()
	require.NoError(t, err)
	t.Cleanup(stop)
	p := open(t, url, "#/lab", light)
	press := func(label string, said string) {
		t.Helper()
		p.until(`[...document.querySelectorAll(".action button")].some(b => b.textContent === "` + label + `")`)
		p.run(chromedp.Evaluate(`[...document.querySelectorAll(".action button")].find(b => b.textContent === "`+label+`").click()`, nil))
		p.until(`document.querySelector(".lab-log li")?.textContent.includes("` + label + `: ` + said + `")`)
	}
	stage := func(n string) string { return `document.querySelectorAll("#lab .stage")[` + n + `]` }
	press("Traffic", "0 a second")
	press("Scale", "shop/web wants 3")
	press("Fail", "done")
	press("Delete a pod", "shop/web-0")
	p.until(stage("5") + `.querySelector(".dot").dataset.state === "bad"`)
	press("Work", "done")
	press("Cut connections", "done")
	press("Drop the history", "done")
	press("Inject", "injected delay 500ms")
	press("Heal", "done")
	press("Pause", "batches wait")
	press("Delete", "shop/web")
	press("Step", "")
	press("Resume", "done")
	press("Panic", "done")
	press("Work", "done")
	p.run(chromedp.Evaluate(`location.hash = "#/live"`, nil))
	p.until(rows + `.length === 2 && ` + rows + `[0].cells[2].textContent === "0"`) // its pods are gone
	require.LessOrEqual(t, eval[int64](p, `document.documentElement.scrollWidth`), light.width)
}
