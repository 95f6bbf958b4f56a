package main

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/cli"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// TestNothingIsCountedTwice starts several programs one after another on the same jobs.
func TestNothingIsCountedTwice(t *testing.T) {
	inProgram(t, func(w *world) {
		w.submit(asIs)
		w.ends("worker-0", corev1.PodFailed, 137)
		w.Pass(time.Minute)
		before := len(testkit.List[corev1.Event](w.Kit, eventResource, ""))
		require.EqualValues(w, 1, w.counts.Created.Load())
		require.EqualValues(w, 1, w.counts.Restarted.Load())
		for range 3 {
			w.program.Stop()
			w.start()
			w.Pass(time.Minute)
			require.Zero(w, w.counts.Created.Load())
			require.Zero(w, w.counts.Restarted.Load())
		}
		w.ends("chief-0", corev1.PodSucceeded, 0)
		require.EqualValues(w, 1, w.counts.Succeeded.Load())
		w.program.Stop()
		w.start()
		w.Pass(time.Minute)
		require.Zero(w, w.counts.Succeeded.Load())
		require.Greater(w, len(testkit.List[corev1.Event](w.Kit, eventResource, "")), before)
	})
}

// TestStoppedBetweenTwoWrites stops the program before each write of a restart and of a success, as a crash would. A
// new program completes the job.
func TestStoppedBetweenTwoWrites(t *testing.T) {
	for at := range 14 {
		inProgram(t, func(w *world) {
			w.submit(func(j *job.TrainingJob) { j.Spec.CleanPodPolicy = job.CleanAll })
			w.runs(everybody...)
			w.Pass(time.Minute)
			cut := w.Server.Inject(faults.Fault{
				Match: faults.Match{Verbs: []string{"create", "update", "patch", "delete"}}, Skip: at, Effect: faults.Reset{},
			})
			w.ends("worker-0", corev1.PodFailed, 130)
			w.Pass(time.Second)
			w.program.Stop()
			cut.Remove()
			w.start()
			w.Pass(time.Second)
			require.Equal(w, everybody, w.pods(), "stopped at write %d", at)
			require.EqualValues(w, 1, w.job().Status.Restarts, "stopped at write %d", at)

			cut = w.Server.Inject(faults.Fault{
				Match: faults.Match{Verbs: []string{"create", "update", "patch", "delete"}}, Skip: at, Effect: faults.Reset{},
			})
			w.ends("chief-0", corev1.PodSucceeded, 0)
			w.Pass(time.Second)
			w.program.Stop()
			cut.Remove()
			made := w.Requests("create", "pods")
			w.start()
			w.Pass(time.Minute)
			require.Equal(w, "Created Succeeded", w.state(), "stopped at write %d", at)
			require.Empty(w, w.pods(), "stopped at write %d", at)
			require.Equal(w, made, w.Requests("create", "pods"), "a succeeded replica does not run again")
		})
	}
}

// TestPodsThatTakeTheirTime has Pods that terminate slowly, as on real nodes.
func TestPodsThatTakeTheirTime(t *testing.T) {
	inWorld(t, testserver.Options{}, func(w *world) {
		w.start(func(o *options) {
			o.simulate = true
			o.kubelet.Start, o.kubelet.Stop = 3*time.Second, 2*time.Second
		})
		w.submit(asIs)
		require.Equal(w, "Created", w.state())
		w.Pass(3 * time.Second)
		require.Equal(w, "Created Running", w.state())
		w.edit(func(j *job.TrainingJob) { j.Spec.Suspend = true })
		w.edit(func(j *job.TrainingJob) { j.Spec.Suspend = false })
		require.Equal(w, everybody, w.pods())
		made := w.Requests("create", "pods")
		require.Equal(w, 3, made, "the names are taken until the Pods are gone")
		w.Pass(2 * time.Second)
		require.Equal(w, everybody, w.pods())
		require.Equal(w, 6, w.Requests("create", "pods"))
		w.Pass(3 * time.Second)
		require.Equal(w, "Created Running", w.state())
		w.edit(scaleWorkers(1))
		w.edit(scaleWorkers(3))
		require.Equal(w, append(everybody, "worker-2"), w.pods(), "worker 1 is still terminating, and the job does not wait for that")
		require.Empty(w, w.Errors())
	})
}

// TestTheLeaderWorks runs two replicas. Only the leader works; the other one works after the leader has ended.
func TestTheLeaderWorks(t *testing.T) {
	inEmptyWorld(t, testserver.Options{}, func(w *world) {
		start := func() (stop func()) {
			o := w.options(cli.Options{Lease: api.Key{Namespace: "kube-system", Name: "trainingjob"}}, w.output())
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- serve(ctx, o) }()
			w.Idle()
			return func() {
				cancel()
				require.NoError(w, <-ended)
			}
		}
		first, second := start(), start()
		w.define()
		w.submit(asIs)
		w.Pass(time.Minute)
		require.Equal(w, everybody, w.pods())
		require.Equal(w, 3, w.Requests("create", "pods"), "one of the replicas has worked")
		first()
		w.Pass(20 * time.Second)
		w.ends("chief-0", corev1.PodSucceeded, 0)
		require.Equal(w, "Created Succeeded", w.state())
		second()
	})
}

func TestCommandLine(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"help":        {[]string{"-h"}, 0, "-install-crd"},
		"bad address": {[]string{"--server", "http://" + closed.Addr().String(), "--admin", "nowhere:here"}, 1, "unknown port"},
	} {
		var stderr bytes.Buffer
		require.Equal(t, c.code, command().Run(t.Context(), c.args, &stderr), name)
		require.Contains(t, stderr.String(), c.says, name)
		if c.code != 0 {
			lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			require.True(t, strings.HasPrefix(lines[len(lines)-1], "trainingjob: "), "%s: %s", name, &stderr)
		}
	}
}

func TestInvalidJobs(t *testing.T) {
	for says, change := range map[string]func(*job.TrainingJob){
		"a chief, a master or a worker": func(j *job.TrainingJob) { j.Spec.Replicas = nil },
		"must be 0 or 1": func(j *job.TrainingJob) {
			j.Spec.Replicas[job.Chief] = j.Spec.Replicas[job.Worker]
		},
		`needs a container with the name "tensorflow"`: func(j *job.TrainingJob) {
			j.Spec.Replicas[job.Chief].Template.Spec.Containers[0].Name = "main"
		},
	} {
		inProgram(t, func(w *world) {
			w.submit(change)
			w.Pass(time.Hour)
			require.Equal(w, "Created Failed", w.state())
			require.Equal(w, "InvalidSpec", w.reason(job.Failed))
			require.Equal(w, []string{"InvalidSpec", "JobCreated"}, w.events())
			require.Len(w, w.Errors(), 1)
			require.Contains(w, w.Errors()[0], "is not retried")
			require.Contains(w, w.Errors()[0], says)
			require.Empty(w, w.pods())
			require.EqualValues(w, 1, w.counts.Failed.Load())
		})
	}
}
