package load

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
)

var fixed = NewSet(Seed, Workloads)

func decode(t *testing.T, s *Set, f Form, i int) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	encoded := s.Append(nil, f, i, State{Version: FirstVersion + 7, Restarts: 3})
	if f == Protobuf {
		require.NoError(t, pod.Unmarshal(encoded))
	} else {
		require.NoError(t, json.Unmarshal(encoded, pod))
	}
	return pod
}

func TestTheFixedSetIsFixed(t *testing.T) {
	sum := sha256.New()
	var b []byte
	for i := range 2 * Workloads {
		for f := range forms {
			b = fixed.Append(b[:0], f, i, State{Version: FirstVersion})
			sum.Write(b)
		}
	}
	require.Equal(t, "e303c9872d5ef948a4468ea11c32e71673aa69ed07029f6c9e3d51400271bc82", hex.EncodeToString(sum.Sum(nil)))
}

func TestSizesAndShares(t *testing.T) {
	var sizes, wire, total, managed []int
	for i := range Workloads {
		size := fixed.Size(JSON, i)
		pod := decode(t, fixed, JSON, i)
		fields, err := json.Marshal(pod.ManagedFields)
		require.NoError(t, err)
		require.Greater(t, size, 5*1024, "%d", i)
		require.Less(t, size, 9*1024, "%d", i)
		share := float64(len(fields)) / float64(size)
		require.Greater(t, share, 0.25, "%d", i)
		require.Less(t, share, 0.40, "%d", i)
		sizes, wire = append(sizes, size), append(wire, fixed.Size(Protobuf, i))
		total, managed = append(total, size), append(managed, len(fields))
	}
	slices.Sort(sizes)
	slices.Sort(wire)
	t.Logf("JSON %d to %d bytes, half of them more than %d; protobuf half more than %d; managedFields %.0f %%",
		sizes[0], sizes[len(sizes)-1], sizes[len(sizes)/2], wire[len(wire)/2], 100*float64(sum(managed))/float64(sum(total)))
}

func TestHashesAreThoseOfKubernetes(t *testing.T) {
	const pods = 5000
	fifth := 0
	for i, hash := range fixed.Hashes(pods) {
		require.Equal(t, sharding.HashField(string(decode(t, fixed, Protobuf, i).UID)), fmt.Sprintf("%016x", hash))
		if hash < math.MaxUint64/5 {
			fifth++
		}
	}
	require.InDelta(t, pods/5, fifth, pods/50)
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

func TestPodsVary(t *testing.T) {
	const pods = 3 * Workloads
	seen := map[string]map[string]bool{}
	note := func(what, value string) {
		if seen[what] == nil {
			seen[what] = map[string]bool{}
		}
		seen[what][value] = true
	}
	for i := range pods {
		pod := decode(t, fixed, JSON, i)
		note("key", pod.Namespace+"/"+pod.Name)
		note("UID", string(pod.UID))
		note("address", pod.Status.PodIP)
		note("container", pod.Status.ContainerStatuses[0].ContainerID)
		note("node", pod.Spec.NodeName)
		note("workload", pod.Labels["app.kubernetes.io/name"])
		note("image", pod.Spec.Containers[0].Image)
		note("namespace", pod.Namespace)
		note("phase", string(pod.Status.Phase))
		require.GreaterOrEqual(t, len(pod.Labels), 4)
		require.Len(t, pod.Status.Conditions, 5)
	}
	for what, want := range map[string]int{
		"key": pods, "UID": pods, "address": pods, "container": pods, "node": Nodes, "workload": Workloads, "image": Workloads,
		"namespace": 200, "phase": 2,
	} {
		require.Len(t, seen[what], want, what)
	}
}

func TestEncodingsAgree(t *testing.T) {
	for i := range 500 {
		whole := decode(t, fixed, JSON, 31*i)
		require.Equal(t, metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, whole.TypeMeta)
		require.Equal(t, "1000000007", whole.ResourceVersion)
		require.Contains(t, whole.Status.Conditions[2].Message, "000000003")
		bare := *whole
		bare.TypeMeta = metav1.TypeMeta{}
		listed, wire := decode(t, fixed, JSONInList, 31*i), decode(t, fixed, Protobuf, 31*i)
		require.Equal(t, &bare, listed)
		again, err := json.Marshal(wire) // quantities and times are cached differently
		require.NoError(t, err)
		require.Equal(t, string(fixed.Append(nil, JSONInList, 31*i, State{Version: FirstVersion + 7, Restarts: 3})), string(again))

		var metadata, wireMetadata metav1.PartialObjectMetadata
		require.NoError(t, json.Unmarshal(fixed.Append(nil, MetadataJSON, 31*i, State{Version: FirstVersion + 7}), &metadata))
		require.Equal(t, whole.ObjectMeta, metadata.ObjectMeta)
		require.Equal(t, "PartialObjectMetadata", metadata.Kind)
		require.NoError(t, wireMetadata.Unmarshal(fixed.Append(nil, MetadataProtobuf, 31*i, State{Version: FirstVersion + 7})))
		require.Equal(t, whole.UID, wireMetadata.UID)
		require.Equal(t, whole.Labels, wireMetadata.Labels)
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	b := make([]byte, 0, 16<<10)
	i := 0
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		b = fixed.Append(b[:0], JSON, i, State{Version: FirstVersion})
		i++
	}))
}
