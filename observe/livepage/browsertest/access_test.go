package browsertest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// named are the roles that need a name: controls, pictures, and what a screen reader can jump to.
var named = []string{
	"button", "checkbox", "combobox", "form", "image", "img", "link", "navigation", "region", "searchbox", "slider", "spinbutton", "table", "textbox",
}

// colours are functions for colours in a page: what is behind an element, and the contrast of two colours (WCAG 2).
const colours = `
	const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
	const rgb = (s) => s.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
	const over = (top, below) => [0, 1, 2].map(i => top[i] * (top[3] ?? 1) + below[i] * (1 - (top[3] ?? 1)));
	const behind = (e) => {
		if (!e) return [255, 255, 255];
		const c = rgb(getComputedStyle(e).backgroundColor);
		return (c[3] ?? 1) === 1 ? c : over(c, behind(e.parentElement));
	};
	const opacity = (e) => e ? getComputedStyle(e).opacity * opacity(e.parentElement) : 1;
	const contrast = (x, y) => {
		const [a, b] = [light(x), light(y)];
		return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
	};`

// unreadable lists the texts of a view whose contrast with the background is below 4.5. WCAG 2 allows 3 for large ones.
const unreadable = `(() => {` + colours + `
	const bad = [];
	const check = (e, style, what) => {
		const below = behind(e), color = rgb(e.ownerSVGElement ? style.fill : style.color);
		color[3] = (color[3] ?? 1) * opacity(e);
		const ratio = contrast(over(color, below), below);
		if (ratio < 4.5) bad.push(e.tagName + "." + e.className + " " + what.slice(0, 40) + " " + ratio.toFixed(2));
	};
	for (const e of document.querySelectorAll("body *")) {
		if (!e.getClientRects().length || e.closest(".visually-hidden, .skip:not(:focus), [aria-disabled], [aria-busy], :disabled")) continue;
		const style = getComputedStyle(e), own = [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.textContent).join("").trim();
		if (own || e.value) check(e, style, own || e.value);
		if (e.placeholder) check(e, getComputedStyle(e, "::placeholder"), e.placeholder);
	}
	return bad;
})()`

// faint lists the controls of a view whose edge has a contrast below 3 with what surrounds them. A button without a
// border is known by its text.
const faint = `(() => {` + colours + `
	const bad = [];
	for (const e of document.querySelectorAll("button, select, textarea, input:not([type=range])")) {
		if (!e.getClientRects().length || e.closest("[aria-disabled=true], [aria-busy=true], :disabled")) continue;
		const style = getComputedStyle(e), around = behind(e.parentElement), edge = rgb(style.borderTopColor);
		if (e.tagName === "BUTTON" && (style.borderTopWidth === "0px" || edge[3] === 0)) continue;
		const drawn = style.borderTopWidth === "0px" ? 1 : contrast(over(edge, around), around);
		const best = Math.max(drawn, contrast(behind(e), around));
		if (best < 3) bad.push(e.outerHTML.slice(0, 80) + " " + best.toFixed(2));
	}
	return bad;
})()`

// hoverOnly lists the texts that only a mouse can reach. An opened row of a table shows the whole of a long text.
const hoverOnly = `[...document.querySelectorAll("[title], svg title")].filter(e => e.getClientRects().length && !e.closest("tr")?.querySelector("[aria-expanded]"))
	.map(e => e.outerHTML.slice(0, 120))`

// skipped lists the headings of a view that skip a level.
const skipped = `[...document.querySelectorAll("main :is(h1, h2, h3, h4)")].filter(h => !h.closest("[hidden]"))
	.filter((h, n, all) => n > 0 && h.tagName[1] - all[n - 1].tagName[1] > 1).map(h => h.textContent)`

// clipped lists the texts that are cut off and whose whole is nowhere.
const clipped = `[...document.querySelectorAll("main *")].filter(e => e.getClientRects().length && getComputedStyle(e).textOverflow === "ellipsis" &&
	e.scrollWidth > e.clientWidth + 1 && !e.title && !e.closest("a")).map(e => e.className + " " + e.textContent)`

// overlapping lists the labels of a time axis that touch another one.
const overlapping = `[...document.querySelectorAll(".axis text")].filter(a => a.getClientRects().length && [...a.parentNode.querySelectorAll("text")].some(b => {
	const [x, y] = [a.getBoundingClientRect(), b.getBoundingClientRect()];
	return a !== b && x.left < y.right + 4 && y.left < x.right + 4 && x.top < y.bottom && y.top < x.bottom;
})).map(a => a.textContent)`

