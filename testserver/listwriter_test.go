package testserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// TestLargeListsOnLoopback reads a list of several chunks, and lists that a fault stops in the middle: exactly the
// bytes before the fault arrive.
func TestLargeListsOnLoopback(t *testing.T) {
	s := onLoopback(t, testserver.Options{})
	const objects = 700
	for i := range objects {
		must.Get(s.Create(configMaps, configMap(fmt.Sprintf("m%d", i), "text", strings.Repeat("x", 500))))(t)
	}
	list := func() io.ReadCloser {
		response := must.Get(http.Get("http://" + s.address + mapsPath))(t)
		t.Cleanup(func() { _ = response.Body.Close() }) // it may have failed
		return response.Body
	}
	var all struct{ Items []json.RawMessage }
	text := must.Get(io.ReadAll(list()))(t)
	require.NoError(t, json.Unmarshal(text, &all))
	require.Len(t, all.Items, objects)

	for _, before := range []int{3_000, 200_000} {
		stall := s.Inject(faults.Fault{Times: 1, Effect: faults.Stall{After: before}})
		body, part := list(), make([]byte, before)
		must.Get(io.ReadFull(body, part))(t)
		stall.Remove()
		rest := must.Get(io.ReadAll(body))(t)
		require.Equal(t, string(text), string(part)+string(rest))

		s.Inject(faults.Fault{Times: 1, Effect: faults.Cut{After: before}})
		part = must.Get(io.ReadAll(list()))(t)
		require.Equal(t, string(text[:before]), string(part))
	}
}

// TestLargeInitialEventsOnLoopback reads initial events of all sizes, and an event that comes when the watch waits.
func TestLargeInitialEventsOnLoopback(t *testing.T) {
	s := onLoopback(t, testserver.Options{})
	const objects = 300
	for i := range objects {
		text := strings.Repeat("x", []int{10, 500, 3_900, 4_000, 10_000, 100_000}[i%6])
		must.Get(s.Create(configMaps, configMap(fmt.Sprintf("m%d", i), "text", text)))(t)
	}
	response := must.Get(http.Get("http://" + s.address + mapsPath + "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true" +
		"&resourceVersionMatch=NotOlderThan"))(t)
	defer response.Body.Close()
	events := json.NewDecoder(response.Body)
	read := func() (kind, name string) {
		var event struct {
			Type   string
			Object struct{ Metadata struct{ Name string } }
		}
		require.NoError(t, events.Decode(&event))
		return event.Type, event.Object.Metadata.Name
	}
	names := map[string]bool{}
	for range objects {
		kind, name := read()
		require.Equal(t, "ADDED", kind)
		names[name] = true
	}
	require.Len(t, names, objects)
	kind, _ := read()
	require.Equal(t, "BOOKMARK", kind)
	for _, size := range []int{10, 4_000, 7_000, 100_000} {
		must.Get(s.Create(configMaps, configMap(fmt.Sprintf("late%d", size), "text", strings.Repeat("x", size))))(t)
		kind, name := read()
		require.Equal(t, "ADDED", kind)
		require.Equal(t, fmt.Sprintf("late%d", size), name)
	}
}
