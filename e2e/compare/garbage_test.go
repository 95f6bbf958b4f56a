package compare_test

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/e2e/compare"
	"github.com/leatproject/leat/internal/fixture/must"
	typed "github.com/leatproject/leat/testserver/cluster"
)

// TestGarbage sends the same requests to the test server with its garbage collector and to kube-apiserver with
// kube-controller-manager, and compares the objects that are left when both have done their work.
func TestGarbage(t *testing.T) {
	all := must.Get(compare.ReadAreas("testdata", []string{"garbage"}))(t)
	test := startTestServer(t, typed.Behaviour{
		NoNamespaceDeletion: true, NoServiceAccounts: true, NoDisruptionBudgets: true, Workloads: true,
	})
	real := startCluster(t)
	startControllerManager(t, real)
	table := must.Get(compare.ParseTable(""))(t)
	c := comparison{t: t, table: table, tally: compare.Tally{Area: all[0]}, exact: true}
	c.run(all[0], test, real)
	t.Log(c.tally)
}

// startControllerManager runs kube-controller-manager with the controllers that the test server also has, and waits
// until its garbage collector has begun. An object whose owner is already deleted in the foreground when the collector
// lists it stays as it is, unless its reference blocks.
func startControllerManager(t *testing.T, target *compare.Target) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	folder := t.TempDir()
	during(t, func(ctx context.Context) error {
		return cluster.RunProgram(ctx, "../bin/kube-controller-manager", filepath.Join(folder, "log"),
			"--kubeconfig="+target.Kubeconfig(), "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port), "--cert-dir="+folder,
			"--controllers=garbage-collector-controller,deployment-controller,replicaset-controller",
			"--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=1000",
		)
	})
	begun := &compare.Step{
		ID: "garbage/start/begun", Name: "begun", Method: http.MethodGet, Path: "/api/v1/namespaces/$ns/configmaps", User: "admin", Rest: true,
	}
	must.Get(target.Run(t.Context(), &compare.Scenario{ID: "garbage/start", Steps: []*compare.Step{begun}}))(t)
}
