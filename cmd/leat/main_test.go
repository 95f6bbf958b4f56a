package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// output collects the output of a command. A test can wait for a text in it.
type output struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// await blocks until the output contains text.
func (o *output) await(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(o.String(), text) {
		select {
		case <-o.changed:
		case <-t.Context().Done():
			t.Fatalf("there was no %q in:\n%s", text, o)
		}
	}
}

// serving runs leat serve on a free port and returns the path of the kubeconfig that it wrote.
func serving(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	ctx, cancel := context.WithCancel(t.Context())
	out, errs := newOutput(), newOutput()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0", "--kubeconfig-out", path}, flags...), out, errs)
	}()
	t.Cleanup(func() {
		cancel()
		require.Zero(t, <-ended, errs)
	})
	out.await(t, "try: leat watch")
	return path
}

var configMaps = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}

// create makes a config map on the server of a kubeconfig.
func create(t *testing.T, path, name string) *apiclient.TypedClient[*metav1.PartialObjectMetadata] {
	t.Helper()
	cfg, namespace, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
	require.NoError(t, err)
	client, err := apiclient.New(cfg)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	live := apiclient.NewTyped[*metav1.PartialObjectMetadata](client, configMaps, namespace)
	_, err = live.Create(t.Context(), &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return live
}

func TestWatchPrintsALineAnEvent(t *testing.T) {
	for name, flags := range map[string][]string{
		"plain":         nil,
		"TLS":           {"--tls"},
		"a token":       {"--token", "secret"},
		"every address": {"--listen", "0.0.0.0:0", "--tls", "--token", "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			path := serving(t, flags...)
			live := create(t, path, "one")
			for _, way := range [][]string{nil, {"--websocket"}, {"--paged"}} {
				ctx, cancel := context.WithCancel(t.Context())
				out, errs := newOutput(), newOutput()
				ended := make(chan int, 1)
				go func() {
					ended <- run(ctx, append([]string{"watch", "configmaps", "-A", "--kubeconfig", path}, way...), out, errs)
				}()
				out.await(t, "SYNCED    configmaps (1)")
				create(t, path, "two")
				out.await(t, "ADDED     default/two")
				require.NoError(t, live.Delete(t.Context(), api.Key{Namespace: "default", Name: "two"}, metav1.DeleteOptions{}))
				out.await(t, "DELETED   default/two")
				cancel()
				require.Zero(t, <-ended, "an interrupt is a good end")
				require.Empty(t, errs.String())
				require.True(t, strings.HasPrefix(out.String(), "ADDED     default/one "), out)
			}
		})
	}
}

func TestWatchFormats(t *testing.T) {
	path := serving(t)
	create(t, path, "one")
	watch := func(flags ...string) string {
		out, errs := newOutput(), newOutput()
		args := append([]string{"watch", "configmaps", "--once", "--kubeconfig", path}, flags...)
		require.Zero(t, run(t.Context(), args, out, errs), errs)
		return out.String()
	}
	require.Equal(t, "default/one\n", watch("-o", "name"))
	require.Empty(t, watch("-o", "name", "-n", "elsewhere"))
	require.Empty(t, watch("-o", "name", "--field-selector", "metadata.name=two"))
	lines := strings.Split(strings.TrimSpace(watch("-o", "json")), "\n")
	require.Len(t, lines, 2)
	var added, synced struct {
		Type    string
		Object  struct{ Kind string }
		Objects int
	}
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &added))
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &synced))
	require.Equal(t, "ADDED ConfigMap", added.Type+" "+added.Object.Kind)
	require.Equal(t, "SYNCED", synced.Type)
	require.Equal(t, 1, synced.Objects)
}

