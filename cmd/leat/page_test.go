package main

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/cmd/leat/internal/demo"
	"github.com/leatproject/leat/internal/fixture/must"
)

var pageURL = regexp.MustCompile(`live page on (http://\S+)\n`)

// readPage returns the state that the page at the address in an output shows.
func readPage(t *testing.T, named *output) string {
	t.Helper()
	named.await(t, "live page on ")
	return readFrom(t, pageURL.FindStringSubmatch(named.String())[1]+"state")
}

func readFrom(t *testing.T, url string) string {
	t.Helper()
	answer := must.Get(http.Get(url))(t)
	defer answer.Body.Close()
	body := must.Get(io.ReadAll(answer.Body))(t)
	return string(body)
}

func TestDemoShowsAPage(t *testing.T) {
	out, _ := inBackground(t, "demo", "--page")
	out.await(t, "still running")
	text := readPage(t, out)
	for _, part := range []string{`"program":"leat demo"`, `"name":"replicasets.apps"`, `"name":"pods"`, `"name":"replicas"`} {
		require.Contains(t, text, part)
	}
}

func TestWatchShowsAPage(t *testing.T) {
	path := serving(t)
	out, errs := inBackground(t, "watch", "configmaps", "--kubeconfig", path, "--page")
	out.await(t, "SYNCED")
	require.Contains(t, readPage(t, errs), `"name":"printer","synced":true`)
}

func TestServeShowsAPage(t *testing.T) {
	out, _ := inBackground(t, "serve", "--listen", "127.0.0.1:0", "--kubeconfig-out", "", "--token", "secret", "--page")
	require.Contains(t, readPage(t, out), `"lab":true`)
	require.Eventually(t, func() bool {
		text := readPage(t, out)
		return strings.Count(text, `"synced":true`) == len(shownByServe) && !strings.Contains(text, "secret")
	}, 20*time.Second, 20*time.Millisecond)
}

// lab is the page of a demo with its Lab.
type lab struct {
	t   *testing.T
	url string
}

func openLab(t *testing.T, flags ...string) lab {
	out, _ := inBackground(t, append([]string{"demo", "--page"}, flags...)...)
	out.await(t, "still running")
	return lab{t, pageURL.FindStringSubmatch(out.String())[1]}
}

// press sends what a button sends.
func (l lab) press(name, body string) (int, string) {
	l.t.Helper()
	answer := must.Get(http.Post(l.url+"actions/"+name, "application/json", strings.NewReader(body)))(l.t)
	defer answer.Body.Close()
	text := must.Get(io.ReadAll(answer.Body))(l.t)
	return answer.StatusCode, string(text)
}

func (l lab) pressed(name, body string) string {
	l.t.Helper()
	code, text := l.press(name, body)
	require.Equal(l.t, 200, code, text)
	return text
}

// labState is the part of the state that the tests of the Lab read.
type labState struct {
	Leader    struct{ Leader string }
	Electors  []struct{ Name, Identity, Leader string }
	Held      []struct{ Stage, What string }
	Informers []struct {
		Name     string
		Handlers []struct {
			Name               string
			Pending            int
			Panics, StuckSince int64
		}
	}
	Controllers []struct {
		Name  string
		Stats struct {
			Held  bool
			Queue struct{ Depth, Processing int }
		}
	}
}

// until reads the state until it is as wanted.
func (l lab) until(wanted func(labState) bool) {
	l.t.Helper()
	var last string
	require.Eventually(l.t, func() bool {
		last = readFrom(l.t, l.url+"state")
		var s labState
		require.NoError(l.t, json.Unmarshal([]byte(last), &s), last)
		return wanted(s)
	}, 30*time.Second, 20*time.Millisecond, "%s", stringer(func() string { return last }))
}

type stringer func() string

func (s stringer) String() string { return s() }

