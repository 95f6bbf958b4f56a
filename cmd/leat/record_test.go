package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/observe/recording"
)

// recordedFile records a config map that is created, updated and deleted, and another one that stays.
func recordedFile(t *testing.T) string {
	t.Helper()
	before := recordProgress
	recordProgress = 10 * time.Millisecond
	t.Cleanup(func() { recordProgress = before })
	server := serving(t, "--token", "a-token-of-the-test", "--tls")
	create(t, server, "first")
	path := filepath.Join(t.TempDir(), "test.rec")
	ctx, cancel := context.WithCancel(t.Context())
	out, errs := newOutput(), newOutput()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"record", "cm,secrets", "deploy", "-A", "-o", path, "--redact", "ConfigMaps:data.password", "--redact", "configmaps:Datum", "--kubeconfig", server}, out, errs)
	}()
	errs.await(t, "leat: recording 1 configmaps, 0 secrets, 0 deployments.apps; ")
	cfg, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: server})
	require.NoError(t, err)
	client, err := apiclient.New(cfg)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	live := apiclient.NewTyped[*unstructured.Unstructured](client, configMaps, "default")
	one := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"},
		"data": map[string]any{"a": "hello", "password": "a-password-of-the-test"},
	}}
	one, err = live.Create(t.Context(), one, metav1.CreateOptions{})
	require.NoError(t, err)
	errs.await(t, "2 configmaps, ")
	require.NoError(t, unstructured.SetNestedField(one.Object, "bye", "data", "a"))
	_, err = live.Update(t.Context(), one, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, live.Delete(t.Context(), api.Key{Name: "one"}, metav1.DeleteOptions{}))
	errs.await(t, "; 7 events, ") // two objects that were added, one update, one deletion, three bookmarks
	cancel()
	require.Zero(t, <-ended, errs)
	require.Empty(t, out.String())
	require.Contains(t, errs.String(), "leat: wrote "+path+": 1 configmaps, 0 secrets, 0 deployments.apps; ")
	require.Contains(t, errs.String(), "\nleat: --redact configmaps:Datum matched nothing; check the path before you share the file\n")
	require.Equal(t, 1, strings.Count(errs.String(), "matched nothing"))
	return path
}

// leat runs a command that must end with a code.
func leat(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	out, errs := newOutput(), newOutput()
	require.Equal(t, code, run(t.Context(), args, out, errs), "%s%s", out, errs)
	return out.String(), errs.String()
}

// TestRecordShowAndReplay records, and looks at the recording in every way.
func TestRecordShowAndReplay(t *testing.T) {
	path := recordedFile(t)
	info := must.Get(os.Stat(path))(t)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	out, _ := leat(t, 0, "show", path)
	require.Contains(t, out, "RESOURCE           KIND         OBJECTS   CHANGES   LISTS   WATCHES   FAILED\n")
	require.Contains(t, out, "configmaps         ConfigMap    1         3         0       1         0\n")
	require.Contains(t, out, "deployments.apps   Deployment   0         0 ")
	out, _ = leat(t, 0, "show", path, "cm", "-o", "name")
	require.Equal(t, "default/first\n", out)
	out, _ = leat(t, 0, "show", path, "ConfigMap", "-n", "elsewhere", "-o", "name")
	require.Empty(t, out)
	out, _ = leat(t, 0, "show", path, "configmaps")
	require.Regexp(t, `default +first +\d+ +before\n$`, out)
	out, _ = leat(t, 0, "show", path, "configmaps", "-o", "json")
	var list unstructured.UnstructuredList
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Len(t, list.Items, 1)
	require.Equal(t, "ConfigMap", list.Items[0].GetKind())
	out, _ = leat(t, 0, "show", path, "configmaps", "--object", "default/one")
	require.Regexp(t, `^[\d:.]+  ADDED     version \d+\n[\d:.]+  MODIFIED  version \d+\n  ~ data\.a: "hello" → "bye"\n[\d:.]+  DELETED   version \d+\n$`, out)
}