// TestBadInputGetsOneClearLine shows the error for each kind of wrong input.
func TestBadInputGetsOneClearLine(t *testing.T) {
	path := serving(t)
	refused := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	require.NoError(t, refused.Close())
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.WriteFile(broken, []byte("clusters: 7\n"), 0o600))
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"watch"}, 2, "takes one resource"},
		{[]string{"watch", "pods", "nodes"}, 2, "takes one resource"},
		{[]string{"watch", "pods", "-A", "-n", "x"}, 2, "-n and -A exclude each other"},
		{[]string{"watch", "pods", "--selector", "a in ("}, 2, "--selector"},
		{[]string{"watch", "pods", "--field-selector", "a"}, 2, "--field-selector"},
		{[]string{"watch", "pods", "-o", "xml"}, 2, "line, json and name"},
		{[]string{"watch", "pods", "--paged=perhaps"}, 2, "--paged"},
		{[]string{"watch", "pods", "--kubeconfig", "/no/such/file"}, 1, "/no/such/file"},
		{[]string{"watch", "pods", "--nope"}, 2, "unknown flag: --nope (see leat watch --help)"},
		{[]string{"nope"}, 2, `unknown command "nope"`},
		{[]string{"wtach"}, 2, `unknown command "wtach" for "leat"; Did you mean this? watch`},
		{[]string{"watch", "pods", "--kubeconfig", path, "-n", "a/b"}, 2, `"a/b" cannot be the name of a namespace`},
		{[]string{"watch", "pods", "--kubeconfig", path, "-n", ".."}, 2, `".." cannot be the name of a namespace`},
		{[]string{"demo", "x"}, 2, "takes no argument"},
		{[]string{"serve", "--listen", "0.0.0.0:0"}, 2, "it needs a --token"},
		{[]string{"serve", "--listen", "nowhere"}, 2, "--listen: "},
		{[]string{"serve", "--listen", refused.Addr().String(), "--metrics", "nowhere", "--seed", "x"}, 2, `--seed "x" is not a number`},
		{[]string{"serve", "--fault", "explode"}, 2, `--fault: fault "explode": "explode" is not an effect`},
		{[]string{"serve", "--admin", "0.0.0.0:0"}, 2, "it must be an address of loopback"},
		{[]string{"serve", "--allow-host", "http://leat.example"}, 2, "--allow-host: "},
		{[]string{"serve", "--listen", "127.0.0.1:0", "--kubeconfig-out", "/no/such/folder/x"}, 1, "--kubeconfig-out: "},
		{[]string{"watch", "podz", "--kubeconfig", path}, 1, `unknown resource "podz"`},
		{[]string{"watch", "pods", "--kubeconfig", "/no/such/file"}, 1, "/no/such/file"},
		{[]string{"watch", "pods", "--kubeconfig", broken}, 1, broken},
		{[]string{"watch", "pods", "--kubeconfig", path, "--context", "nope"}, 1, `"nope"`},
		{[]string{"watch", "pods", "--server", "http://" + refused.Addr().String()}, 1, "connection refused"},
		{[]string{"watch", "pods", "--server", "localhost"}, 1, "no scheme"},
		{[]string{"watch", "pods", "--kubeconfig", path, "--field-selector", "foo=bar"}, 1, "field label not supported: foo"},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			out, errs := newOutput(), newOutput()
			require.Equal(t, tc.code, run(t.Context(), tc.args, out, errs), errs)
			require.Empty(t, out.String())
			require.Contains(t, errs.String(), tc.says)
			require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs)
			require.True(t, strings.HasPrefix(errs.String(), "leat: "), errs)
		})
	}
}

func TestCredentialsAreMissing(t *testing.T) {
	path := serving(t, "--token", "secret")
	cfg, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
	require.NoError(t, err)
	for _, token := range []string{"", "wrong-secret"} {
		out, errs := newOutput(), newOutput()
		require.Equal(t, 1, run(t.Context(), []string{"watch", "pods", "--server", cfg.Host, "--token", token}, out, errs))
		require.Contains(t, errs.String(), "Unauthorized")
		require.NotContains(t, errs.String(), "secret")
	}
}

// TestForbiddenList has a server that refuses the WatchList and then the list.
func TestForbiddenList(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := testserver.New(testserver.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	server.Inject(faults.Fault{Match: faults.Match{Resource: "secrets"}, Effect: faults.Fail{Code: 403, Message: "secrets is forbidden: you may not"}})
	out, errs := newOutput(), newOutput()
	require.Equal(t, 1, run(t.Context(), []string{"watch", "secrets", "--server", "http://" + listener.Addr().String()}, out, errs))
	require.Equal(t, "leat: list secrets: secrets is forbidden: you may not\n", errs.String())
	cancel()
	require.NoError(t, <-ended)
}

func TestDemo(t *testing.T) {
	out, errs := newOutput(), newOutput()
	require.Zero(t, run(t.Context(), []string{"demo"}, out, errs), errs)
	for _, stage := range []string{"apiclient", "deltafifo", "cache", "handler", "workqueue", "reconcile"} {
		require.Contains(t, out.String(), "\n  "+stage, "every stage says what it did")
	}
	require.Contains(t, out.String(), "final state unknown", "a missed deletion is found")
	require.Contains(t, out.String(), "6. ")
	require.Contains(t, out.String(), "Now read README.md")
	require.Empty(t, errs.String())
}

func TestDemoKeepsRunning(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, errs := newOutput(), newOutput()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"demo", "--keep-running"}, out, errs) }()
	out.await(t, "still running")
	lines := newOutput()
	require.Zero(t, run(ctx, []string{"watch", "pods", "-A", "--once", "--server", after(out, "--server ")}, lines, errs), errs)
	require.Contains(t, lines.String(), "SYNCED    pods (0)")
	cancel()
	require.Zero(t, <-ended, errs)
}