// TestLabChangesTheDemo makes reconciles fail and panic, and then lets them work.
func TestLabChangesTheDemo(t *testing.T) {
	l := openLab(t)
	for _, c := range [][3]string{
		{"create", `{"replicas": "many"}`, "not a number from 0 to 200"},
		{"scale", `{"replicas": "many"}`, "not a number from 0 to 200"},
		{"scale", `{"name": "nothing"}`, "not found"},
		{"change", `{"name": "nothing"}`, "not found"},
		{"traffic", `{"rate": "NaN"}`, "not a number from 0 to 1000"},
		{"resume", `{"slow": "1h"}`, "not a duration up to 1m"},
		{"slow-handler", `{"takes": "soon"}`, "not a duration up to 1m"},
		{"fault", `{"fault": "nonsense"}`, "nonsense"},
		{"delay", `{"by": "soon"}`, "soon"},
		{"fail", `{"code": "nonsense"}`, "nonsense"},
		{"delete", `{"name": "nothing"}`, "not found"},
	} {
		code, text := l.press(c[0], c[1])
		require.Equal(t, 422, code, text)
		require.Contains(t, text, c[2])
	}
	for _, mood := range []string{"panic-reconciles", "fail-reconciles", "work"} {
		l.pressed(mood, `{}`)
	}
	for _, fault := range []string{"delay", "fail", "heal", "cut", "compact"} {
		l.pressed(fault, `{}`)
	}
	l.pressed("create", `{"name": "mill", "replicas": "1"}`)
	l.pressed("change", `{"name": "mill"}`)
	l.pressed("scale", `{"name": "mill", "replicas": "2"}`)
	require.Eventually(t, func() bool { return strings.Contains(readFrom(t, l.url+"keys?q=mill-1"), "shop/mill-1") }, 20*time.Second, 20*time.Millisecond)
}

// TestLabAddsHandlers adds a slow, a stuck and a panicking handler. The others go on.
func TestLabAddsHandlers(t *testing.T) {
	l := openLab(t, "--metrics", "127.0.0.1:0")
	l.pressed("slow-handler", `{"takes": "1m"}`)
	l.pressed("stuck-handler", `{}`)
	l.pressed("panic-handler", `{}`)
	code, text := l.press("stuck-handler", `{}`)
	require.Equal(t, 422, code)
	require.Contains(t, text, `there is a handler \"stuck\" already`)
	l.pressed("create", `{"name": "mill", "replicas": "9"}`)
	l.until(func(s labState) bool {
		bad := map[string]bool{}
		for _, i := range s.Informers {
			for _, h := range i.Handlers {
				bad[h.Name] = h.Name == "slow" && h.Pending > 0 || h.Name == "stuck" && h.StuckSince > 0 || h.Name == "panics" && h.Panics > 0
			}
		}
		return bad["slow"] && bad["stuck"] && bad["panics"]
	})
	require.Contains(t, l.pressed("remove-handlers", `{}`), "3 removed")
	l.until(func(s labState) bool { return len(s.Informers[0].Handlers)+len(s.Informers[1].Handlers) == 2 })
}

// TestLabKillsTheLeader starts a second replica, and kills the first. The second leads when the lease has expired.
func TestLabKillsTheLeader(t *testing.T) {
	l := openLab(t)
	l.pressed("replica", `{}`)
	l.until(func(s labState) bool {
		return s.Leader.Leader == "replica-1" && len(s.Electors) == 2 && s.Electors[1].Leader == "replica-1" &&
			s.Controllers[1].Name == "replicas of replica-2" && s.Controllers[1].Stats.Held
	})
	require.Contains(t, l.pressed("kill", `{}`), "replica-1")
	l.until(func(s labState) bool { return len(s.Electors) == 1 && s.Electors[0].Identity == "replica-2" })
	code, text := l.press("kill", `{}`)
	require.Equal(t, 422, code, text)
	l.pressed("create", `{"name": "mill", "replicas": "1"}`)
	l.until(func(s labState) bool { return s.Leader.Leader == "replica-2" && !s.Controllers[0].Stats.Held })
	require.Eventually(t, func() bool { return strings.Contains(readFrom(t, l.url+"keys?q=mill-0"), "shop/mill-0") }, 20*time.Second, 20*time.Millisecond)
	for range demo.MostCandidates - 1 {
		l.pressed("replica", `{}`)
	}
	l.until(func(s labState) bool { return len(s.Electors) == demo.MostCandidates })
	code, text = l.press("replica", `{}`)
	require.Equal(t, 422, code)
	require.Contains(t, text, "5 replicas already")
}

