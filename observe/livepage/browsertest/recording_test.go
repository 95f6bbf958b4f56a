package browsertest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// openRecording serves the page of a recording, and shows it.
func openRecording(t *testing.T, path, hash string, v view) *tab {
	t.Helper()
	url, stop, err := start("page of the recording on ", "show", path, "--page")
	require.NoError(t, err)
	t.Cleanup(stop)
	p := open(t, url, hash, v)
	p.until(`document.querySelector("#play") !== null`)
	return p
}

const (
	momentRows = `document.querySelectorAll("#moment .informers tbody tr")`
	latestRows = `document.querySelectorAll("#moment .changes tbody tr")`
	objects    = `document.querySelectorAll("#moment .stage")[4].querySelector(".big").textContent`
	at         = `Number(document.querySelector("#time").value)`
	announced  = `document.querySelector("#announce").textContent`
)

// TestRecording moves through the recording of a demo with the keyboard, and plays it.
func TestRecording(t *testing.T) {
	p := openRecording(t, tape, "", light)
	p.until(momentRows + `.length === 2`)
	p.until(objects + ` === "0"`) // the demo has deleted everything in the end
	p.until(`document.querySelectorAll("#moment .plot canvas").length === 3`)
	require.Equal(t, "demo.rec · leat", eval[string](p, `document.title`))
	require.True(t, eval[bool](p, `document.querySelector("#problems") === null`))
	require.Contains(t, eval[string](p, `document.querySelector("#about").textContent`), "A recording has no batches, handlers, queues and reconciles.")

	p.run(chromedp.Focus("#time"), chromedp.KeyEvent(kb.Home))
	p.until(at + ` === 0 && ` + latestRows + `.length === 0`)
	p.until(announced + `.includes("0 changes so far, the last is nothing yet")`)
	for n := range 6 {
		// Changes of one instant come with one step, so only the time tells that the step was made.
		p.run(chromedp.Evaluate(`window.before = `+at, nil), chromedp.KeyEvent(kb.ArrowRight))
		p.until(at + ` > window.before`)
		if n == 0 {
			p.until(announced + `.includes("Added replicasets.apps default/web")`)
		}
	}
	p.until(latestRows + `.length >= 6`)
	require.True(t, eval[bool](p, `document.activeElement.id === "time"`))
	require.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3}, .* after the beginning$`, eval[string](p, `document.querySelector("#time").getAttribute("aria-valuetext")`))
	p.until(objects + ` !== "0"`)
	p.run(chromedp.Evaluate(`window.before = `+at, nil), chromedp.KeyEvent(kb.ArrowLeft))
	p.until(at + ` < window.before`)
	p.until(`new URLSearchParams(location.search).get("at") > 0`)
	p.shoot("recording-light")

	p.run(chromedp.SetValue("#speed", "0.1"), chromedp.Focus("#time"), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(" ")) // it plays from the beginning to the end
	p.until(`document.querySelector("#play").textContent === "Pause"`)
	p.run(chromedp.SetValue("#speed", "4"))
	p.until(`document.querySelector("#play").textContent === "Play" && ` + at + ` === Number(document.querySelector("#time").max)`)
	p.until(objects + ` === "0"`)
	p.run(chromedp.Click("#back"))
	p.until(at + ` < Number(document.querySelector("#time").max)`)
}

// TestTransport presses each button of the time, and moves the slider with the mouse.
func TestTransport(t *testing.T) {
	p := openRecording(t, tape, "", light)
	p.until(momentRows + `.length === 2 && ` + at + ` > 0`)
	for range 2 {
		p.run(chromedp.Evaluate(`window.before = `+at, nil))
		p.click("#back")
		p.until(at + ` < window.before`)
	}
	p.run(chromedp.Evaluate(`window.before = `+at, nil))
	p.click("#forward")
	p.until(at + ` > window.before`)
	passed := `document.querySelector(".transport output").textContent`
	require.Regexp(t, `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [\d.]+ (µs|ms|s) of [\d.]+ (ms|s)$`, eval[string](p, passed))

	p.run(chromedp.Evaluate(`{
		const slider = document.querySelector("#time");
		slider.value = slider.max / 2;
		slider.dispatchEvent(new Event("input"));
		slider.dispatchEvent(new Event("change"));
	}`, nil))
	p.until(`Math.abs(` + at + ` - document.querySelector("#time").max / 2) < 2`)
	p.until(`document.querySelector(".strip line").getAttribute("x1") > 490 && document.querySelector(".strip line").getAttribute("x1") < 510`)
	p.until(`new URLSearchParams(location.search).get("at") > 0`)

	width := eval[float64](p, `document.querySelector("#time").getBoundingClientRect().width`)
	p.run(chromedp.SetValue("#speed", "0.1"), chromedp.Evaluate(`window.before = `+at, nil), chromedp.Click("#play"))
	p.until(at + ` > window.before && document.querySelector("#play").textContent === "Pause"`)
	require.InDelta(t, width, eval[float64](p, `document.querySelector("#time").getBoundingClientRect().width`), 0.5, "the slider keeps its place")
	p.run(chromedp.Click("#play"))
	p.until(`document.querySelector("#play").textContent === "Play"`)
	require.True(t, eval[bool](p, at+` < document.querySelector("#time").max`), "it stopped before the end")

	p.run(chromedp.Focus("#time"), chromedp.KeyEvent(kb.End))
	p.until(at + ` === Number(document.querySelector("#time").max)`)
	p.run(chromedp.KeyEvent(kb.PageUp)) // in a range input, Page Up moves towards the end; there is nothing behind it
	p.run(chromedp.KeyEvent(kb.PageDown))
	p.until(at + ` < document.querySelector("#time").max`)
	p.run(chromedp.Evaluate(`document.querySelector('nav a[data-view="object"]').click()`, nil))
	p.until(`!document.querySelector("#object").hidden && document.querySelector("#moment").hidden`)
}

// TestRecordedObject follows one object through the time, with its changed fields.
func TestRecordedObject(t *testing.T) {
	p := openRecording(t, tape, "#/object", light)
	p.until(`document.querySelectorAll(".results a").length === 4`)
	p.until(`document.querySelector(".results li .muted").textContent.includes("not at this moment")`)
	p.run(chromedp.Click(`.results a[href*="replicasets"]`))
	p.until(`document.querySelector(".object-title h2").textContent === "default/web"`)
	p.until(`document.querySelector(".object-title .muted").textContent.includes("deleted")`)
	states := `document.querySelectorAll(".versions button")`
	all := eval[int](p, states+`.length`)
	require.Greater(t, all, 5)
	p.run(chromedp.Click("#back"), chromedp.Click("#back")) // to states of this object
	p.until(states + `.length < ` + string(rune('0'+all%10)) + ` + ` + string(rune('0'+all/10)) + ` * 10`)
	p.until(`document.querySelector(".object-title .muted").textContent.includes("cached")`)
	p.until(`document.querySelectorAll(".diff tbody tr").length > 0`)
	p.until(`document.querySelector(".journey").textContent.includes("The recorded client received it at")`)
	require.True(t, eval[bool](p, `[...document.querySelectorAll("#object .muted")].some(e => /after this moment/.test(e.textContent))`))
	require.False(t, eval[bool](p, `[...document.querySelectorAll("#object button")].some(e => e.textContent === "Pin")`))
	p.shoot("recording-object")

	p.expectErrors()
	p.run(chromedp.Evaluate(`location.hash = "#/object/pods/default%2Fnone"`, nil))
	p.until(`document.querySelector("#object .error-text").textContent === "history: the recording has no such object"`)
	require.True(t, eval[bool](p, `document.querySelector(".object-body").hidden`))
	p.run(chromedp.Evaluate(`location.hash = "#/moment/configmaps/%"; window.before = `+at, nil), chromedp.Click("#back"))
	p.until(at + ` < window.before`) // the lone % is not a valid escape
}

// TestDamagedRecording shows what could be read, and what could not.
func TestDamagedRecording(t *testing.T) {
	whole, err := os.ReadFile(tape)
	require.NoError(t, err)
	cut := filepath.Join(t.TempDir(), "cut.rec")
	require.NoError(t, os.WriteFile(cut, whole[:len(whole)*2/3], 0o600))
	p := openRecording(t, cut, "", narrow)
	p.until(`document.querySelector("#problems")?.textContent.includes("A part of the file cannot be read. The rest is shown.")`)
	p.until(`document.querySelectorAll(".strip .gap").length === 1`)
	p.fitsEverywhere()
	p.shoot("recording-damaged")
}

// TestSizesAndColoursOfARecording requires of both views what TestSizesAndColours does.
func TestSizesAndColoursOfARecording(t *testing.T) {
	for name, v := range map[string]view{"light": light, "dark": dark, "narrow": narrow, "narrow-dark": narrowDark} {
		t.Run(name, func(t *testing.T) {
			p := openRecording(t, tape, "", v)
			p.until(momentRows + `.length === 2`)
			p.until(`document.querySelectorAll("#moment .plot canvas").length === 3`)
			p.fits(v)
			p.shoot("moment-" + name)
			for _, landmark := range []string{"header", "nav[aria-label]", "main", "footer", "h1", `[aria-live="polite"]`, `[role="group"][aria-label]`} {
				require.True(t, eval[bool](p, `document.querySelector('`+landmark+`') !== null`), landmark)
			}
			p.run(chromedp.Evaluate(`location.hash = "#/object"`, nil))
			p.until(`document.querySelectorAll(".results a").length === 4`)
			p.fits(v)
			p.run(chromedp.Evaluate(`location.hash = "#/object/replicasets.apps/default%2Fweb"`, nil))
			p.click("#back")
			p.click("#back")
			p.until(`document.querySelectorAll(".diff tbody tr").length > 0`)
			p.fits(v)
			p.shoot("recorded-" + name)
			// The link to the content does not leave the view.
			p.click(".skip")
			p.until(`document.activeElement.id === "main"`)
			require.False(t, eval[bool](p, `document.querySelector("#object").hidden`))
		})
	}
}
