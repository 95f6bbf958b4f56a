package subject_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/bench/server"
	"github.com/leatproject/leat/bench/subject"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestShards holds one fifth of the pods, once with a server that cuts and once with one that does not.
func TestShards(t *testing.T) {
	for _, form := range []subject.Form{subject.Full, subject.Struct} {
		whole := subject.Spec{Work: subject.Shard, Form: form, Wire: subject.Protobuf, Objects: objects, Events: objects}
		require.Zero(t, whole.End())
		fifth := whole
		fifth.Shards = 5
		var inside []int
		for pod, hash := range set.Hashes(objects) {
			if hash < fifth.End() {
				inside = append(inside, pod)
			}
		}
		fifth.Held = len(inside)
		require.NotEmpty(t, inside)
		received := map[string]float64{}
		for _, c := range []struct {
			name string
			spec subject.Spec
			cuts bool
		}{{"whole", whole, true}, {"server", fifth, true}, {"client", fifth, false}} {
			s := must.Get(server.New(set, server.Options{Objects: objects, Shards: c.cuts}))(t)
			stop := fixture.Start(t, s.Run)
			c.spec.URL = s.URL()
			report := must.Get(play(t, "leat", c.spec, func() {
				for pod := range objects - 1 {
					s.Change(pod)
				}
				s.Change(inside[0])
			}))(t)
			held := objects
			if c.spec.Shards > 0 {
				held = len(inside)
			}
			require.EqualValues(t, held, report.Metrics["objects"])
			require.Positive(t, report.Metrics["cpu us/event"])
			received[c.name] = report.Metrics["list MB"]
			received[c.name+" watch"] = report.Metrics["watch MB"]
			require.Equal(t, c.name == "server", slices.ContainsFunc(s.Requests(), func(r server.Request) bool { return r.Watch && r.Cut }))
			stop()
		}
		require.Less(t, received["server"], received["whole"]/2)
		require.Less(t, received["server watch"], received["whole watch"]/2)
		require.InDelta(t, received["whole"], received["client"], received["whole"]/5)
		require.InDelta(t, received["whole watch"], received["client watch"], received["whole watch"]/5)
	}
	_, err := play(t, "client-go", subject.Spec{Work: subject.Shard, Form: subject.Full, Objects: 1}, nil)
	require.ErrorIs(t, err, subject.ErrUnsupported)
}
