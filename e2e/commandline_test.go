package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/internal/fixture/must"
)

// commandLine is a built leat and a kubeconfig for the server.
type commandLine struct {
	binary, kubeconfig string
}

func newCommandLine(t *testing.T, namespace string) commandLine {
	t.Helper()
	binary := must.Get(filepath.Abs(filepath.Join("bin", "leat")))(t) // a fixed path, so that the next build finds the result
	l := commandLine{binary: binary, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", l.binary, "./cmd/leat")
	build.Dir = ".."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, kubeconfig.Write(l.kubeconfig, adminConfig(), namespace))
	return l
}

func (l commandLine) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, l.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.kubeconfig)
	return cmd
}

// lines runs leat to its end and returns its output.
func (l commandLine) lines(t *testing.T, args ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := l.command(ctx, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "leat %v: %s", args, &stderr)
	return strings.Split(strings.TrimRight(string(out), "\n"), "\n")
}

// TestWatchOnce runs leat watch --once with every form of its arguments.
func TestWatchOnce(t *testing.T) {
	widgets := customResource(t, "Widget")
	c := newCollection(t, pods, podBody)
	tiers := func(i int) labelSet { return labelSet{"tier": strconv.Itoa(i % 3), "in": c.namespace} }
	c.fill(t, 12, tiers)
	custom := &collection{resource: widgets, namespace: c.namespace, body: map[string]any{"spec": map[string]any{"size": 1}}}
	custom.fill(t, 3, tiers)
	l := newCommandLine(t, c.namespace)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(ca, server.CA(), 0o600))

	all := expectedKeys(t, c, "", "")
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"plain":            {[]string{"pods"}, all},
		"namespace":        {[]string{"pods", "-n", c.namespace}, all},
		"nothing there":    {[]string{"pods", "-n", "default"}, nil},
		"paged":            {[]string{"pods", "--paged"}, all},
		"WebSocket":        {[]string{"pods", "--websocket"}, all},
		"labels":           {[]string{"pods", "-l", "tier=1"}, expectedKeys(t, c, "tier=1", "")},
		"fields":           {[]string{"pods", "--field-selector", "metadata.name=object-7"}, []string{c.namespace + "/object-7"}},
		"short name":       {[]string{"po"}, all},
		"kind":             {[]string{"Pod"}, all},
		"custom resources": {[]string{"widget"}, expectedKeys(t, custom, "", "")},
		"group":            {[]string{"widgets.e2e.leat.example", "-A", "-l", "in=" + c.namespace}, expectedKeys(t, custom, "", "")},
		"server, token and authority": {[]string{
			"pods", "-n", c.namespace, "--kubeconfig", "", "--server", server.URL(), "--token", cluster.AdminToken, "--certificate-authority", ca,
		}, all},
	} {
		t.Run(name, func(t *testing.T) {
			got := l.lines(t, append([]string{"watch", "--once", "-o", "name"}, test.args...)...)
			if test.want == nil {
				require.Equal(t, []string{""}, got)
				return
			}
			slices.Sort(got)
			require.Equal(t, test.want, got)
		})
	}

	lines := l.lines(t, "watch", "deployments.apps", "--once")
	require.Len(t, lines, 1)
	require.Equal(t, []string{"SYNCED", "deployments.apps", "(0)"}, strings.Fields(lines[0])[:3])
	require.Contains(t, l.lines(t, "watch", "widgets", "--once", "-o", "json")[0], `"size":1`)
}

// expectedKeys returns the keys of a plain list, in order.
func expectedKeys(t *testing.T, c *collection, labels, fields string) []string {
	t.Helper()
	var keys []string
	for _, raw := range c.list(t, labels, fields) {
		keys = append(keys, api.FormatKey(api.KeyOf(decodePlain[*sighting](t, c.resource, raw))))
	}
	slices.Sort(keys)
	require.NotEmpty(t, keys)
	return keys
}