// TestShowOfWrongFiles has files that are cut, damaged or something else, and wrong arguments.
func TestShowOfWrongFiles(t *testing.T) {
	path := recordedFile(t)
	whole := must.Get(os.ReadFile(path))(t)
	write := func(name string, b []byte) string {
		to := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(to, b, 0o600))
		return to
	}
	require.NotContains(t, string(whole), "a-token-of-the-test")
	out, errs := leat(t, 1, "show", write("cut", whole[:len(whole)-30]))
	require.Contains(t, out, "configmaps         ConfigMap    1 ")
	require.Contains(t, errs, "the file is cut off")
	damaged := append([]byte(nil), whole...)
	damaged[100] ^= 1
	_, errs = leat(t, 1, "show", write("damaged", damaged))
	require.Contains(t, errs, "damaged")
	require.Contains(t, errs, "; the rest was read")
	_, errs = leat(t, 1, "show", write("cut", whole[:len(whole)-30]), "cm", "--object", "default/none")
	require.Contains(t, errs, "the recording has no configmaps default/none; ")
	require.Contains(t, errs, "the file is cut off")
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{1, "the file is not a recording of leat", []string{"show", write("text", []byte("some text that is long enough"))}},
		{1, "no such file", []string{"show", "/no/such/file"}},
		{2, "needs the file of a recording", []string{"show"}},
		{2, "the recording has no pods; it has configmaps, deployments.apps, secrets", []string{"show", path, "pods"}},
		{2, `write a time as 12:03:05`, []string{"show", path, "cm", "--at", "noon"}},
		{2, "is outside of the recording", []string{"show", path, "cm", "--at", "+10h"}},
		{2, "--at, --diff and --object exclude each other", []string{"show", path, "cm", "--at", "+1s", "--object", "a/b"}},
		{2, "--diff needs two times", []string{"show", path, "cm", "--diff", "+1s"}},
		{1, "the recording has no configmaps default/none", []string{"show", path, "cm", "--object", "default/none"}},
		{2, "write it as NAMESPACE/NAME", []string{"show", path, "cm", "--object", "a/b/c"}},
		{2, "table, name and json", []string{"show", path, "cm", "-o", "yaml"}},
		{2, "name a resource", []string{"show", path, "--at", "+1s"}},
		{2, "needs a resource", []string{"record"}},
		{2, "needs a file: -o FILE", []string{"record", "pods"}},
		{2, "write it as RESOURCE:PATH", []string{"record", "pods", "-o", "x", "--redact", "data"}},
		{2, "it ends with a dot", []string{"record", "pods", "-o", "x", "--redact", "pods:data."}},
		{2, "this field is never redacted", []string{"record", "pods", "-o", "x", "--redact", "pods:metadata.name"}},
		{2, "-n and -A exclude each other", []string{"record", "pods", "-o", "x", "-A", "-n", "y"}},
		{2, "takes the file of a recording", []string{"replay"}},
		{2, "--speed 0: it must be from 0.001 to 1000000", []string{"replay", path, "--speed", "0"}},
		{2, "--speed 1e-13: it must be from 0.001 to 1000000", []string{"replay", path, "--speed", "1e-13"}},
		{2, "--speed 0.00099: it must be from 0.001 to 1000000", []string{"replay", path, "--speed", "0.00099"}},
		{2, "--speed +Inf: it must be from 0.001 to 1000000", []string{"replay", path, "--speed", "Inf"}},
		{2, "--speed NaN: it must be from 0.001 to 1000000", []string{"replay", path, "--speed", "nan"}},
		{2, "--step excludes --speed and --wait", []string{"replay", path, "--step", "--wait"}},
		{1, "the file is not a recording of leat", []string{"replay", write("text", []byte("some text that is long enough"))}},
	} {
		_, errs := leat(t, c.code, c.args...)
		require.Contains(t, errs, c.says, c.args)
		require.Equal(t, 1, strings.Count(errs, "\n"), "one line: %s", errs)
	}
	server := serving(t)
	_, errs = leat(t, 1, "record", "cm", "-o", path, "--kubeconfig", server)
	require.Contains(t, errs, "exists; --force overwrites it")
	_, errs = leat(t, 2, "record", "cm", "-o", path+"2", "--redact", "pods:spec", "--kubeconfig", server)
	require.Contains(t, errs, "--redact pods:spec: the recorded resources are [configmaps]")
	_, errs = leat(t, 2, "record", "deploy", "-o", path+"2", "--redact", "deployments.app:spec", "--kubeconfig", server)
	require.Contains(t, errs, "--redact deployments.app:spec: the recorded resources are [deployments.apps]")
	_, errs = leat(t, 1, "record", "podz", "-o", path+"2", "--kubeconfig", server)
	require.Contains(t, errs, `unknown resource "podz"`)
	require.NoFileExists(t, path+"2")
}

