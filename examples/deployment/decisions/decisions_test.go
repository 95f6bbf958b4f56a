package decisions_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/decisions"
	"github.com/leatproject/leat/examples/deployment/kubelet"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/testkit"
)

// record rolls out some Deployments twice, with a conflict and a lost watch, and returns the recording and the
// decisions.
func record(t *testing.T) (*bytes.Buffer, *decisions.Log) {
	t.Helper()
	var file bytes.Buffer
	var log decisions.Log
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		o := program.Options{
			Name: "recorded", Config: apiclient.Config{Host: k.Server.URL(), Transport: k.Server.Client().Transport},
			Namespace: "shop", Logger: zap.NewNop(), Controller: controller.Options{Workers: 4},
		}
		k.Start(func(ctx context.Context) error {
			return decisions.Record(ctx, o, kubelet.Options{Start: 3 * time.Second, Stop: time.Second}, &log, &file)
		})
		for i := range 6 {
			testkit.Create(k, workload.Deployments, deployment(i))
		}
		k.Pass(time.Minute)
		k.Fail("update", "deployments.apps/status", 2, 409)
		for i := range 6 {
			if i == 3 {
				k.LoseEvents(func() { testkit.Delete(k, workload.Deployments, key(5)) })
			}
			if i < 5 {
				testkit.Edit(k, workload.Deployments, key(i), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "app:2" })
			}
		}
		k.Pass(5 * time.Minute)
		for i := range 5 {
			d := testkit.Get[*appsv1.Deployment](k, workload.Deployments, key(i))
			require.EqualValues(t, 3, d.Status.UpdatedReplicas)
			require.EqualValues(t, 3, d.Status.AvailableReplicas)
		}
	})
	return &file, &log
}

func key(i int) api.Key { return api.Key{Namespace: "shop", Name: fmt.Sprint("web-", i)} }

func deployment(i int) *appsv1.Deployment {
	n, app := int32(3), map[string]string{"app": key(i).Name}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: key(i).Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
			},
		},
	}
}

// replay returns the decisions of a replay, in a bubble of its own.
func replay(t *testing.T, in *decisions.Recorded, run []*decisions.Decision) (again []*decisions.Decision, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { again, err = decisions.Replay(t.Context(), in, "shop", run) })
	return again, err
}

func load(t *testing.T, file *bytes.Buffer) *decisions.Recorded {
	t.Helper()
	r, err := recording.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	in, err := decisions.Load(t.Context(), r)
	require.NoError(t, err)
	return in
}

// TestAReplayDecidesTheSame compares each decision of a replay with that of production: what it read, each request with
// its body, and the result. A second replay is the same.
func TestAReplayDecidesTheSame(t *testing.T) {
	file, log := record(t)
	in := load(t, file)
	total, requests := 0, 0
	for range 2 {
		for _, run := range log.Runs() {
			again, err := replay(t, in, run)
			require.NoError(t, err)
			require.Len(t, again, len(run))
			for i, d := range run {
				require.Equal(t, d.String(), again[i].String())
				total, requests = total+1, requests+len(d.Requests)
			}
		}
	}
	t.Logf("%d decisions with %d requests in %d runs, %d bytes", total/2, requests/2, len(log.Runs()), file.Len())
	require.Greater(t, total/2, 50)
	require.Greater(t, requests/2, 40)
}

// TestAReplayNoticesADifference changes what production decided and what it read.
func TestAReplayNoticesADifference(t *testing.T) {
	file, log := record(t)
	in := load(t, file)
	run := log.Runs()[0]
	var changed *decisions.Decision
	for _, d := range run {
		if changed == nil && len(d.Requests) > 0 {
			changed = d
			changed.Requests[0].Body = "{}"
		}
	}
	again, err := replay(t, in, run)
	require.NoError(t, err)
	different := 0
	for i, d := range run {
		if d.String() != again[i].String() {
			different++
			require.Same(t, changed, d)
		}
	}
	require.Equal(t, 1, different)

	run[len(run)-1].Read.Pods = "999999"
	_, err = replay(t, in, run)
	require.ErrorContains(t, err, "recording: pods cannot advance to version 999999: the recording ends with version")
}
