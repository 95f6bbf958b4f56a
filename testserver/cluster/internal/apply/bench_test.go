package apply_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/cluster/internal/apply"
	"github.com/leatproject/leat/testserver/internal/fieldmanager"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

const podText = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default, labels: {app: web}}
spec:
  restartPolicy: Always
  terminationGracePeriodSeconds: 30
  dnsPolicy: ClusterFirst
  securityContext: {}
  schedulerName: default-scheduler
  enableServiceLinks: true
  containers:
  - name: app
    image: nginx
    resources: {}
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    imagePullPolicy: Always
    ports: [{containerPort: 80, protocol: TCP}]
    env: [{name: A, value: b}, {name: C, value: d}]
status: {}
`

func BenchmarkUpdated(b *testing.B) {
	by := registry.Manager{Name: "bench", Served: "v1"}
	for _, c := range []struct {
		name, kind string
		tree       object.Tree
	}{
		{"configmap", "ConfigMap", object.Tree{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": object.Tree{"name": "m", "namespace": "default"},
			"data": object.Tree{"text": strings.Repeat("x", 1<<10)},
		}},
		{"pod", "Pod", parse(b, podText)},
	} {
		m := apply.Builtin(fieldmanager.Kind{Kind: c.kind})
		b.Run(c.name+"/create", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := m.Updated(by, nil, c.tree)
				require.NoError(b, err)
			}
		})
		b.Run(c.name+"/update", func(b *testing.B) {
			live, err := m.Updated(by, nil, c.tree)
			require.NoError(b, err)
			object.Metadata(live)["uid"] = "1"
			after, err := object.From(live)
			require.NoError(b, err)
			object.Metadata(after)["labels"] = object.Tree{"app": "other"}
			b.ReportAllocs()
			for b.Loop() {
				_, err := m.Updated(by, live, after)
				require.NoError(b, err)
			}
		})
	}
}
