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

	"github.com/leatproject/leat/testserver/cluster/internal/controlplane"
)

// TestMain makes the binary of the test etcd or kube-apiserver if it has this name.
func TestMain(m *testing.M) {
	if slices.Contains(controlplane.Programs, filepath.Base(os.Args[0])) {
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

// flags are those of envtest. Later ones win.
func (p *plane) flags(more ...string) []string {
	host, port, _ := net.SplitHostPort(p.address)
	return append([]string{
		"--etcd-servers=" + p.etcdURL, "--cert-dir=" + p.certs, "--bind-address=" + host, "--secure-port=" + port, "--authorization-mode=RBAC",
		"--client-ca-file=" + filepath.Join(p.certs, "ca.crt"), "--service-account-issuer=https://" + p.address + "/",
		"--service-account-key-file=" + filepath.Join(p.certs, "ca.crt"), "--service-account-signing-key-file=" + filepath.Join(p.certs, "sa.key"),
		"--disable-admission-plugins=ServiceAccount", "--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true",
	}, more...)
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
	require.Zero(t, etcd.end(t, syscall.SIGTERM), etcd.errs.String())
	p.etcd(t)
	p.apiServer(t, "--anonymous-auth=true")
	kept()
}
