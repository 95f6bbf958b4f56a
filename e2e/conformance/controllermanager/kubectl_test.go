package controllermanager_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/e2e/conformance/harness"
	"github.com/leatproject/leat/internal/fixture/must"
)

// kubectl runs kubectl in a namespace, and returns what it prints. The comparison in e2e/compare has the commands whose
// answer comes from the API server alone; the tests here need controllers and nodes.
func kubectl(t *testing.T, namespace string, code int, args ...string) string {
	t.Helper()
	binaries := must.Get(harness.Binaries())(t)
	command := exec.CommandContext(t.Context(), filepath.Join(binaries, "kubectl"), append(args, "--namespace="+namespace)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+server.Kubeconfig, "HOME="+t.TempDir(), "KUBE_EDITOR=sed -i s/app:1/app:2/")
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	require.Equal(t, code, command.ProcessState.ExitCode(), "kubectl %s: %v\n%s%s", args, err, &out, &errs)
	return out.String()
}

func TestKubectlRollout(t *testing.T) {
	namespace := server.Namespace(t)
	deployment(t, namespace, 2)
	image := func() string {
		return kubectl(t, namespace, 0, "get", "deployment", "d", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	}
	kubectl(t, namespace, 0, "wait", "deployment/d", "--for=condition=Available", "--timeout=40s")
	require.Equal(t, "deployment.apps/d edited\n", kubectl(t, namespace, 0, "edit", "deployment", "d"))
	require.Contains(t, kubectl(t, namespace, 0, "rollout", "status", "deployment/d", "--timeout=40s"), "successfully rolled out")
	require.Equal(t, "app:2", image())
	require.Contains(t, kubectl(t, namespace, 0, "rollout", "history", "deployment/d", "--revision=1"), "app:1")
	kubectl(t, namespace, 0, "rollout", "undo", "deployment/d")
	require.Contains(t, kubectl(t, namespace, 0, "rollout", "status", "deployment/d", "--timeout=40s"), "successfully rolled out")
	require.Equal(t, "app:1", image())
	kubectl(t, namespace, 0, "rollout", "pause", "deployment/d")
	kubectl(t, namespace, 0, "set", "image", "deployment/d", "app=app:3")
	kubectl(t, namespace, 0, "rollout", "resume", "deployment/d")
	kubectl(t, namespace, 0, "rollout", "status", "deployment/d", "--timeout=40s")
	kubectl(t, namespace, 0, "scale", "deployment/d", "--replicas=1", "--current-replicas=2")
	kubectl(t, namespace, 0, "wait", "deployment/d", "--for=jsonpath={.status.replicas}=1", "--timeout=40s")
	kubectl(t, namespace, 0, "autoscale", "deployment/d", "--min=1", "--max=3", "--cpu=80%")
	require.Contains(t, kubectl(t, namespace, 0, "get", "hpa", "d"), "Deployment/d")

	manifest := filepath.Join(t.TempDir(), "d.yaml")
	text := kubectl(t, namespace, 0, "get", "deployment", "d", "-o", "yaml")
	require.NoError(t, os.WriteFile(manifest, []byte(text), 0o600))
	require.Empty(t, kubectl(t, namespace, 0, "diff", "-f", manifest))
	text = strings.ReplaceAll(text, "app:3", "app:4")
	require.NoError(t, os.WriteFile(manifest, []byte(text), 0o600))
	require.Contains(t, kubectl(t, namespace, 1, "diff", "-f", manifest), "+      - image: app:4\n")
	kubectl(t, namespace, 0, "delete", "hpa/d", "deployment/d", "--cascade=foreground", "--timeout=40s")
	require.Empty(t, kubectl(t, namespace, 0, "get", "pods", "-o", "name"))
}

func TestKubectlDrain(t *testing.T) {
	namespace := server.Namespace(t)
	deployment(t, namespace, 1)
	p := waitForPods(t, namespace, 1)[0]
	node := p.Spec.NodeName
	kubectl(t, namespace, 0, "drain", node, "--pod-selector=app=a", "--timeout=40s")
	require.Error(t, must.Err(client.CoreV1().Pods(namespace).Get(t.Context(), p.Name, metav1.GetOptions{})))
	drained := must.Get(client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{}))(t)
	require.True(t, drained.Spec.Unschedulable)
	kubectl(t, namespace, 0, "uncordon", node)
	waitForPods(t, namespace, 1)
	kubectl(t, namespace, 0, "taint", "node", node, "colour=red:PreferNoSchedule")
	tainted := must.Get(client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{}))(t)
	require.Contains(t, tainted.Spec.Taints, corev1.Taint{Key: "colour", Value: "red", Effect: corev1.TaintEffectPreferNoSchedule})
	kubectl(t, namespace, 0, "taint", "node", node, "colour-")
}

func TestKubectlCertificate(t *testing.T) {
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	request := must.Get(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "ada"}}, key))(t)
	for command, condition := range map[string]certificatesv1.RequestConditionType{
		"approve": certificatesv1.CertificateApproved, "deny": certificatesv1.CertificateDenied,
	} {
		requests := client.CertificatesV1().CertificateSigningRequests()
		name := "ada-" + command
		_, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}),
				SignerName: "leat.example/client", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
			},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		kubectl(t, "default", 0, "certificate", command, name)
		kubectl(t, "default", 0, "wait", "csr/"+name, "--for=condition="+string(condition), "--timeout=40s")
	}
}
