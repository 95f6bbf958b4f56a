package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/observe/recording"
)

// TestMoments reads times of a recording around midnight.
func TestMoments(t *testing.T) {
	first := time.Date(2026, 3, 1, 23, 59, 30, 500, time.UTC)
	last := first.Add(time.Hour)
	second, before := first.Truncate(time.Second), func(d time.Duration) time.Duration { return d - 1 }
	for text, want := range map[string]time.Time{
		"23:59:30": second.Add(before(time.Second)), "23:59:31.5": second.Add(before(1600 * time.Millisecond)),
		"23:59:31,250": second.Add(before(1251 * time.Millisecond)), "23:59": time.Date(2026, 3, 1, 23, 59, 59, 999_999_999, time.UTC),
		"23:59:30.000000500": first, "23:59:30.000": second.Add(before(time.Millisecond)),
		"00:10": time.Date(2026, 3, 2, 0, 10, 59, 999_999_999, time.UTC), "+90s": first.Add(before(90*time.Second + time.Millisecond)),
		"+0s": first.Add(before(time.Millisecond)), "+1h": last, "00:59:30.9": last, "00:59": time.Date(2026, 3, 2, 0, 59, 30, 500, time.UTC),
		"2026-03-02T00:00:00Z":      time.Date(2026, 3, 2, 0, 0, 0, 999_999_999, time.UTC),
		"2026-03-02T01:00:00+01:00": time.Date(2026, 3, 2, 0, 0, 0, 999_999_999, time.UTC),
		"2026-03-02T00:00:00.25Z":   time.Date(2026, 3, 2, 0, 0, 0, 259_999_999, time.UTC),
		"2026-03-01T23:59:30Z":      second.Add(before(time.Second)),
	} {
		got, err := parseMoment(text, first, last)
		require.NoError(t, err, text)
		require.True(t, want.Equal(got), "%s is %v", text, got)
	}
	for _, text := range []string{
		"", "x", "+x", "23:00", "+2h", "25:00:00", "23:59:29", "23:59:30.000000499", "+-1s", "2026-03-01T23:59:29.999Z", "01:30",
	} {
		_, err := parseMoment(text, first, last)
		require.Error(t, err, text)
	}
}

// slow is an answer whose parts have pauses before them.
type slow []any

func (s *slow) Read(p []byte) (int, error) {
	for len(*s) > 0 {
		next := (*s)[0]
		*s = (*s)[1:]
		switch next := next.(type) {
		case time.Duration:
			<-time.After(next)
		case string:
			return copy(p, next), nil
		}
	}
	return 0, io.EOF
}

