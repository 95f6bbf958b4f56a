package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// TestExampleRuns runs the example against a server until its context ends.
func TestExampleRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := testserver.New(testserver.Options{})
	served := make(chan error, 1)
	go func() { served <- server.Run(ctx) }()
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, program.Options{Name: "neighbours", Client: client, Logger: zap.NewNop()}) }()
	watching := server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"watch"}}, Effect: faults.Delay{}})
	require.NoError(t, watching.Wait(ctx, 1), "it watches pods")
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, <-served)
}
