package operator_test

import (
	"bytes"
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/bench/operator/cronjob"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

var (
	cronJobs = api.Resource{Group: cronjob.GroupVersion.Group, Version: "v1", Kind: "CronJob", Plural: "cronjobs", Namespaced: true}
	jobs     = api.Resource{Group: "batch", Version: "v1", Kind: "Job", Plural: "jobs", Namespaced: true}
)

// TestOperatorsDoTheSame runs each shape against a server of its own until it has created a Job and written the status.
func TestOperatorsDoTheSame(t *testing.T) {
	for _, shape := range []string{"controller-runtime", "leatcache", "leat"} {
		t.Run(shape, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			host := serve(t)
			start(t, shape, host)
			client := must.Get(apiclient.New(apiclient.Config{Host: host}))(t)
			defer client.CloseIdleConnections()

			var created *batchv1.Job
			for event, err := range apiclient.NewTyped[*batchv1.Job](client, jobs, "").Watch(ctx, api.Options[*batchv1.Job]{}) {
				require.NoError(t, err)
				created = event.Object
				break
			}
			require.Equal(t, "hello", created.Labels[cronjob.Label])
			owner := metav1.GetControllerOf(created)
			require.NotNil(t, owner)
			require.Equal(t, "CronJob hello", owner.Kind+" "+owner.Name)
			for event, err := range apiclient.NewTyped[*cronjob.CronJob](client, cronJobs, "").Watch(ctx, api.Options[*cronjob.CronJob]{}) {
				require.NoError(t, err)
				if event.Object.Status.LastRun != nil && event.Object.Status.Active > 0 {
					break
				}
			}
		})
	}
}

// serve serves one CronJob, whose first run is due after a second.
func serve(t *testing.T) (host string) {
	t.Helper()
	s := testserver.New(testserver.Options{})
	s.Define(testserver.Definition{Resource: cronJobs})
	c := &cronjob.CronJob{}
	c.APIVersion, c.Kind, c.Namespace, c.Name = cronjob.GroupVersion.String(), cronJobs.Kind, "default", "hello"
	c.Spec.Every.Duration = time.Second
	must.Get(s.Create(cronJobs, c))(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	fixture.Start(t, func(ctx context.Context) error { return s.Serve(ctx, l) })
	return "http://" + l.Addr().String()
}

// start builds and runs a shape until the test ends.
func start(t *testing.T, shape, host string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), shape)
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./"+shape).CombinedOutput()
	require.NoError(t, err, "%s", output)
	var log bytes.Buffer
	cmd := exec.Command(binary, host)
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Log(log.String())
		}
	})
}
