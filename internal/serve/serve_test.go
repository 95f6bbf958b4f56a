package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/serve"
	"github.com/leatproject/leat/testserver"
)

// output collects what a server prints.
type output struct {
	mu    sync.Mutex
	b     bytes.Buffer
	ready chan struct{} // closed with the last line
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b.Write(p)
	if strings.Contains(o.b.String(), notice) {
		close(o.ready)
	}
	return len(p), nil
}

const notice = "ready\n"

func options(t *testing.T, flags ...string) serve.Options {
	t.Helper()
	var o serve.Options
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	o.Flags(f)
	require.NoError(t, f.Parse(append([]string{"--kubeconfig-out", "", "--listen", "127.0.0.1:0"}, flags...)))
	return o
}

func hooks() serve.Hooks {
	return serve.Hooks{Notice: notice, New: func(o testserver.Options, _ bool) (serve.Backend, error) {
		return backend(testserver.New(o)), nil
	}}
}

func backend(s *testserver.Server) serve.Backend {
	return serve.Backend{Server: s, Serve: s.Serve, Run: s.Run, Fork: func() serve.Backend { return backend(s.Fork()) }}
}

// process is a running server.
type process struct {
	*testing.T
	printed    string
	api, admin string // URLs
	end        func() // ends the server and requires that this succeeds
}

func start(t *testing.T, flags ...string) *process {
	t.Helper()
	out := &output{ready: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- options(t, append(flags, "--admin", "127.0.0.1:0")...).Run(ctx, out, hooks()) }()
	select {
	case <-out.ready:
	case err := <-ended:
		t.Fatalf("the server ended early: %v", err)
	}
	p := &process{T: t, printed: out.b.String(), end: sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})}
	t.Cleanup(p.end)
	p.api, p.admin = after(p.printed, "serving on "), strings.TrimSuffix(after(p.printed, "admin endpoint on "), "/")
	return p
}

