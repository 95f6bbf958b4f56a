package cache_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// examplePod makes a Pod for the examples.
func examplePod(namespace, name, node, app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

// A writer changes an Indexer in transactions. A reader may keep its snapshot as long as it likes.
func ExampleIndexer() {
	ix := cache.New[*corev1.Pod]()

	txn := ix.Begin()
	txn.Set(examplePod("default", "web-1", "node-1", "web"))
	txn.Set(examplePod("default", "web-2", "node-2", "web"))
	txn.Commit("100")
	before := ix.Snapshot()

	txn = ix.Begin()
	txn.Delete(api.Key{Namespace: "default", Name: "web-1"})
	fmt.Println("during:", ix.Len(), "at", ix.ResourceVersion())
	txn.Commit("101")

	fmt.Println("after:", ix.Len(), "at", ix.ResourceVersion())
	fmt.Println("before:", before.Len(), "at", before.ResourceVersion())
	// Output:
	// during: 2 at 100
	// after: 1 at 101
	// before: 2 at 100
}

// An index is a value with a type instead of a name, so a typing error does not compile.
func ExampleAddIndex() {
	ix := cache.New[*corev1.Pod]()
	byNode := cache.AddIndex(ix, func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })

	txn := ix.Begin()
	txn.Set(examplePod("default", "web-1", "node-1", "web"))
	txn.Set(examplePod("default", "web-2", "node-2", "web"))
	txn.Set(examplePod("default", "db-1", "node-1", "db"))
	s := txn.Commit("100")

	fmt.Println(byNode.Keys("node-1"))
	fmt.Println(byNode.Len("node-3"))
	for key := range byNode.In(s, "node-2") { // several questions about the same state
		_, found := s.Get(key)
		fmt.Println(key, found)
	}
	// Output:
	// [default/db-1 default/web-1]
	// 0
	// default/web-2 true
}

func ExampleMutationDetector() {
	var detector cache.MutationDetector[*corev1.Pod]
	pod := examplePod("default", "web-1", "node-1", "web")
	detector.Observe(pod) // the informer does this when it stores the object

	pod.Spec.NodeName = "node-2" // forbidden: the object is shared
	pod.Labels["app"] = "db"
	for _, mutation := range detector.Check() {
		fmt.Println(mutation)
	}
	// Output:
	// default/web-1 was changed after it was shared:
	// .ObjectMeta.Labels["app"]: "web" → "db"
	// .Spec.NodeName: "node-1" → "node-2"
}