// TestLabStepsThroughTheStages follows one change from the stream to a worker. Other work of the demonstration may wait
// beside it, because the pods of its first ReplicaSets come when they come. The test lets this work go on.
func TestLabStepsThroughTheStages(t *testing.T) {
	l := openLab(t)
	l.pressed("traffic", `{"rate": "0"}`)
	l.pressed("create", `{"name": "mill", "replicas": "0"}`)
	require.Eventually(t, func() bool { return strings.Contains(readFrom(t, l.url+"keys?q=mill"), "shop/mill") }, 20*time.Second, 20*time.Millisecond)
	l.pressed("pause", `{}`)
	l.pressed("change", `{"name": "mill"}`)
	for _, c := range [][2]string{
		{"fifo", "the event MODIFIED of replicasets shop/mill"},
		{"handlers", "the batch of replicasets at version "},
		{"queue", "the change Updated of replicasets shop/mill"},
		{"workers", "the key shop/mill"},
	} {
		l.until(func(s labState) bool {
			if len(s.Held) == 0 {
				return false
			}
			next := s.Held[0]
			return strings.Contains(l.pressed("step", `{}`), next.What) && next.Stage == c[0] && strings.HasPrefix(next.What, c[1])
		})
	}
	l.until(func(s labState) bool {
		return strings.Contains(l.pressed("step", `{}`), "nothing waits") && len(s.Held) == 0
	})
	l.pressed("change", `{"name": "mill", "tier": "back"}`)
	l.until(func(s labState) bool { return len(s.Held) > 0 })
	l.pressed("kill", `{}`)
	l.until(func(s labState) bool { return len(s.Electors) == 0 })
	l.pressed("resume", `{}`)
	l.until(func(s labState) bool { return len(s.Held) == 0 })
}

// TestLabWalksThroughTheText takes the steps of docs/walkthrough.md. They print what the text shows.
func TestLabWalksThroughTheText(t *testing.T) {
	l := openLab(t)
	type walked struct {
		Title string
		Taken int
		Steps []struct{ Title, Text, Printed string }
	}
	move := func(to string) (w walked) {
		answer := must.Get(http.Post(l.url+"walkthrough/"+to, "application/json", strings.NewReader("{}")))(t)
		defer answer.Body.Close()
		require.Equal(t, 200, answer.StatusCode)
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&w))
		return w
	}
	for range 2 {
		for n := range 4 {
			require.Equal(t, n+1, move("next").Taken)
		}
		require.Equal(t, 4, move("next").Taken, "there is no other step")
		var all walked
		require.NoError(t, json.Unmarshal([]byte(readFrom(t, l.url+"walkthrough")), &all))
		require.Equal(t, "The life of one Pod", all.Title)
		for _, s := range all.Steps {
			_, block, found := strings.Cut(s.Text, "```text\n")
			require.True(t, found, s.Title)
			block, _, _ = strings.Cut(block, "```")
			require.Equal(t, block, s.Printed, s.Title)
		}
		require.Zero(t, move("restart").Taken)
	}
}

// A command that cannot serve its page does not start.
func TestPageNeedsAnAddress(t *testing.T) {
	for _, command := range [][]string{{"demo"}, {"watch", "pods"}, {"serve"}} {
		out, errs := newOutput(), newOutput()
		require.Equal(t, 1, run(t.Context(), append(command, "--page=nowhere"), out, errs))
		require.Contains(t, errs.String(), "leat: --page: ")
		require.Empty(t, out.String())
	}
}
