package e2e_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/decisions"
	"github.com/leatproject/leat/examples/deployment/kubelet"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/program"
)

// TestRecordedRollouts records the client of examples/deployment while a hundred Deployments roll out twice. In a
// replay of the recording, each reconcile of a Deployment reads what it read in production, sends the same requests and
// returns the same result. A second replay is the same.
func TestRecordedRollouts(t *testing.T) {
	f := &fleet{collection: newCollection(t, deployments, `{}`), stderr: &bytes.Buffer{}}
	var file bytes.Buffer
	var log decisions.Log
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	o := program.Options{
		Name: "recorded", Config: adminConfig(), Namespace: f.namespace, Logger: zap.NewNop(), Controller: controller.Options{Workers: 8},
	}
	go func() { ended <- decisions.Record(ctx, o, kubelet.Options{}, &log, &file) }()
	f.each(t, func(name string) error { return f.createSized(t.Context(), name, "app:1", 2) })
	f.settle(t, 2, "app:1")
	f.patchAll(t, image("app:2"))
	f.settle(t, 2, "app:2")
	cancel()
	require.NoError(t, <-ended)

	r, err := recording.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	in, err := decisions.Load(t.Context(), r)
	require.NoError(t, err)
	began := time.Now()
	total, requests := 0, 0
	for _, run := range log.Runs() {
		for range 2 {
			var again []*decisions.Decision
			synctest.Test(t, func(t *testing.T) { again, err = decisions.Replay(t.Context(), in, f.namespace, run) })
			require.NoError(t, err)
			require.Len(t, again, len(run))
			for i, d := range run {
				require.Equal(t, d.String(), again[i].String())
			}
		}
		for _, d := range run {
			total, requests = total+1, requests+len(d.Requests)
		}
	}
	t.Logf("%d decisions with %d requests of %d workers, recorded in %d bytes, replayed twice in %s", total, requests, len(log.Runs()), file.Len(), time.Since(began))
	require.Greater(t, total, 5*fleetSize)
	require.Greater(t, requests, 5*fleetSize)
}