// charts counts the charts without values in a list.
const charts = `[...document.querySelectorAll(".chart")].filter(c => c.getClientRects().length)
	.filter(c => !c.querySelector("h3").textContent || !c.querySelector("ul[aria-label] li b")?.textContent).length`

// fits requires that a view has no scroll bar at its bottom, readable colours, names, and headings in order.
func (p *tab) fits(v view) {
	p.t.Helper()
	require.LessOrEqual(p.t, eval[int64](p, `document.documentElement.scrollWidth`), v.width)
	for what, list := range map[string]string{"contrast": unreadable, "contrast of edges": faint, "texts for a mouse only": hoverOnly, "levels of headings": skipped, "clipped": clipped, "overlapping": overlapping} {
		require.Empty(p.t, eval[[]string](p, list), what)
	}
	require.Zero(p.t, eval[int](p, charts), "charts without values")
	require.Empty(p.t, p.nameless())
}

// fitsEverywhere requires the same in both colour schemes, in a wide and in a narrow window.
func (p *tab) fitsEverywhere() {
	p.t.Helper()
	for _, v := range []view{narrowDark, narrow, dark, light} {
		p.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme}}),
			chromedp.EmulateViewport(v.width, v.height))
		p.until(fmt.Sprintf(`innerWidth === %d && matchMedia("(prefers-color-scheme: %s)").matches`, v.width, v.scheme))
		p.fits(v)
	}
}

// nameless lists what a screen reader finds without a name, and the tables without headers of their columns.
func (p *tab) nameless() (all []string) {
	p.t.Helper()
	type value struct {
		Value any `json:"value"`
	}
	type node struct {
		NodeID   string `json:"nodeId"`
		ParentID string `json:"parentId"`
		Ignored  bool   `json:"ignored"`
		Role     value  `json:"role"`
		Name     value  `json:"name"`
	}
	var tree struct {
		Nodes []*node `json:"nodes"`
	}
	p.run(chromedp.ActionFunc(func(ctx context.Context) error {
		return cdp.Execute(ctx, "Accessibility.getFullAXTree", nil, &tree) // Chromium has properties that cdproto does not know
	}))
	require.NotEmpty(p.t, tree.Nodes)
	nodes := map[string]*node{}
	for _, n := range tree.Nodes {
		nodes[n.NodeID] = n
	}
	heads := map[string]int{} // of each table
	for _, n := range tree.Nodes {
		role, _ := n.Role.Value.(string)
		if n.Ignored {
			continue
		}
		if slices.Contains(named, role) && n.Name.Value == "" {
			all = append(all, fmt.Sprintf("%s %s in %v", role, n.NodeID, nodes[n.ParentID].Name.Value))
		}
		switch role {
		case "table":
			heads[n.NodeID] += 0
		case "columnheader":
			table := n
			for table.Role.Value != "table" {
				table = nodes[table.ParentID]
			}
			heads[table.NodeID]++
		}
	}
	for id, n := range heads {
		if n == 0 {
			all = append(all, fmt.Sprintf("table %s without headers", id))
		}
	}
	return all
}

// walks presses Tab from the beginning to the end of a view. Each control gets the focus, in the order of the document,
// with an outline, and not behind the header.
func (p *tab) walks() {
	p.t.Helper()
	p.walksBelow("header.top")
}

// walksBelow is walks for a view that has something else that stays at the top.
func (p *tab) walksBelow(top string) {
	p.t.Helper()
	p.run(chromedp.Evaluate(`{
		window.controls = () => [...document.querySelectorAll("a[href], button, input, select, [tabindex='0']")].filter(e => e.classList.contains("skip") || e.getClientRects().length);
		document.body.tabIndex = -1;
		document.body.focus();
		document.body.removeAttribute("tabindex");
		scrollTo(0, 0);
	}`, nil))
	for n := range eval[int](p, `controls().length`) {
		p.run(chromedp.KeyEvent(kb.Tab))
		require.Empty(p.t, eval[string](p, fmt.Sprintf(`(() => {
			const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
			const name = e.outerHTML.slice(0, 120);
			if (e !== controls()[%d]) return name + " has the focus instead of " + controls()[%[1]d]?.outerHTML.slice(0, 120);
			if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) return name + " has no outline";
			const header = document.querySelector("%[2]s");
			if (!document.querySelector("header.top").contains(e) && !e.classList.contains("skip") && box.top < header.getBoundingClientRect().bottom - 1 && box.bottom > 0 && box.height < 200) return name + " is behind the header";
			if (box.bottom < 0 || box.top > innerHeight) return name + " is outside of the window";
			return "";
		})()`, n, top)))
	}
}

