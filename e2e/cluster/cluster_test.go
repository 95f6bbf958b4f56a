package cluster_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/internal/fixture/must"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

func createConfigMap(t *testing.T, name string) {
	t.Helper()
	body := fmt.Sprintf(`{"metadata":{"name":%q},"data":{"a":"b"}}`, name)
	must.Get(shared.Must(t.Context(), http.MethodPost, configMaps, []byte(body)))(t)
	t.Cleanup(func() {
		must.Get(shared.Must(context.Background(), http.MethodDelete, configMaps+"/"+name, nil))(t)
	})
}

// status returns the HTTP status of a request with a token.
func status(t *testing.T, token, method, path string) int {
	t.Helper()
	code, _, err := shared.Do(t.Context(), token, method, path, nil)
	require.NoError(t, err)
	return code
}

func TestServes(t *testing.T) {
	createConfigMap(t, "serves")
	require.Equal(t, http.StatusOK, status(t, cluster.AdminToken, http.MethodGet, configMaps+"/serves"))
	require.Equal(t, http.StatusUnauthorized, status(t, "nobody's", http.MethodGet, configMaps))

	version := must.Get(shared.Must(t.Context(), http.MethodGet, "/version", nil))(t)
	require.Contains(t, string(version), `"gitVersion": "v1.`)

	stranger := &http.Client{Transport: &http.Transport{}}
	_, err := stranger.Get(shared.URL() + "/readyz")
	var unknown *tls.CertificateVerificationError
	require.ErrorAs(t, err, &unknown)
}

func TestClientCertificate(t *testing.T) {
	cert, key, err := shared.ClientCertificate("somebody", "system:masters")
	require.NoError(t, err)
	pair := must.Get(tls.X509KeyPair(cert, key))(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(shared.CA())
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}},
	}}
	defer client.CloseIdleConnections()
	answer := must.Get(client.Get(shared.URL() + configMaps))(t)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

func TestRestrictedUser(t *testing.T) {
	require.Equal(t, http.StatusForbidden, status(t, cluster.RestrictedToken, http.MethodGet, configMaps))
	require.NoError(t, shared.Grant(t.Context(), "may-list", cluster.Rule{
		Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"configmaps"},
	}))
	requireSoon(t, http.StatusOK)
	require.Equal(t, http.StatusForbidden, status(t, cluster.RestrictedToken, http.MethodGet, "/api/v1/secrets"))

	require.NoError(t, shared.Revoke(t.Context(), "may-list"))
	requireSoon(t, http.StatusForbidden)
}

// requireSoon waits until a list of config maps by the restricted user has the given status.
func requireSoon(t *testing.T, want int) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		code, _, err := shared.Do(context.Background(), cluster.RestrictedToken, http.MethodGet, configMaps, nil)
		require.NoError(t, err)
		require.Equal(t, want, code)
	}, 10*time.Second, 20*time.Millisecond)
}

func TestKillAndRestart(t *testing.T) {
	createConfigMap(t, "survives")
	require.NoError(t, shared.KillAPIServer())
	_, _, err := shared.Do(t.Context(), cluster.AdminToken, http.MethodGet, "/readyz", nil)
	require.Error(t, err)
	require.ErrorIs(t, shared.KillAPIServer(), cluster.ErrNotRunning)

	require.NoError(t, shared.KillEtcd())
	require.NoError(t, shared.StartEtcd(t.Context()))
	require.NoError(t, shared.StartAPIServer(t.Context()))
	require.ErrorIs(t, shared.StartAPIServer(t.Context()), cluster.ErrRunning)
	require.Equal(t, http.StatusOK, status(t, cluster.AdminToken, http.MethodGet, configMaps+"/survives"))
}

func TestCompactionExpiresVersions(t *testing.T) {
	createConfigMap(t, "before")
	before := must.Get(shared.Revision(t.Context()))(t)
	compacted := must.Get(shared.Compact(t.Context()))(t)
	require.Greater(t, compacted, before)

	for _, flags := range [][]string{{"--watch-cache=false"}, nil} {
		require.NoError(t, shared.RestartAPIServer(t.Context(), flags...))
		require.Equal(t, int32(http.StatusGone), firstWatchError(t, before), "flags %v", flags)
	}
}

// firstWatchError watches from a version and returns the code of the first error, in the status or in an event.
func firstWatchError(t *testing.T, version int64) int32 {
	t.Helper()
	client := shared.HTTPClient(cluster.AdminToken)
	defer client.CloseIdleConnections()
	answer := must.Get(client.Get(fmt.Sprintf("%s%s?watch=1&timeoutSeconds=5&resourceVersion=%d", shared.URL(), configMaps, version)))(t)
	defer answer.Body.Close()
	var frame struct {
		metav1.Status
		Type   string        `json:"type"`
		Object metav1.Status `json:"object"`
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&frame))
	if answer.StatusCode != http.StatusOK {
		return frame.Code
	}
	require.Equal(t, "ERROR", frame.Type)
	return frame.Object.Code
}

// TestNothingOutlivesTheProcess kills a process that runs a cluster. Its servers end, and the next process with the
// same parent folder removes its working folder.
func TestNothingOutlivesTheProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a parent-death signal")
	}
	temporary := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), childVariable+"=1", "TMPDIR="+temporary)
	child.Stderr = os.Stderr
	out := must.Get(child.StdoutPipe())(t)
	require.NoError(t, child.Start())
	line := must.Get(bufio.NewReader(out).ReadBytes('\n'))(t)
	var addresses []string
	require.NoError(t, json.Unmarshal(line, &addresses))
	require.Len(t, addresses, 2)
	left := func() []string {
		return must.Get(filepath.Glob(filepath.Join(temporary, "leat-e2e-*", "etcd")))(t)
	}
	require.Len(t, left(), 1)

	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	for _, address := range addresses {
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				_ = conn.Close()
			}
			require.Error(t, err, "%s still answers", address)
		}, 10*time.Second, 20*time.Millisecond)
	}

	t.Setenv("TMPDIR", temporary)
	require.ErrorContains(t, runBroken(t, "--no-such-flag"), "no-such-flag")
	require.Empty(t, left())
}

// runBroken runs a cluster whose API server does not start, and returns the error of Run.
func runBroken(t *testing.T, flag string) error {
	t.Helper()
	return cluster.New(cluster.Options{Binaries: binaries, Flags: []string{flag}}).Run(t.Context())
}

func TestFailureShowsTheLog(t *testing.T) {
	err := runBroken(t, "--secure-port=-1")
	require.ErrorContains(t, err, "start kube-apiserver")
	require.ErrorContains(t, err, "it ended: exit status 1")
	require.ErrorContains(t, err, "--secure-port -1 must be between") // from the log of the server

	missing := cluster.New(cluster.Options{Binaries: t.TempDir()}).Run(t.Context())
	require.ErrorIs(t, missing, os.ErrNotExist)
	require.ErrorContains(t, missing, "make servers")
}
