package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// fake lets a function of the page change each answer before the page reads it.
func (p *tab) fake(change string) {
	p.t.Helper()
	p.run(chromedp.Evaluate(`{
		const real = window.fetch;
		window.polls = 0;
		window.fetch = async (path, options) => {
			const body = await (await real(path, options)).json();
			polls++;
			(`+change+`)(body);
			return new Response(JSON.stringify(body));
		};
	}`, nil))
}

// TestProblemsAreFirst has more informers and controllers than the page shows at once. Those with a problem are among
// the first, and controllers stay there for a while.
func TestProblemsAreFirst(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", light)
	p.until(rows + `.length === 2`)
	p.fake(`(body) => {
		const [informer] = body.informers, [controller] = body.controllers;
		for (let n = 10; n < 40; n++) {
			body.informers.push({ ...informer, name: "other" + n });
			body.controllers.push({ ...controller, name: "other" + n });
		}
		body.informers.push({ ...informer, name: "zz stopped", running: false, phase: "watching" });
		body.controllers.push({ ...controller, name: "zz failing", stats: { ...controller.stats, Failed: Math.min(polls, 3) } });
	}`)
	p.until(rows + `.length === 20 && ` + rows + `[0].querySelector("button").textContent === "zz stopped"`)
	require.Equal(t, "idle", eval[string](p, rows+`[0].dataset.state`))
	first := `document.querySelector("#controllers-title + .cards > .card h3").textContent`
	p.until(first + ` === "zz failing"`)
	p.until(`polls >= 6`)
	require.Equal(t, "zz failing", eval[string](p, first))
}

// TestLongNames requires that the name of one informer does not move the columns of all out of the window.
func TestLongNames(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", light)
	p.until(rows + `.length === 2`)
	p.fake(`(body) => {
		const name = "verylongresourcenamesofateam.a-very-long-group.of-a-department.in-a-large-company.example.com";
		body.informers.push({ ...body.informers[0], name, handlers: [{ name: "h", synced: true, pending: 123456, panics: 0, stuckSince: body.now - 1e6 }] });
		body.controllers[0].name = name;
	}`)
	p.until(rows + `.length === 3 && ` + rows + `[0].cells[8].textContent.includes("stuck for ")`)
	p.until(`document.querySelector("#controllers-title + .cards > .card h3").textContent.startsWith("verylong")`)
	wrap := `document.querySelector("#informers-title").closest("section").querySelector(".table-wrap")`
	require.True(t, eval[bool](p, wrap+`.scrollWidth <= `+wrap+`.clientWidth`), "all columns are in the window")
	p.fitsEverywhere()
	p.run(chromedp.EmulateViewport(narrow.width, narrow.height))
	require.LessOrEqual(t, eval[int64](p, rows+`[0].cells[0].offsetWidth`), int64(300))
}

// TestLongNamesInARecording requires the same of the page of a recording.
func TestLongNamesInARecording(t *testing.T) {
	t.Parallel()
	p := openRecording(t, tape, "", light)
	p.until(momentRows + `.length === 2`)
	p.fake(`(body) => (body.scopes ?? []).forEach((s, n) => s.name = "verylongresourcenamesofateam" + n + ".a-very-long-group.of-a-department.in-a-large-company.example.com")`)
	p.click("#back")
	p.until(momentRows + `[0].textContent.startsWith("verylong")`)
	wrap := `document.querySelector("#scopes-title").closest("section").querySelector(".table-wrap")`
	require.True(t, eval[bool](p, wrap+`.scrollWidth <= `+wrap+`.clientWidth`), "all columns are in the window")
	p.fitsEverywhere()
}

// TestNewMembersAreNoTraffic adds an informer and a controller that have counted for a long time.
func TestNewMembersAreNoTraffic(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", light)
	p.until(rows + `.length === 2`)
	p.fake(`(body) => {
		(window.rates ??= []).push(...[...document.querySelectorAll("#live .stage .big")].slice(0, 2).map(b => b.textContent), document.querySelector(".legend").textContent);
		if (polls < 2) return;
		const [informer] = body.informers, [controller] = body.controllers;
		body.informers.push({ ...informer, name: "late", batches: 9e6, counters: { ...informer.counters, Events: 9e6 } });
		body.controllers.push({ ...controller, name: "late", stats: { ...controller.stats, Reconciles: 9e6 } });
	}`)
	p.until(rows + `.length === 3 && polls >= 5`)
	require.NotRegexp(t, `[0-9][KM]`, eval[string](p, `window.rates.join()`), "no rate is in thousands")
}