// TestReplayStepByStep serves a recording and makes its changes one after the other. A client gets each.
func TestReplayStepByStep(t *testing.T) {
	path := recordedFile(t)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	in, input := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	out, errs := newOutput(), newOutput()
	ended := make(chan int, 1)
	root := newRoot()
	root.SetArgs([]string{"replay", path, "--step", "--listen", "127.0.0.1:0", "--kubeconfig-out", config})
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	go func() {
		if root.ExecuteContext(ctx) != nil {
			ended <- 1
		}
		ended <- 0
	}()
	out.await(t, "press Enter for the next change")
	watched, stop := context.WithCancel(t.Context())
	seen := newOutput()
	done := make(chan int, 1)
	go func() {
		done <- run(watched, []string{"watch", "configmaps", "-A", "--kubeconfig", config}, seen, newOutput())
	}()
	seen.await(t, "SYNCED    configmaps (1)")
	for _, line := range []string{"ADDED     default/one", "MODIFIED  default/one", "DELETED   default/one"} {
		must.Get(input.Write([]byte("\n")))(t)
		seen.await(t, line)
	}
	out.await(t, "the recording has ended; the server keeps its state")
	require.Contains(t, out.String(), "DELETED   configmaps default/one  version ")
	stop()
	require.Zero(t, <-done)
	cancel()
	require.Zero(t, <-ended, errs)
}

// TestReplayBySpeed serves a recording a million times as fast.
func TestReplayBySpeed(t *testing.T) {
	path := recordedFile(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, errs := newOutput(), newOutput()
	ended := make(chan int, 1)
	server := filepath.Join(t.TempDir(), "kubeconfig")
	go func() {
		ended <- run(ctx, []string{"replay", path, "--speed", "1e6", "--listen", "127.0.0.1:0", "--kubeconfig-out", server}, out, errs)
	}()
	out.await(t, "the recording has ended; the server keeps its state")
	require.Contains(t, out.String(), "try: leat watch configmaps -A --kubeconfig "+server+"\n")
	require.Contains(t, out.String(), "replaying [configmaps deployments.apps secrets]: 1 objects, then 3 changes in ")
	cancel()
	require.Zero(t, <-ended, errs)
}

// TestShowOfRefusals has a resource whose requests were all refused, and one that was never refused.
func TestShowOfRefusals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.rec")
	file := must.Get(os.Create(path))(t)
	recorder := must.Get(recording.New(file, recording.Options{}))(t)
	rt := recorder.Wrap(refusing{})
	for _, path := range []string{"/api/v1/pods", "/apis/coordination.k8s.io/v1/leases", "/apis/coordination.k8s.io/v1/leases?watch=true", "/apis/coordination.k8s.io/v1/leases?limit=410"} {
		req := must.Get(http.NewRequest(http.MethodGet, "https://server"+path, nil))(t)
		resp := must.Get(rt.RoundTrip(req))(t)
		must.Get(io.ReadAll(resp.Body))(t)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, recorder.Run(ctx))
	require.NoError(t, file.Close())
	out, _ := leat(t, 0, "show", path)
	require.Regexp(t, `(?m)^pods +Pod +0 +0 +1 +0 +0$`, out)
	require.Regexp(t, `(?m)^leases\.coordination\.k8s\.io +0 +0 +0 +0 +2 × 403, 1 × 410$`, out)
}

// refusing answers lists of pods, and refuses everything else.
type refusing struct{}

func (refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusForbidden, Body: io.NopCloser(strings.NewReader("{}"))}
	switch {
	case req.URL.Path == "/api/v1/pods":
		resp.StatusCode = http.StatusOK
		resp.Body = io.NopCloser(strings.NewReader(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`))
	case req.URL.RawQuery == "limit=410":
		resp.StatusCode = http.StatusGone
	}
	return resp, nil
}
