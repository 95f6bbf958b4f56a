package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/leatproject/leat/testserver/cluster/internal/controlplane/front"
)

// TestMain makes the binary of the test etcd if it has this name.
func TestMain(m *testing.M) {
	if front.IsEtcd() {
		main()
	}
	os.Exit(m.Run())
}

// folderOf returns a folder with the programs, and no kubectl on the path.
func folderOf(t *testing.T) string {
	t.Helper()
	t.Setenv("PATH", "")
	var out, errs strings.Builder
	require.Zero(t, run(t.Context(), []string{"assets", filepath.Join(t.TempDir(), "assets")}, &out, &errs), errs.String())
	require.Empty(t, errs.String())
	return strings.TrimSuffix(out.String(), "\n")
}

// program is a process.
type program struct {
	*exec.Cmd
	errs  lockedBuffer
	ended chan struct{}
}

// lockedBuffer is the output of a process that may still run.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func started(t *testing.T, name string, args ...string) *program {
	t.Helper()
	p := &program{Cmd: exec.Command(name, args...), ended: make(chan struct{})}
	p.Stderr = &p.errs
	require.NoError(t, p.Start())
	go func() {
		defer close(p.ended)
		_ = p.Wait()
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
	})
	return p
}

// end sends a signal, and returns the exit code.
func (p *program) end(t *testing.T, s os.Signal) int {
	t.Helper()
	begin := time.Now()
	require.NoError(t, p.Process.Signal(s))
	<-p.ended
	require.Less(t, time.Since(begin), 5*time.Second) // far less, except on a busy machine
	return p.ProcessState.ExitCode()
}

// plane are the files and addresses of a control plane.
type plane struct {
	folder, data, certs, etcdURL, address string
	ca                                    *x509.Certificate
	caKey                                 *ecdsa.PrivateKey
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	p := &plane{folder: folderOf(t), data: t.TempDir(), certs: t.TempDir(), etcdURL: "http://" + freeAddress(t), address: freeAddress(t)}
	p.ca, p.caKey = p.sign(t, pkix.Name{CommonName: "ca"})
	p.write(t, "ca.crt", "CERTIFICATE", p.ca.Raw)
	key, err := x509.MarshalECPrivateKey(p.caKey)
	require.NoError(t, err)
	p.write(t, "sa.key", "EC PRIVATE KEY", key)
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func (p *plane) write(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(p.certs, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// sign returns a certificate. The first one signs itself.
func (p *plane) sign(t *testing.T, subject pkix.Name) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: p.ca == nil, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	parent, signer := p.ca, p.caKey
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	out, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return out, key
}

func (p *plane) etcd(t *testing.T) *program {
	t.Helper()
	etcd := started(t, filepath.Join(p.folder, "etcd"), "-data-dir", p.data, "--listen-client-urls", p.etcdURL,
		"--advertise-client-urls="+p.etcdURL, "--listen-peer-urls=http://localhost:0", "--unsafe-no-fsync=true")
	p.await(t, etcd, p.etcdURL+"/health")
	return etcd
}

// flags are the flags that envtest passes. Later ones win.
func (p *plane) flags(more ...string) []string {
	host, port, _ := net.SplitHostPort(p.address)
	return append([]string{
		"--etcd-servers=" + p.etcdURL, "--cert-dir=" + p.certs, "--bind-address=" + host, "--secure-port=" + port, "--authorization-mode=RBAC",
		"--client-ca-file=" + filepath.Join(p.certs, "ca.crt"), "--service-account-issuer=https://" + p.address + "/",
		"--service-account-key-file=" + filepath.Join(p.certs, "ca.crt"), "--service-account-signing-key-file=" + filepath.Join(p.certs, "sa.key"),
		"--disable-admission-plugins=ServiceAccount", "--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true",
	}, more...)
}

// at returns the same files with another etcd.
func (p plane) at(etcdURL string) *plane {
	p.etcdURL = etcdURL
	return &p
}

func (p *plane) apiServer(t *testing.T, more ...string) *program {
	t.Helper()
	api := started(t, filepath.Join(p.folder, "kube-apiserver"), p.flags(more...)...)
	p.await(t, api, "https://"+p.address+"/readyz")
	return api
}

// await waits until a program answers.
func (p *plane) await(t *testing.T, of *program, url string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for {
		if answer, err := client.Get(url); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-of.ended:
			require.FailNow(t, "the program has ended", of.errs.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// client returns a client with a certificate of a user.
func (p *plane) client(t *testing.T, name string, groups ...string) *kubernetes.Clientset {
	t.Helper()
	certificate, private := p.sign(t, pkix.Name{CommonName: name, Organization: groups})
	key, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	ca, err := os.ReadFile(filepath.Join(p.certs, "apiserver.crt"))
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://" + p.address, TLSClientConfig: rest.TLSClientConfig{
		CAData: ca, CertData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}),
		KeyData: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}),
	}})
	require.NoError(t, err)
	return client
}

