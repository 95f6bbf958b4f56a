package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster/internal/apply"
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

func TestStrategicMerge(t *testing.T) {
	merge := apply.Strategic("", "Pod")
	original := parse(t, podText)
	before := text(t, original)
	for _, c := range []struct{ name, patch, want string }{
		{
			"a list with keys", "{spec: {containers: [{name: app, image: caddy, ports: null, env: null}, {name: side, image: s}]}}",
			`[{"image":"caddy","imagePullPolicy":"Always","name":"app","resources":{},"terminationMessagePath":"/dev/termination-log",` +
				`"terminationMessagePolicy":"File"},{"image":"s","name":"side"}]`,
		},
		{"a deleted item", "{spec: {containers: [{name: app, $patch: delete}]}}", `[]`},
		{"a replaced list", "{spec: {containers: [{name: b}, {$patch: replace}]}}", `[{"name":"b"}]`},
		{"an order", "{spec: {$setElementOrder/containers: [{name: b}, {name: app}], containers: [{name: b}, {name: app, env: null, ports: null, $retainKeys: [name]}]}}", `[{"name":"b"},{"name":"app"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			patch := parse(t, c.patch)
			got := must.Get(merge("v1", original, patch))(t)
			require.Equal(t, c.want, text(t, got["spec"].(map[string]any)["containers"]))
			require.Equal(t, before, text(t, original), "the original changed")
			require.Equal(t, text(t, parse(t, c.patch)), text(t, patch), "the patch changed")
		})
	}
}

func TestPatchesThatCannotBeMerged(t *testing.T) {
	merge := apply.Strategic("", "Pod")
	original := parse(t, podText)
	_, err := merge("v1", original, parse(t, "{spec: {$retainKeys: [other], hostNetwork: true}}"))
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	_, err = merge("v1", original, parse(t, "{spec: {containers: [{image: x}]}}"))
	require.EqualError(t, err, "map: map[image:x] does not contain declared merge key: name")
	_, err = merge("v9", original, parse(t, "{}"))
	require.Error(t, err)
}

func FuzzStrategic(f *testing.F) {
	for _, seed := range []string{
		`{"spec":{"containers":[{"name":"a","$patch":"delete"}]}}`, `{"spec":{"$setElementOrder/containers":[{"name":"a"}]}}`,
		`{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}`, `{"spec":{"$retainKeys":["a"]}}`, `{"$patch":"replace"}`,
		`{"spec":{"containers":[[]]}}`, `{"spec":{"containers":[{"ports":[{"containerPort":{}}]}]}}`, `{"spec":null}`,
	} {
		f.Add([]byte(seed))
	}
	merge := apply.Strategic("", "Pod")
	f.Fuzz(func(t *testing.T, data []byte) {
		patch, err := decode(data)
		if err != nil {
			return
		}
		original := parse(t, podText)
		before := text(t, original)
		first, err := merge("v1", original, patch)
		require.Equal(t, before, text(t, original))
		if err != nil {
			return
		}
		second := must.Get(merge("v1", original, patch))(t)
		require.Equal(t, text(t, first), text(t, second))
	})
}
