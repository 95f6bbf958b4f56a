package apiclient

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/leatproject/leat/internal/regularfile"
)

// serviceAccountDir is the folder in which kubelet mounts the credentials of a pod's service account.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// ErrNotInCluster is the error of InCluster outside of a pod, or in a pod without the address of the API server.
var ErrNotInCluster = errors.New("apiclient: not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")

// InCluster returns the configuration of a program that runs in a pod. The address of the server comes from the
// environment; the token and the authority come from the files of the service account, which the client reads again
// after a rotation. Outside of a pod the error is ErrNotInCluster. It corresponds to rest.InClusterConfig of client-go.
func InCluster() (Config, error) { return inCluster(os.Getenv, serviceAccountDir) }

func inCluster(getenv func(string) string, dir string) (Config, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return Config{}, ErrNotInCluster
	}
	c := Config{
		Host:            "https://" + net.JoinHostPort(host, port),
		BearerTokenFile: filepath.Join(dir, "token"),
		TLS:             TLS{CAFile: filepath.Join(dir, "ca.crt")},
	}
	if _, err := os.Stat(c.BearerTokenFile); err != nil {
		return Config{}, fmt.Errorf("apiclient: the pod has no token of a service account: %w", err)
	}
	return c, nil
}

// InClusterNamespace returns the namespace of the pod in which the program runs: POD_NAMESPACE if it is set, otherwise
// the content of the service account's file. Outside of a pod it is empty.
func InClusterNamespace() string { return inClusterNamespace(os.Getenv, serviceAccountDir) }

func inClusterNamespace(getenv func(string) string, dir string) string {
	if ns := getenv("POD_NAMESPACE"); ns != "" {
		return ns
	}
	data, err := regularfile.Read(filepath.Join(dir, "namespace"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
