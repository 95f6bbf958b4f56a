package e2e_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/internal/fixture/must"
)

var shardedDeployments = flag.Int("sharded-deployments", 100, "number of Deployments of TestFleet")

// TestFleet runs examples/fleet: five replicas of the deployment example divide the namespaces of Deployments. One is
// killed, one is added, and all Deployments get a new image before the ranges of the killed one have an owner. Each
// Deployment must end with a ReplicaSet for each image that its controller saw, and with its Pod: two replicas that
// worked on it at once, or one that began before its caches were complete, would have left more.
func TestFleet(t *testing.T) {
	t.Cleanup(func() { restart(t) })
	require.NoError(t, server.RestartAPIServer(t.Context(), "--feature-gates=ShardedListAndWatch=true"))
	began := time.Now()
	binary := must.Get(filepath.Abs(filepath.Join("bin", "fleet")))(t)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./examples/fleet")
	build.Dir = ".."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, kubeconfig.Write(config, adminConfig(), "default"))

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "--kubeconfig", config, "--deployments", fmt.Sprint(*shardedDeployments),
		"--kill", "5s", "--join", "6s", "--rollout", "8s")
	cmd.Stderr = os.Stderr
	stdout := must.Get(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	rolled, lines := fmt.Sprintf("%d of %[1]d Deployments are rolled out", *shardedDeployments), bufio.NewScanner(stdout)
	for second := 0; lines.Scan(); {
		if t.Log(lines.Text()); !strings.Contains(lines.Text(), "Deployments are rolled out") {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "%d s", &second); err == nil && second > 10 && strings.HasSuffix(lines.Text(), rolled) {
			break
		}
	}
	require.NoError(t, lines.Err())
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	must.Get(io.Copy(io.Discard, stdout))(t)
	require.NoError(t, cmd.Wait())

	client := newClient(t, adminConfig())
	sets := map[api.Key]int{}
	_, err = apiclient.NewTyped[*appsv1.ReplicaSet](client, workload.ReplicaSets, "").List(ctx, api.Options[*appsv1.ReplicaSet]{}, func(s *appsv1.ReplicaSet) error {
		if strings.HasSuffix(s.Namespace, "-fleet") {
			sets[api.Key{Namespace: s.Namespace, Name: metav1.GetControllerOf(s).Name}]++
		}
		return nil
	})
	require.NoError(t, err)
	require.Len(t, sets, *shardedDeployments)
	for key, n := range sets {
		assert.LessOrEqual(t, n, 2, "%v", key)
	}
	n := 0
	_, err = apiclient.NewPartial[*metav1.PartialObjectMetadata](client, pods, "").List(ctx, api.Options[*metav1.PartialObjectMetadata]{}, func(p *metav1.PartialObjectMetadata) error {
		if strings.HasSuffix(p.Namespace, "-fleet") {
			n++
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, *shardedDeployments, n, "Pods")
	t.Logf("all of it took %v", time.Since(began).Round(time.Millisecond))
}
