package docs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/trace"
	"github.com/leatproject/leat/testserver"
)

// walkedPod is what the walkthrough's controller looks at.
type walkedPod struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

var podResource = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

// walk follows one Pod through every stage, each step awaited, and prints what the stages did.
func walk(out *trace.Printer) error {
	serving, stop := context.WithCancel(context.Background())
	defer stop()
	ctx, cancel := context.WithCancel(serving)
	defer cancel()
	server := testserver.New(testserver.Options{ImmediateDeletion: true})
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	if err != nil {
		return err
	}
	pods := trace.NewInformer(out, apiclient.NewPartial[*walkedPod](client, podResource, ""), informer.Options[*walkedPod]{})
	reconciled := make(chan struct{})
	c := controller.New("walk", controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		for _, cause := range controller.Causes(ctx) {
			out.Line("workqueue", key.String(), "because of %s, version %s", cause.Event, cause.Version)
		}
		if pod, ok := pods.Cache().Get(key); ok {
			out.Line("reconcile", key.String(), "on node %q", pod.Spec.NodeName)
		} else {
			out.Line("reconcile", key.String(), "gone")
		}
		return controller.Result{}, nil
	}), controller.Options{})
	c.Trace(controller.Trace{Reconciled: func(controller.Reconciled) { reconciled <- struct{}{} }})
	c.Watch(controller.For(pods))

	served, running := make(chan error, 1), make(chan error, 2)
	go func() { served <- server.Run(serving) }()
	for _, run := range []func(context.Context) error{pods.Run, c.Run} {
		go func() { running <- run(ctx) }()
	}
	<-c.Synced()
	<-pods.Printed()
	live := apiclient.NewTyped[*unstructured.Unstructured](client, podResource, "default")
	key := api.Key{Namespace: "default", Name: "web"}
	for _, step := range []struct {
		title string
		do    func() error
	}{
		{"The Pod is created.", func() error {
			_, err := live.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Pod",
				"metadata": map[string]any{"name": "web"},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "web:1"}}},
			}}, metav1.CreateOptions{})
			return err
		}},
		{"The scheduler picks a node for it.", func() error {
			patch, err := apiclient.MergePatch(map[string]any{"spec": map[string]any{"nodeName": "node-1"}})
			if err == nil {
				_, err = live.Patch(ctx, key, patch, apiclient.PatchOptions{})
			}
			return err
		}},
		{"It is deleted.", func() error { return live.Delete(ctx, key, metav1.DeleteOptions{}) }},
	} {
		out.Printf("%s\n", step.title)
		if err := step.do(); err != nil {
			return err
		}
		<-reconciled
	}
	cancel()
	err = errors.Join(<-running, <-running)
	stop()
	return errors.Join(err, <-served)
}

// The life of one Pod, as walkthrough.md tells it.
func Example_walkthrough() {
	if err := walk(trace.To(os.Stdout, nil)); err != nil {
		fmt.Println(err)
	}
	// Output:
	//   apiclient  pods         watch with the initial state
	//   apiclient  pods         BOOKMARK version 100: the initial state is complete
	//   cache      pods         0 objects, version 100
	// The Pod is created.
	//   apiclient  pods         ADDED default/web version 101
	//   deltafifo  pods         default/web [Added]
	//   cache      pods         1 object, version 101
	//   handler    pods         Added default/web version 101
	//   workqueue  default/web  because of add, version 101
	//   reconcile  default/web  on node ""
	// The scheduler picks a node for it.
	//   apiclient  pods         MODIFIED default/web version 102
	//   deltafifo  pods         default/web [Updated]
	//   cache      pods         1 object, version 102
	//   handler    pods         Updated default/web version 102, was 101
	//   workqueue  default/web  because of update, version 102
	//   reconcile  default/web  on node "node-1"
	// It is deleted.
	//   apiclient  pods         DELETED default/web version 103
	//   deltafifo  pods         default/web [Deleted]
	//   cache      pods         0 objects, version 103
	//   handler    pods         Deleted default/web version 103
	//   workqueue  default/web  because of delete, version 103
	//   reconcile  default/web  gone
}

func TestWalkthroughShowsTheTrace(t *testing.T) {
	var trail strings.Builder
	require.NoError(t, walk(trace.To(&trail, nil)))
	page := must.Get(os.ReadFile("walkthrough.md"))(t)
	var shown strings.Builder
	for block := range strings.SplitSeq(string(page), "```") {
		if lines, ok := strings.CutPrefix(block, "text\n"); ok {
			shown.WriteString(lines)
		}
	}
	require.Equal(t, trail.String(), shown.String())
}

// TestReadmeShowsAProgram holds the program of README.md to the one in examples/neighbours.
func TestReadmeShowsAProgram(t *testing.T) {
	readme := must.Get(os.ReadFile("../README.md"))(t)
	source := must.Get(os.ReadFile("../examples/neighbours/main.go"))(t)
	_, example, found := strings.Cut(string(readme), "```go\n")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "```")
	require.Equal(t, string(source), example)
}

// TestTestingPageShowsWhatIsRun holds the code on the page about testing to the code that is run here.
func TestTestingPageShowsWhatIsRun(t *testing.T) {
	page := must.Get(os.ReadFile("testing.md"))(t)
	source := must.Get(os.ReadFile("testing_test.go"))(t)
	shown := 0
	for block := range strings.SplitSeq(string(page), "```") {
		if code, ok := strings.CutPrefix(block, "go\n"); ok {
			require.Contains(t, string(source), code)
			shown++
		}
	}
	require.Equal(t, 5, shown)
}

func TestPagesNameTestsThatExist(t *testing.T) {
	var tests strings.Builder
	require.NoError(t, filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		tests.Write(source)
		return err
	}))
	named := regexp.MustCompile(`\b(Test|Fuzz|Benchmark|Example)[A-Z_]\w+`)
	for _, page := range []string{"../README.md", "../CONTRIBUTING.md", "architecture.md", "concurrency.md", "client-go.md", "walkthrough.md", "testing.md"} {
		text := must.Get(os.ReadFile(page))(t)
		for _, name := range named.FindAllString(string(text), -1) {
			require.Contains(t, tests.String(), "func "+name+"(", "named in %s", page)
		}
	}
}
