package browsertest

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var shots = flag.String("shots", "", "folder for screenshots; empty writes none")

// patience limits a wait for the page. CI may be slow.
const patience = 60 * time.Second

var (
	browser context.Context // of the Chromium of all tests
	leat    string          // the command
	demoURL string          // of a leat demo that all tests share
	tape    string          // a recording of leat demo
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "browsertest:", err)
		code = 1
	}
	os.Exit(code)
}

// runAll builds the command and the examples, and runs the tests with one demo and one browser.
func runAll(m *testing.M) (int, error) {
	path, err := findBrowser()
	if err != nil {
		return 1, err
	}
	folder, err := os.MkdirTemp("", "leat-page")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	leat = filepath.Join(folder, "leat")
	build := exec.Command("go", "build", "-o", folder, "./cmd/leat", "./examples/deployment")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("go build: %w: %s", err, out)
	}
	tape = filepath.Join(folder, "demo.rec")
	if out, err := exec.Command(leat, "demo", "--record", tape).CombinedOutput(); err != nil {
		return 1, fmt.Errorf("leat demo --record: %w: %s", err, out)
	}
	url, stop, err := startDemo()
	if err != nil {
		return 1, err
	}
	defer stop()
	demoURL = url
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(path))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Run(ctx); err != nil {
		return 1, fmt.Errorf("%s: %w", path, err)
	}
	browser = ctx
	return m.Run(), nil
}

func findBrowser() (string, error) {
	names := []string{"chromium", "chromium-browser", "google-chrome", "chrome"}
	if named := os.Getenv("CHROMIUM"); named != "" {
		names = []string{named}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no browser: install chromium, or set CHROMIUM to the path of one (looked for %s)", strings.Join(names, ", "))
}

// startDemo starts leat demo and returns the URL of its page.
func startDemo() (url string, stop func(), err error) {
	return start("still running, with a change now and then: live page on ", "demo", "--page")
}

// start starts the command and returns the URL that follows a text in its output.
func start(before string, args ...string) (url string, stop func(), err error) {
	demo := exec.Command(leat, args...)
	out, err := demo.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	var errs bytes.Buffer
	demo.Stderr = &errs
	if err := demo.Start(); err != nil {
		return "", nil, err
	}
	stop = sync.OnceFunc(func() {
		_ = demo.Process.Signal(os.Interrupt) // it may have ended
		_ = demo.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, found, ok := strings.Cut(lines.Text(), before); ok {
			return found, stop, nil
		}
	}
	stop()
	return "", nil, fmt.Errorf("leat %s ended without a page: %s", args[0], &errs)
}

// tab is a page in the browser. The test fails if the page logs an error or sends a request to another origin.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex // guards the field below
	wrong  []string
	silent bool // errors of the network are expected
}

// view is a size and a colour scheme.
type view struct {
	width, height int64
	scheme        string
}

var (
	light      = view{1280, 860, "light"}
	dark       = view{1280, 860, "dark"}
	narrow     = view{400, 860, "light"}
	narrowDark = view{400, 860, "dark"}
)

func open(t *testing.T, url, hash string, v view) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	ctx, cancelTime := context.WithTimeout(ctx, 5*patience) // for all waits of the tab
	tab := &tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) { tab.note(event, url) })
	t.Cleanup(func() {
		cancelTime()
		cancel()
		tab.mu.Lock()
		defer tab.mu.Unlock()
		require.Empty(t, tab.wrong)
	})
	tab.run(log.Enable(), network.Enable(), emulation.SetFocusEmulationEnabled(true),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme}}),
		chromedp.EmulateViewport(v.width, v.height), chromedp.Navigate(url+hash))
	return tab
}

func (p *tab) note(event any, url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.wrong = append(p.wrong, e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError && !p.silent {
			p.wrong = append(p.wrong, e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		origin, _, _ := strings.Cut(url, "?")
		if !strings.HasPrefix(e.Request.URL, origin) {
			p.wrong = append(p.wrong, "a request to "+e.Request.URL)
		}
	}
}

// expectErrors makes failed requests no failure of the test.
func (p *tab) expectErrors() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
}

func (p *tab) run(actions ...chromedp.Action) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Run(p.ctx, actions...))
}

// click clicks on the first node of a selector. It does not move the mouse, and does not wait until the node is still.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.run(chromedp.Evaluate("document.querySelector(`"+selector+"`).click()", nil))
}

// until waits until an expression is true. An expression that fails is not true yet: what it reads may be missing.
func (p *tab) until(expression string) {
	p.t.Helper()
	safe := "(() => { try { return (" + expression + "); } catch { return false } })()"
	err := chromedp.Run(p.ctx, chromedp.Poll(safe, nil, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(patience)))
	if err != nil {
		var shown string
		_ = chromedp.Run(p.ctx, chromedp.Evaluate(`document.querySelector("main").innerText`, &shown)) // it may not answer
		require.NoError(p.t, err, "%s in a page with\n%s", expression, shown)
	}
}

func eval[T any](p *tab, expression string) (v T) {
	p.t.Helper()
	p.run(chromedp.Evaluate(expression, &v))
	return v
}

// shoot writes a screenshot if the flag is set.
func (p *tab) shoot(name string) {
	p.t.Helper()
	if *shots == "" {
		return
	}
	var png []byte
	p.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().Do(ctx)
		return err
	}))
	require.NoError(p.t, os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o644))
}
