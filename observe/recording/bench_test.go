//go:build unix

package recording_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/observe/recording"
)

// small has eight fields of a pod.
type small struct {
	Metadata struct {
		Namespace       string            `json:"namespace"`
		Name            string            `json:"name"`
		UID             types.UID         `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
		PodIP string `json:"podIP"`
	} `json:"status"`
}

// around repeats one stream forever.
type around struct {
	b  []byte
	at int
}

func (a *around) Read(p []byte) (int, error) {
	n := copy(p, a.b[a.at:])
	a.at = (a.at + n) % len(a.b)
	return n, nil
}

// largePod is a pod of 5 KB, as a ReplicaSet makes them.
func largePod(i int) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("frontend-6b8d7f9c5-%05d", i), Namespace: "shop", ResourceVersion: fmt.Sprint(1000 + i),
			UID:    types.UID(fmt.Sprintf("11111111-2222-4333-8444-%012d", i)),
			Labels: map[string]string{"app.kubernetes.io/name": "frontend", "app.kubernetes.io/instance": "shop", "pod-template-hash": "6b8d7f9c5"},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kubelet", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:status":{` + strings.Repeat(`"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{}},`, 30) + `"f:phase":{}}}`),
			}},
		},
		Spec:   corev1.PodSpec{NodeName: fmt.Sprintf("node-%d.example.com", i%100), ServiceAccountName: "frontend"},
		Status: corev1.PodStatus{Phase: "Running", HostIP: "192.168.1.7", PodIP: "10.1.2.3"},
	}
	for _, name := range []string{"frontend", "proxy"} {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: name, Image: "registry.example.com/shop/" + name + ":v1.27.3", Env: []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access-x7x2p", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
		})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Ready: true, ImageID: "registry.example.com/shop/" + name + "@sha256:" + strings.Repeat("ab", 32),
			ContainerID: "containerd://" + strings.Repeat("cd", 32),
		})
	}
	for _, c := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: c, Status: "True"})
	}
	return p
}

// BenchmarkTap decodes watch events of 5 KB into eight fields, without a tap and with one. An event is decoded as soon
// as it is read, as in an agent. cpu-ns/op is the processor time of the whole process: with the tap, it includes the
// goroutine that writes the file. The events come without a pause, so no cost hides in idle time.
func BenchmarkTap(b *testing.B) {
	var stream []byte
	for i := range 300 {
		frame, err := json.Marshal(map[string]any{"type": "MODIFIED", "object": largePod(i)})
		if err != nil {
			b.Fatal(err)
		}
		stream = append(append(stream, frame...), '\n')
	}
	c := codec.New[*small](codec.Options{})
	for _, mode := range []struct {
		name string
		make func(*testing.B, recording.Options) *recording.Recorder
	}{
		{"tap=none", nil},
		{"tap=file", toFile},
	} {
		b.Run(mode.name, func(b *testing.B) {
			var body io.Reader = &around{b: stream}
			if mode.make != nil {
				body = tappedBody(b, body, mode.make)
			}
			events, err := c.NewEventReader(context.Background(), body, "application/json", pods, api.Options[*small]{DropManagedFields: true})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(stream) / 300))
			before := processorTime(b)
			for b.Loop() {
				if _, err := events.Next(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// toFile records to a file.
func toFile(b *testing.B, o recording.Options) *recording.Recorder {
	f, err := os.Create(filepath.Join(b.TempDir(), "bench.rec"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	r, err := recording.New(&rewinding{File: f}, o)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// tappedBody returns a body that is recorded.
func tappedBody(b *testing.B, body io.Reader, newRecorder func(*testing.B, recording.Options) *recording.Recorder) io.Reader {
	r := newRecorder(b, recording.Options{Wait: true, Backlog: 1 << 20})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	rt := r.Wrap(fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(body)}, nil
	}))
	req, err := http.NewRequest(http.MethodGet, "https://server/api/v1/pods?watch=true", nil)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	return resp.Body
}

// rewinding is a file that begins again at its start before it fills the disk.
type rewinding struct {
	*os.File
	n int
}

func (r *rewinding) Write(p []byte) (int, error) {
	if r.n += len(p); r.n > 256<<20 {
		r.n = len(p)
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
	}
	return r.File.Write(p)
}

func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