// slowFile records a list that ends 250 ms after its head, and then three changes, at times that are no milliseconds.
func slowFile(t *testing.T) string {
	t.Helper()
	object := func(name string, version int) string {
		return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","uid":%q,"resourceVersion":"%d"}}`, name, name, version)
	}
	event := func(kind, object string) string { return `{"type":"` + kind + `","object":` + object + "}\n" }
	const odd = 400*time.Microsecond + 7
	answers := []slow{
		{odd, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"5"},`, 250 * time.Millisecond, `"items":[` + object("first", 4) + `]}`},
		{
			time.Second + odd, event("ADDED", object("one", 6)), time.Second + odd, event("MODIFIED", object("first", 7)),
			time.Second, event("DELETED", object("one", 8)), time.Second, event("BOOKMARK", object("", 9)),
		},
	}
	path := filepath.Join(t.TempDir(), "slow.rec")
	file := must.Get(os.Create(path))(t)
	defer file.Close()
	synctest.Test(t, func(t *testing.T) {
		<-time.After(500*time.Millisecond + odd)
		recorder := must.Get(recording.New(file, recording.Options{JSON: true}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- recorder.Run(ctx) }()
		client := recorder.Wrap(slowServer{&answers})
		for _, query := range []string{"", "?watch=true&resourceVersion=5"} {
			req := must.Get(http.NewRequest(http.MethodGet, "https://server/api/v1/configmaps"+query, nil))(t)
			resp := must.Get(client.RoundTrip(req))(t)
			must.Get(io.ReadAll(resp.Body))(t)
		}
		cancel()
		require.NoError(t, <-ended)
	})
	return path
}

// slowServer gives its answers one after the other.
type slowServer struct{ answers *[]slow }

func (s slowServer) RoundTrip(*http.Request) (*http.Response, error) {
	next := (*s.answers)[0]
	*s.answers = (*s.answers)[1:]
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(&next)}, nil
}

// TestShowIncludesWhatItPrints gives leat show the times that leat show has printed.
func TestShowIncludesWhatItPrints(t *testing.T) {
	path := slowFile(t)
	show := func(args ...string) (string, string) {
		return leat(t, 0, append([]string{"show", path, "cm"}, args...)...)
	}
	history, _ := show("--object", "default/one")
	lines := strings.Split(history, "\n")
	require.Len(t, lines, 3)
	added, _, _ := strings.Cut(lines[0], " ")
	deleted, _, _ := strings.Cut(lines[1], " ")
	history, _ = show("--object", "default/first")
	modified, _, _ := strings.Cut(strings.Split(history, "\n")[1], " ")
	require.Regexp(t, `^\d\d:\d\d:01\.751$`, added)
	require.Regexp(t, `^\d\d:\d\d:02\.751$`, modified)

	for _, at := range []string{added, strings.TrimSuffix(added, ".751"), "+1.251s", "1999-12-31T23:00:01.751-01:00"} {
		out, errs := show("-o", "name", "--at", at)
		require.Equal(t, "default/first\ndefault/one\n", out, at)
		require.Empty(t, errs)
	}
	for _, at := range []string{strings.TrimSuffix(added, "1") + "0", deleted, "+1.249s"} {
		out, _ := show("-o", "name", "--at", at)
		require.Equal(t, "default/first\n", out, at)
	}
	out, _ := show("--diff", strings.TrimSuffix(added, "1")+"0", added)
	require.Equal(t, "ADDED     default/one\n", out)
	out, _ = show("--diff", added, modified)
	require.Equal(t, "MODIFIED  default/first\n", out)
	out, _ = show("--diff", modified, deleted)
	require.Equal(t, "DELETED   default/one\n", out)
	_, errs := leat(t, 2, "show", path, "cm", "--diff", strings.TrimSuffix(added, ".751"), added)
	require.Contains(t, errs, " is after "+added+"; a time is the end of its last digit\n")
}

// TestShowBeforeTheFirstList begins with the state that the first list had.
func TestShowBeforeTheFirstList(t *testing.T) {
	path := slowFile(t)
	clocks, _ := leat(t, 0, "show", path, "cm", "--object", "default/first")
	listed, _, _ := strings.Cut(clocks, " ")
	minute := strings.TrimSuffix(listed, "00.750")
	require.Len(t, minute, len("00:00:"), listed)
	for _, at := range []string{"+0s", "+249ms", minute + "00.500", minute + "00.6"} {
		out, errs := leat(t, 0, "show", path, "cm", "--at", at)
		require.Regexp(t, `^NAMESPACE +NAME +VERSION +CHANGED\ndefault +first +4 +before\n$`, out)
		require.Equal(t, "leat: --at "+at+" is before the end of the first list of configmaps, so leat shows the state of this list ("+listed+")\n", errs)
	}
	out, errs := leat(t, 0, "show", path, "cm", "--at", "+251ms", "-o", "name")
	require.Equal(t, "default/first\n", out)
	require.Empty(t, errs)
	out, errs = leat(t, 0, "show", path, "cm", "--diff", "+0s", "+2s")
	require.Equal(t, "ADDED     default/one\n", out)
	require.Equal(t, 1, strings.Count(errs, "leat: --diff +0s is before the end of the first list"), errs)
	out, errs = leat(t, 0, "show", path, "cm", "--diff", "+0s", "+100ms")
	require.Equal(t, "Nothing changed.\n", out)
	require.Equal(t, 2, strings.Count(errs, "is before the end of the first list"), errs)
	_, errs = leat(t, 2, "show", path, "cm", "--at", minute+"00.499")
	require.Contains(t, errs, "is outside of the recording, which is from ")
}