// low is a window in which a view has to scroll.
var low = view{400, 500, "dark"}

func TestKeyboardReachesEverything(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", low)
	p.until(rows + `.length === 2 && ` + lines + ` === 3`)
	p.run(chromedp.Evaluate(`location.hash = "#/lab"`, nil))
	p.until(`document.querySelectorAll(".action").length > 20 && document.querySelector(".walk .primary")?.getClientRects().length`)
	p.until(`fetch("keys?q=basket").then(r => r.json()).then(found => found.length > 0)`)
	p.run(chromedp.Evaluate(`location.hash = "#/object/replicasets.apps/shop%2Fbasket"`, nil))
	p.until(`document.querySelectorAll(".versions button").length > 1`)
	p.run(chromedp.Evaluate(`window.fetch = () => new Promise(() => {})`, nil)) // no new state while the test walks
	p.walks()
	for _, view := range []string{"lab", "live"} {
		p.run(chromedp.Evaluate(`location.hash = "#/`+view+`"`, nil))
		p.until(`!document.querySelector("#` + view + `").hidden`)
		p.walks()
	}

	r := openRecording(t, tape, "", low)
	r.until(momentRows + `.length === 2`)
	r.walks()
	r.click(".skip")
	r.until(`document.activeElement.id === "main"`)
}

// TestReducedMotion requires that nothing moves by itself for somebody who does not want it.
func TestReducedMotion(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", light)
	moving := `document.getAnimations({ subtree: true }).length`
	p.until(moving + ` > 0`) // a stage works
	p.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}))
	p.until(`matchMedia("(prefers-reduced-motion: reduce)").matches && document.querySelector("#live .stage.flows")`)
	require.Zero(t, eval[int](p, moving))
}

// TestEscape closes the details of an informer, and the focus stays on what opened them.
func TestEscape(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", light)
	p.until(rows + `.length === 2`)
	p.run(chromedp.Focus(".disclosure"), chromedp.KeyEvent(kb.Enter))
	p.until(`!document.querySelector(".details").hidden`)
	p.fits(light)
	p.run(chromedp.KeyEvent(kb.Escape))
	p.until(`document.querySelector(".details").hidden`)
	require.True(t, eval[bool](p, `document.activeElement.matches(".disclosure[aria-expanded=false]")`))
}

// TestAnnouncements lets informers fail and recover. A screen reader hears what stays, and no list of all names.
func TestAnnouncements(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", light)
	said := `document.querySelector("#announce").textContent`
	p.until(said + ` === "everything is synced and healthy"`)
	p.run(chromedp.Evaluate(`{
		window.said = [];
		new MutationObserver(() => said.push(document.querySelector("#announce").textContent)).observe(document.querySelector("#announce"), { childList: true });
		const real = window.fetch;
		window.polls = 0;
		window.failing = (poll) => poll % 2 === 0;
		window.fetch = async (path, options) => {
			const body = await (await real(path, options)).json();
			if (failing(++polls)) for (let n = 0; n < 30; n++) body.informers.push({ ...body.informers[0], name: "informer " + n, failing: true });
			return new Response(JSON.stringify(body));
		};
	}`, nil))
	p.until(`polls >= 4`)
	require.Empty(t, eval[[]string](p, `window.said`))
	p.run(chromedp.Evaluate(`window.failing = () => true`, nil))
	p.until(said + ` === "failing: 30 informers"`)
	p.until(`polls >= 8`)
	require.Len(t, eval[[]string](p, `window.said`), 1)
}