// TestObjectsOutliveTheAPIServer stops, kills and replaces kube-apiserver, and restarts etcd.
func TestObjectsOutliveTheAPIServer(t *testing.T) {
	p := newPlane(t)
	etcd := p.etcd(t)
	api := p.apiServer(t)
	ctx := t.Context()
	created, err := p.client(t, "root", "system:masters").CoreV1().ConfigMaps("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = p.client(t, "ann").CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	kept := func() string {
		t.Helper()
		got, err := p.client(t, "root", "system:masters").CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, created.UID, got.UID)
		return got.ResourceVersion
	}
	require.Zero(t, api.end(t, syscall.SIGTERM), api.errs.String())
	api = p.apiServer(t)
	require.Equal(t, created.ResourceVersion, kept())
	require.Equal(t, -1, api.end(t, syscall.SIGKILL))
	api = p.apiServer(t)
	require.Equal(t, created.ResourceVersion, kept())

	require.Zero(t, api.end(t, syscall.SIGTERM))
	gates := "--feature-gates=WatchList=false"
	other := started(t, filepath.Join(p.folder, "kube-apiserver"), p.flags(gates)...)
	<-other.ended
	require.Equal(t, "Error: restart etcd to change --feature-gates from \"\" to \"WatchList=false\"\n", other.errs.String())
	require.Zero(t, etcd.end(t, syscall.SIGTERM), etcd.errs.String())
	p.etcd(t)
	p.apiServer(t, "--anonymous-auth=true", gates)
	kept()
}