// after returns the rest of the line behind a text.
func after(printed, text string) string {
	_, rest, _ := strings.Cut(printed, text)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// send sends a request and returns the code and the body of the answer.
func (p *process) send(method, url, body string, header ...string) (int, string) {
	p.Helper()
	r := must.Get(http.NewRequest(method, url, strings.NewReader(body)))(p)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer := must.Get(http.DefaultClient.Do(r))(p)
	defer answer.Body.Close()
	text := must.Get(io.ReadAll(answer.Body))(p)
	return answer.StatusCode, string(text)
}

// ok sends a request to the admin endpoint, which must succeed.
func (p *process) ok(method, path, body string) string {
	p.Helper()
	code, text := p.send(method, p.admin+path, body)
	require.Contains(p, []int{200, 204}, code, text)
	return text
}

const (
	mapsPath = "/api/v1/namespaces/default/configmaps"
	oneMap   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}`
)

func (p *process) requireCode(code int, method, path, body string) string {
	p.Helper()
	got, text := p.send(method, p.api+path, body)
	require.Equal(p, code, got, text)
	return text
}

func TestFaultsThroughTheAdminEndpoint(t *testing.T) {
	p := start(t, "--seed", "7", "--fault", "get secrets: fail 503")
	require.Contains(t, p.printed, "faults, with --seed 7:\n  get secrets: fail 503\n")
	require.Equal(t, `[
  {
    "id": 2,
    "fault": "list configmaps: fail 429 times=1",
    "seen": 0,
    "active": true
  }
]
`, p.ok("POST", "/faults", "list configmaps: fail 429 times=1\n\n"))
	p.requireCode(429, "GET", mapsPath, "")
	p.requireCode(200, "GET", mapsPath, "")
	require.Contains(t, p.ok("GET", "/faults", ""), `"seen": 1`)
	require.Equal(t, "faults:\n- 'get secrets: fail 503'\n- 'list configmaps: fail 429 times=1'\nseed: 7\n", p.ok("GET", "/plan", ""))
	p.ok("POST", "/faults", "faults:\n- 'pods: fail 500'\n")
	p.requireCode(500, "GET", "/api/v1/pods", "")
	p.ok("DELETE", "/faults/3", "")
	p.requireCode(200, "GET", "/api/v1/pods", "")
	p.ok("DELETE", "/faults", "")
	require.Equal(t, "[]\n", p.ok("GET", "/faults", ""))
	for body, says := range map[string]string{
		"":                                    "the body has no fault",
		"explode":                             `"explode" is not an effect`,
		"reset\nexplode now":                  `"explode" is not an effect`,
		"faults:\n- explode\n":                "faults[0]",
		"faults: [explode]":                   "faults[0]",
		`{"faults":["explode"]}`:              "faults[0]",
		"seed: 7\r\nfaults:\r\n- explode\r\n": "faults[0]",
		"# of yesterday\nfaults: # two\n- reset\n- explode": "faults[1]",
		"seed: 7":       "the body has no fault",
		"faults: reset": "a plan has the fields seed and faults",
	} {
		code, text := p.send("POST", p.admin+"/faults", body)
		require.Equal(t, 400, code)
		require.Contains(t, text, says)
		require.Equal(t, 1, strings.Count(text, "\n"))
	}
	for _, body := range []string{
		strings.Repeat("x", 100_000), strings.Repeat("x ", 20_000), "faults:\n" + strings.Repeat("- x\n", 30_000),
		"{\"seed\": \"" + strings.Repeat("x", 100_000) + "\"}", "faults: []\n" + strings.Repeat("x: y\n", 20_000),
		"pods,pods: " + strings.Repeat("y", 60_000), "fail 503 " + strings.Repeat("z= ", 10_000), "list " + strings.Repeat("a", 30_000) + " b: reset",
	} {
		code, text := p.send("POST", p.admin+"/faults", body)
		require.Equal(t, 400, code)
		require.Less(t, len(text), 1<<10, "an error is bounded")
	}
	code, text := p.send("POST", p.admin+"/faults", "faults:\n"+strings.Repeat("- x\n", 1_250_000))
	require.Equal(t, 413, code)
	require.Equal(t, "the body has more than 262144 bytes\n", text)
	code, text = p.send("POST", p.admin+"/faults", "\x1b[2Jexplode\u202e")
	require.Equal(t, 400, code)
	require.Contains(t, text, `"\x1b[2Jexplode\u202e" is not an effect`)
	p.ok("POST", "/snapshots/a%1b%E2%80%AE", "")
	require.Contains(t, p.ok("GET", "/snapshots", ""), `"a\u001b\u202e"`)
	code, text = p.send("DELETE", p.admin+"/faults/%1b%0a9", "")
	require.Equal(t, 404, code)
	require.Equal(t, "there is no fault \\u001b\\n9\n", text)
	code, text = p.send("DELETE", p.admin+"/faults/9", "")
	require.Equal(t, 404, code)
	require.Equal(t, "there is no fault 9\n", text)
}

func TestRequestsAndConnections(t *testing.T) {
	p := start(t)
	p.ok("DELETE", "/requests", "")
	p.requireCode(201, "POST", mapsPath, oneMap)
	var seen []struct{ Verb, Path string }
	require.NoError(t, json.Unmarshal([]byte(p.ok("GET", "/requests", "")), &seen))
	require.Len(t, seen, 1)
	require.Equal(t, "create "+mapsPath, seen[0].Verb+" "+seen[0].Path)

	for _, cut := range []string{"/disconnect", "/restart"} {
		watch := must.Get(http.Get(p.api + mapsPath + "?watch=true"))(t)
		require.Contains(t, p.ok("GET", "/watches", ""), `"verb": "watch"`)
		p.ok("POST", cut, "")
		_, err := io.ReadAll(watch.Body) // a restart ends it with or without an error
		if cut == "/disconnect" {
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
		require.NoError(t, watch.Body.Close())
		p.requireCode(200, "GET", mapsPath+"/one", "")
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	require.NoError(t, json.Unmarshal([]byte(p.requireCode(200, "GET", mapsPath, "")), &list))
	p.requireCode(201, "POST", mapsPath, strings.Replace(oneMap, "one", "two", 1))
	old := mapsPath + "?resourceVersionMatch=Exact&limit=1&resourceVersion=" + list.Metadata.ResourceVersion
	p.requireCode(200, "GET", old, "")
	p.ok("POST", "/compact", "")
	p.requireCode(410, "GET", old, "")
}

func TestSnapshotsThroughTheAdminEndpoint(t *testing.T) {
	p := start(t)
	require.Contains(t, p.ok("POST", "/snapshots/empty", ""), `"empty": "`)
	p.requireCode(201, "POST", mapsPath, oneMap)
	p.ok("POST", "/faults", "get: stale empty")
	p.requireCode(404, "GET", mapsPath+"/one", "")
	p.ok("DELETE", "/faults", "")
	p.requireCode(200, "GET", mapsPath+"/one", "")
	p.ok("POST", "/faults", "restore empty")
	p.requireCode(404, "GET", mapsPath+"/one", "")
	require.Contains(t, p.ok("GET", "/snapshots", ""), `"empty": "`)
}

