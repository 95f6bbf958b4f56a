package testkit_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/testkit"
)

// The program sets the phase of each Pod to Running. Its first status update is a conflict, so it tries again.
func Example() {
	_ = func(t *testing.T) { // TestStarter
		testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
			k.Start(func(ctx context.Context) error { return run(k, &starter{})(ctx) })
			k.Fail("update", "pods/status", 1, 409)
			testkit.Create(k, pods, pod())
			k.NextRequest(time.Minute)
			if phase := testkit.Get[*corev1.Pod](k, pods, web).Status.Phase; phase != corev1.PodRunning {
				t.Error("the Pod is", phase)
			}
		})
	}
}