// TestTips reads what a badge says below it: with the keyboard, with the mouse and with a finger.
func TestTips(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]view{"light": light, "dark": dark, "narrow": narrow, "narrow-dark": narrowDark} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			debug, _ := newProgram(t).mill() // its controller waits for two minutes only
			p := open(t, debug, "", v)
			p.until(rows + `.length === 3 && /readyz: water.*✗ water/s.test(document.querySelector("#badges").textContent)`)
			badge := `[...document.querySelectorAll(".badge")].find(b => b.textContent.startsWith("readyz"))`
			tip := badge + `.querySelector(".tip")`
			shown := `[...document.querySelectorAll(".tip")].filter(t => t.getClientRects().length).map(t => t.textContent).join()`
			focused := `document.activeElement === ` + badge + `.querySelector("button")`
			middle := func(e string) (x, y float64) {
				at := eval[[]float64](p, `(() => { const b = `+e+`.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()`)
				return at[0], at[1]
			}
			mouse := func(e string) {
				x, y := middle(e)
				p.run(input.DispatchMouseEvent(input.MouseMoved, x, y))
			}
			tap := func(e string) {
				x, y := middle(e)
				p.run(input.DispatchTouchEvent(input.TouchStart, []*input.TouchPoint{{X: x, Y: y}}), input.DispatchTouchEvent(input.TouchEnd, nil))
			}
			open := `/✗ water failed/.test(` + shown + `)`
			closed := shown + ` === ""`

			require.True(t, eval[bool](p, closed))
			for range eval[int](p, `document.querySelectorAll(".skip, nav a:not([hidden]), .badge button").length`) {
				p.run(chromedp.KeyEvent(kb.Tab))
				if eval[bool](p, focused) {
					break
				}
			}
			p.until(focused + ` && ` + open)
			require.Empty(t, eval[string](p, `(() => {
				const box = `+tip+`.getBoundingClientRect(), button = document.activeElement.getBoundingClientRect();
				if (box.left < 0 || box.right > document.documentElement.clientWidth || box.bottom > innerHeight) return "outside of the window";
				if (box.top < button.bottom - 1) return "over its button";
				return document.elementFromPoint(box.left + box.width / 2, box.top + 4) === `+tip+` ? "" : "behind something";
			})()`))
			p.fits(v)
			p.shoot("tip-" + name)
			p.run(chromedp.KeyEvent(kb.Escape))
			p.until(closed)
			require.True(t, eval[bool](p, focused))
			for range 2 { // the second press does not hide it
				p.run(chromedp.KeyEvent(kb.Enter))
				p.until(open)
			}
			p.run(chromedp.KeyEvent(kb.Tab))
			p.until(`!/water/.test(` + shown + `) && !(` + focused + `)`)
			p.run(chromedp.Evaluate(`document.activeElement.blur()`, nil))
			p.until(closed)

			mouse(badge + `.querySelector("button")`)
			p.until(open)
			mouse(tip) // the text stays while the mouse is on it, longer than it lingers
			p.run(chromedp.Evaluate(`window.lingered = false; setTimeout(() => window.lingered = true, 400)`, nil))
			p.until(`window.lingered`)
			require.True(t, eval[bool](p, open))
			p.run(chromedp.KeyEvent(kb.Escape))
			p.until(closed)
			mouse(`document.querySelector("footer")`)
			mouse(badge + `.querySelector("button")`)
			p.until(open)
			p.run(input.DispatchMouseEvent(input.MouseMoved, 2, float64(v.height)-2))
			p.until(closed)

			p.run(emulation.SetTouchEmulationEnabled(true))
			for range 2 {
				tap(badge + `.querySelector("button")`)
				p.until(open)
			}
			tap(`document.querySelector(".brand")`)
			p.until(closed)
		})
	}
}

// TestEscapeHidesOneThing hides the text of a badge first, and then the details of an informer.
func TestEscapeHidesOneThing(t *testing.T) {
	t.Parallel()
	p := open(t, demoURL, "", light)
	p.until(rows + `.length === 2 && document.querySelector(".badge button")`)
	p.run(chromedp.Focus(".disclosure"), chromedp.KeyEvent(kb.Enter))
	p.until(`!document.querySelector(".details").hidden`)
	p.run(chromedp.Evaluate(`document.querySelector(".badge").dispatchEvent(new MouseEvent("mouseenter"))`, nil))
	p.until(`!document.querySelector(".tip").hidden`)
	p.run(chromedp.KeyEvent(kb.Escape))
	p.until(`document.querySelector(".tip").hidden`)
	require.False(t, eval[bool](p, `document.querySelector(".details").hidden`))
	p.run(chromedp.KeyEvent(kb.Escape))
	p.until(`document.querySelector(".details").hidden`)
}