// TestPlansOfTheServerAreLoaded starts a server with the plan that another one printed.
func TestPlansOfTheServerAreLoaded(t *testing.T) {
	p := start(t, "--seed", "7", "--fault", "watch pods: drop 10%")
	p.ok("POST", "/snapshots/before", "")
	p.ok("POST", "/faults", "get configmaps: stale before\nlist pods: fail 503")
	plan := p.ok("GET", "/plan", "")
	file := filepath.Join(t.TempDir(), "plan.yaml")
	require.NoError(t, os.WriteFile(file, []byte(plan), 0o600))

	p = start(t, "--faults", file)
	require.Equal(t, plan, p.ok("GET", "/plan", ""))
	require.Contains(t, p.ok("GET", "/faults", ""), `"waiting": "before"`)
	p.requireCode(503, "GET", "/api/v1/pods", "")
	p.ok("POST", "/snapshots/before", "")
	p.requireCode(201, "POST", mapsPath, oneMap)
	p.requireCode(404, "GET", mapsPath+"/one", "")
	p.ok("DELETE", "/faults", "")
	p.ok("POST", "/faults", plan)
	require.Equal(t, plan, p.ok("GET", "/plan", ""))
}

// TestStateInAFile starts servers one after the other with the same file.
func TestStateInAFile(t *testing.T) {
	for _, name := range []string{"state.yaml", "state.json"} {
		file := filepath.Join(t.TempDir(), name)
		p := start(t, "--data", file)
		created := p.requireCode(201, "POST", mapsPath, oneMap)
		p.end()
		info := must.Get(os.Stat(file))(t)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

		p = start(t, "--data", file)
		require.Equal(t, created, p.requireCode(200, "GET", mapsPath+"/one", ""), "with the same UID and version")
		p.requireCode(200, "DELETE", mapsPath+"/one", "")
		p.ok("POST", "/state/save", "")
		text := must.Get(os.ReadFile(file))(t)
		require.NotContains(t, string(text), "ConfigMap")
		p.end()
		left := must.Get(os.ReadDir(filepath.Dir(file)))(t)
		require.Len(t, left, 1)
	}
	p := start(t)
	code, text := p.send("POST", p.admin+"/state/save", "")
	require.Equal(t, 409, code, text)
	state := p.ok("GET", "/state", "")
	p.requireCode(201, "POST", mapsPath, oneMap)
	p.ok("PUT", "/state", state)
	p.requireCode(404, "GET", mapsPath+"/one", "")
	code, text = p.send("PUT", p.admin+"/state", "kind: Pod")
	require.Equal(t, 400, code)
	require.Equal(t, "testserver: load: the state is a List, and not a \"Pod\"\n", text)
}