// TestWatchLines checks the output of leat watch while an object is created, changed and deleted, and then interrupts
// it.
func TestWatchLines(t *testing.T) {
	c := newCollection(t, configMaps, configMapBody)
	before := must.Get(c.create(t.Context(), "before", nil))(t)
	l := newCommandLine(t, c.namespace)
	cmd := l.command(t.Context(), "watch", "configmaps")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out := must.Get(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	next := func() []string {
		require.True(t, lines.Scan(), "it ended: %v %s", lines.Err(), &stderr)
		return strings.Fields(lines.Text())
	}

	require.Equal(t, []string{"ADDED", c.namespace + "/before", before}, next())
	require.Equal(t, []string{"SYNCED", "configmaps", "(1)"}, next()[:3])
	made := must.Get(c.create(t.Context(), "later", nil))(t)
	require.Equal(t, []string{"ADDED", c.namespace + "/later", made}, next())
	changed := must.Get(c.annotate(t.Context(), "later", "x"))(t)
	require.Equal(t, []string{"MODIFIED", c.namespace + "/later", changed}, next())
	require.NoError(t, c.delete(t.Context(), "later"))
	require.Equal(t, []string{"DELETED", c.namespace + "/later"}, next()[:2])

	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.False(t, lines.Scan())
	require.NoError(t, cmd.Wait(), "%s", &stderr)
	require.Empty(t, stderr.String())
}

// TestWatchComplains runs leat watch with typical mistakes. Each gives one line with the reason, and an exit code other
// than 0.
func TestWatchComplains(t *testing.T) {
	l := newCommandLine(t, "default")
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	require.NoError(t, closed.Close())
	stranger := filepath.Join(t.TempDir(), "ca.crt")
	other := adminConfig()
	other.TLS.CAData = nil
	strange := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, kubeconfig.Write(strange, other, "default"))

	for name, test := range map[string]struct {
		args []string
		says string
		code int
	}{
		"unknown resource":   {[]string{"pods.nowhere"}, "pods.nowhere", 1},
		"no resource":        {nil, "takes one resource", 2},
		"wrong flag":         {[]string{"pods", "--colour"}, "--colour", 2},
		"bad selector":       {[]string{"pods", "-l", "a in"}, "--selector", 2},
		"forbidden":          {[]string{"pods", "--token", cluster.RestrictedToken}, "forbidden", 1},
		"wrong token":        {[]string{"pods", "--token", "nobody"}, "nauthorized", 1},
		"unreachable":        {[]string{"pods", "--server", "https://" + closed.Addr().String()}, "refused", 1},
		"missing authority":  {[]string{"pods", "--certificate-authority", stranger}, stranger, 1},
		"unknown authority":  {[]string{"pods", "--kubeconfig", strange}, "certificate", 1},
		"missing kubeconfig": {[]string{"pods", "--kubeconfig", stranger}, stranger, 1},
		"no such context":    {[]string{"pods", "--context", "elsewhere"}, "elsewhere", 1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := l.command(ctx, append([]string{"watch"}, test.args...)...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			var exit *exec.ExitError
			require.True(t, errors.As(cmd.Run(), &exit), "it did not fail: %s", &stdout)
			require.Equal(t, test.code, exit.ExitCode(), "%s", &stderr)
			require.Contains(t, stderr.String(), test.says)
			require.Equal(t, 1, strings.Count(stderr.String(), "\n"), "not one line: %s", &stderr)
			require.Empty(t, stdout.String())
			require.NotContains(t, stderr.String(), cluster.AdminToken)
		})
	}
}

// TestServeAndWatch runs leat watch against leat serve, to which net/http writes.
func TestServeAndWatch(t *testing.T) {
	l := newCommandLine(t, "default")
	url, served := serveInBackground(t)
	const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mine"}}`
	answer := must.Get(http.Post(url+"/api/v1/namespaces/default/configmaps", "application/json", strings.NewReader(body)))(t)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusCreated, answer.StatusCode)
	for _, more := range [][]string{nil, {"--paged"}, {"--websocket"}} {
		args := append([]string{"watch", "configmaps", "-A", "--once", "-o", "name", "--kubeconfig", served}, more...)
		require.Contains(t, l.lines(t, args...), "default/mine", "%v", more)
	}
}