// TestTwoAPIServersShareOneEtcd starts one with the same settings on another port, and one with other settings.
func TestTwoAPIServersShareOneEtcd(t *testing.T) {
	p := newPlane(t)
	p.etcd(t)
	p.apiServer(t, "--token-auth-file="+p.tokens(t))
	second := *p
	second.address = freeAddress(t)
	_, port, err := net.SplitHostPort(second.address)
	require.NoError(t, err)
	same := []string{"--token-auth-file=" + p.tokens(t), "--secure-port=" + port}
	api := started(t, filepath.Join(p.folder, "kube-apiserver"), p.flags(same...)...)
	p.await(t, api, "https://"+second.address+"/readyz")
	ctx := t.Context()
	_, err = p.client(t, "root", "system:masters").CoreV1().Secrets("default").Create(ctx,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = second.client(t, "root", "system:masters").CoreV1().Secrets("default").Get(ctx, "shared", metav1.GetOptions{})
	require.NoError(t, err)
	who, err := kubernetes.NewForConfig(&rest.Config{
		Host: "https://" + second.address, BearerToken: "a-token",
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	require.NoError(t, err)
	_, err = who.CoreV1().Secrets("default").Get(ctx, "shared", metav1.GetOptions{})
	require.NoError(t, err)

	api.end(t, syscall.SIGTERM)
	other := started(t, filepath.Join(p.folder, "kube-apiserver"), p.flags("--authorization-mode=AlwaysAllow", "--secure-port="+port)...)
	<-other.ended
	require.Equal(t, 1, other.ProcessState.ExitCode())
	require.Equal(t, "Error: another kube-apiserver uses this etcd with other values of anonymous-auth, authorization-mode, "+
		"token-auth-file; they can share it only with the same ones\n", other.errs.String())
}

func (p *plane) tokens(t *testing.T) string {
	t.Helper()
	path := filepath.Join(p.certs, "tokens.csv")
	require.NoError(t, os.WriteFile(path, []byte("a-token,ann,7,\"system:masters,mills\"\n"), 0o600))
	return path
}

// TestControllers switches the controllers on.
func TestControllers(t *testing.T) {
	p := newPlane(t)
	p.etcd(t)
	t.Setenv("LEAT_CONTROLLERS", "true")
	p.apiServer(t)
	accounts := p.client(t, "root", "system:masters").CoreV1().ServiceAccounts("default")
	require.Eventually(t, func() bool {
		_, err := accounts.Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	}, time.Minute, 10*time.Millisecond)
}

// TestWrongPrograms requires one sentence, and the exit code of the real programs.
func TestWrongPrograms(t *testing.T) {
	p := newPlane(t)
	p.etcd(t)
	p.apiServer(t)
	stranger := http.Server{Handler: http.NotFoundHandler()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = stranger.Serve(l) }()
	defer stranger.Close()
	bad := filepath.Join(p.certs, "bad")
	require.NoError(t, os.WriteFile(bad, []byte("a secret"), 0o600))
	real := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(real, "member"), 0o700))
	half := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(half, "apiserver.crt"), nil, 0o600))
	listenAt := func(url string) []string {
		return []string{"--listen-client-urls", url, "--advertise-client-urls", url, "--data-dir", t.TempDir()}
	}
	node := p.flags()
	node[slices.Index(node, "--authorization-mode=RBAC")] = "--authorization-mode=Node"
	for _, tc := range []struct {
		program string
		args    []string
		code    int
		says    string
	}{
		{"etcd", []string{"--nope"}, 2, "flag provided but not defined: -nope"},
		{"etcd", []string{"nope"}, 1, `etcd: "nope" is not a valid flag`},
		{"etcd", []string{"--snapshot-count=x"}, 2, `invalid value "x" for flag -snapshot-count: parse error`},
		{"etcd", []string{"--listen-client-urls", p.etcdURL}, 1, "--advertise-client-urls is required when"},
		{"etcd", listenAt(p.etcdURL), 1, "address already in use"},
		{"etcd", listenAt("https://127.0.0.1:0"), 1, "--cert-file, --key-file: "},
		{"etcd", listenAt("nowhere"), 2, `invalid value "nowhere" for flag -listen-client-urls: URL scheme must be http, https, unix, or unixs: nowhere`},
		{"etcd", listenAt("http://a"), 2, `URL address does not have the form "host:port": http://a`},
		{"etcd", listenAt("unix://a:1"), 1, "it must be http://HOST:PORT"},
		{"etcd", []string{"--data-dir", real}, 1, "the data of a real etcd"},
		{"kube-apiserver", []string{"--nope"}, 1, "Error: unknown flag: --nope"},
		{"kube-apiserver", []string{"nope"}, 1, `Error: "kube-apiserver" does not take any arguments, got ["nope"]`},
		{"kube-apiserver", nil, 1, "Error: [--etcd-servers must be specified, service-account-issuer is a required flag, either " +
			"`--service-account-key-file` or `--service-account-signing-endpoint` must be set, --service-account-signing-key-file and " +
			"--service-account-issuer are required flags]"},
		{"kube-apiserver", p.at("").flags(), 1, "Error: --etcd-servers must be specified"},
		{"kube-apiserver", p.flags("--service-account-issuer="), 1, "Error: [service-account-issuer should not be an empty string, --service-account-s"},
		{"kube-apiserver", p.flags("--cert-dir=" + half), 1, "apiserver.key: no such file or directory; a certificate needs its key"},
		{"kube-apiserver", node, 1, "leat-server needs RBAC or AlwaysAllow"},
		{"kube-apiserver", []string{"--allow-privileged=perhaps"}, 1, `Error: invalid argument "perhaps" for "--allow-privileged" flag`},
		{"kube-apiserver", p.flags(), 1, "failed to listen on " + p.address},
		{"kube-apiserver", p.flags("--secure-port=0"), 1, "must be between 1 and 65535"},
		{"kube-apiserver", p.flags("--bind-address=here"), 1, `"--bind-address" flag`},
		{"kube-apiserver", p.flags("--authorization-mode=Webhook"), 1, `and not "Webhook"`},
		{"kube-apiserver", p.flags("--authorization-mode=Nope"), 1, `authorization-mode "Nope" is not a valid mode`},
		{"kube-apiserver", p.flags("--service-cluster-ip-range=nope"), 1, "service-cluster-ip-range[0] is not a valid cidr"},
		{"kube-apiserver", p.flags("--audit-policy-file=/none"), 1, `audit policy file: failed to read file path "/none": open /none:`},
		{"kube-apiserver", p.flags("--enable-admission-plugins=Nope"), 1, `enable-admission-plugins plugin "Nope" is unknown`},
		{"kube-apiserver", p.flags("--client-ca-file=/none"), 1, "--client-ca-file: open /none: no such file"},
		{"kube-apiserver", p.flags("--tls-cert-file="+bad, "--tls-private-key-file="+bad), 1, "--tls-private-key-file: "},
		{"kube-apiserver", p.flags("--token-auth-file=" + bad), 1, "line 1 needs a token"},
		{"kube-apiserver", p.at("http://" + l.Addr().String()).flags(), 1, "is not the one of leat-server"},
		{"kube-apiserver", p.at("http://" + freeAddress(t)).flags("--storage-initialization-timeout=100ms"), 1, "connection refused within 100ms"},
		{"kubectl", nil, 1, "kubectl: leat-server has no kubectl"},
	} {
		wrong := started(t, filepath.Join(p.folder, tc.program), tc.args...)
		<-wrong.ended
		require.Equal(t, tc.code, wrong.ProcessState.ExitCode(), "%q", tc.args)
		require.Contains(t, wrong.errs.String(), tc.says)
		require.NotContains(t, wrong.errs.String(), "secret")
		require.Equal(t, 1, strings.Count(wrong.errs.String(), "\n"), wrong.errs.String())
	}
	for _, name := range []string{"feature-gates=Nope=true", "service-account-signing-key-file=" + bad, "client-ca-file=" + bad} {
		alone := newPlane(t)
		alone.etcd(t)
		wrong := started(t, filepath.Join(alone.folder, "kube-apiserver"), alone.flags("--"+name)...)
		<-wrong.ended
		require.Equal(t, 1, wrong.ProcessState.ExitCode())
		flag, _, _ := strings.Cut(name, "=")
		require.Contains(t, wrong.errs.String(), flag)
		require.Equal(t, 1, strings.Count(wrong.errs.String(), "\n"), wrong.errs.String())
	}
	damaged := newPlane(t)
	state := filepath.Join(damaged.data, "leat-server.json")
	require.NoError(t, os.WriteFile(state, []byte("a secret"), 0o600))
	damaged.etcd(t)
	wrong := started(t, filepath.Join(damaged.folder, "kube-apiserver"), damaged.flags()...)
	<-wrong.ended
	require.Contains(t, wrong.errs.String(), "Error: load "+state+": ")
}