func TestStrictAndLenient(t *testing.T) {
	const elsewhere = "/api/v1/namespaces/elsewhere/configmaps"
	start(t).requireCode(404, "POST", elsewhere, oneMap)
	start(t, "--lenient").requireCode(201, "POST", elsewhere, oneMap)
}

// TestAdminRefusesOthers sends requests of web pages, and one from another machine.
func TestAdminRefusesOthers(t *testing.T) {
	p := start(t)
	require.Contains(t, p.ok("GET", "/", ""), "POST   /faults")
	for _, header := range [][]string{
		{"Origin", "https://evil.example"},
		{"Origin", p.api},
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
	} {
		code, _ := p.send("POST", p.admin+"/faults", "outage", header...)
		require.Equal(t, 403, code, header)
	}
	code, _ := p.send("POST", p.admin+"/faults", "outage", "Accept-Language", "en", "Content-Type", "text/plain")
	require.Equal(t, 415, code, "a form of a page")
	require.Equal(t, "[]\n", p.ok("GET", "/faults", ""), "nothing was injected")

	for address, want := range map[string]int{"192.0.2.1:7": 403, "127.0.0.1:7": 204, "[::1]:7": 204, "": 403} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("DELETE", "/", nil)
		r.RemoteAddr = address
		serve.OnlyLoopback(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })).ServeHTTP(w, r)
		require.Equal(t, want, w.Code, address)
	}
}

// TestWrongFlags shows the error for each kind of mistake. Nothing is written or printed before it.
func TestWrongFlags(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	taken := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	config := filepath.Join(dir, "kubeconfig")
	for _, tc := range []struct {
		says  string
		usage bool
		flags []string
	}{
		{"--max-clusters -1: it is a number that is not negative", true, []string{"--max-clusters", "-1"}},
		{"--max-bytes -1: it is a number that is not negative", true, []string{"--max-bytes", "-1"}},
		{"--admin 0.0.0.0:0: it must be an address of loopback", true, []string{"--admin", "0.0.0.0:0"}},
		{"--admin leat.example:0: it must be", true, []string{"--admin", "leat.example:0"}},
		{"--admin: ", true, []string{"--admin", "8081"}},
		{"--admin: ", false, []string{"--admin", taken.Addr().String()}},
		{`--fault: fault "explode": "explode" is not an effect`, true, []string{"--fault", "explode"}},
		{`fault "restore x": it waits for a snapshot, which only the endpoint of --admin takes`, true, []string{"--fault", "restore x"}},
		{"--listen: ", true, []string{"--listen", "nowhere"}},
		{"--listen :0: others can reach it, so it needs a --token", true, []string{"--listen", ":0"}},
		{"--listen: ", false, []string{"--listen", taken.Addr().String()}},
		{`--seed "many" is not a number`, true, []string{"--seed", "many"}},
		{"--faults: ", false, []string{"--faults", filepath.Join(dir, "missing")}},
		{"--faults: read " + os.DevNull + ": it is a character device", false, []string{"--faults", os.DevNull}},
		{"--data " + os.DevNull + ": it is not a regular file", false, []string{"--data", os.DevNull}},
		{"faults[0]: ", false, []string{"--faults", file("plan", "faults: [explode]")}},
		{"--data " + filepath.Join(dir, "data") + ": testserver: load: ", false, []string{"--data", file("data", "kind: Pod")}},
		{
			"--data " + filepath.Join(dir, "none", "data") + ": a file cannot be created there: no such file or directory", false,
			[]string{"--data", filepath.Join(dir, "none", "data")},
		},
	} {
		var out bytes.Buffer
		err := options(t, append(tc.flags, "--kubeconfig-out", config)...).Run(t.Context(), &out, hooks())
		require.ErrorContains(t, err, tc.says)
		var usage *serve.UsageError
		require.Equal(t, tc.usage, errors.As(err, &usage), err)
		require.Empty(t, out.String())
		require.NoFileExists(t, config)
	}
}