// TestFlagsWithoutAnEffect requires that such flags are named once.
func TestFlagsWithoutAnEffect(t *testing.T) {
	p := newPlane(t)
	p.etcd(t)
	api := p.apiServer(t, "--event-ttl=1h", "--profiling", "-v", "4", "--event-ttl=2h",
		"--enable-admission-plugins=PodSecurity,ResourceQuota", "--disable-admission-plugins=NamespaceLifecycle,LimitRanger")
	require.Equal(t, "kube-apiserver: flags without an effect in leat-server: --event-ttl --profiling --v\n"+
		"kube-apiserver: admission plugins that leat-server lacks: PodSecurity\n", api.errs.String())
}

// TestTheParentEnds starts an etcd from a shell that ends at once.
func TestTheParentEnds(t *testing.T) {
	p := newPlane(t)
	shell := exec.Command("/bin/sh", "-c", `"$0" --listen-client-urls "$1" --advertise-client-urls "$1" --data-dir "$2" & read line`,
		filepath.Join(p.folder, "etcd"), p.etcdURL, p.data)
	input, err := shell.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, shell.Start())
	p.await(t, &program{ended: nil}, p.etcdURL+"/health")
	require.NoError(t, input.Close())
	_ = shell.Wait() // read fails at the end of the input
	require.Eventually(t, func() bool {
		_, err := http.Get(p.etcdURL + "/health")
		return err != nil
	}, 10*time.Second, 10*time.Millisecond)
}

// TestManyAssets makes one folder several times at once. The programs are the running one, and kubectl is the one on
// the path.
func TestManyAssets(t *testing.T) {
	folder, path := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(path, "kubectl"), []byte("#!/bin/sh\necho mine"), 0o755))
	t.Setenv("PATH", strings.Join([]string{"", ".", folder, path}, string(os.PathListSeparator)))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			var out, errs strings.Builder
			if code := run(t.Context(), []string{"assets", folder}, &out, &errs); code != 0 || out.String() != folder+"\n" {
				t.Error(code, out.String(), errs.String())
			}
		})
	}
	all.Wait()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 3, "no file is left")
	text, err := exec.Command(filepath.Join(folder, "kubectl")).Output()
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(text))
	help, err := exec.Command(filepath.Join(folder, "kube-apiserver"), "--help").Output()
	require.NoError(t, err)
	require.Contains(t, string(help), "\n      --audit-log-path string")
	version, err := exec.Command(filepath.Join(folder, "etcd"), "--version").Output()
	require.NoError(t, err)
	require.Equal(t, "etcd Version: 3.7.0\n", string(version))
}
