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

// serviceAccountDir is where kubelet mounts the credentials of a pod's service account.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// ErrNotInCluster says that the program does not run in a pod, or in one without the address of the API server.
var ErrNotInCluster = errors.New("apiclient: not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")

// InCluster returns the configuration of a program that runs in a pod: the server's address from the environment, the
// token and authority of its service account from files, which are read again as they rotate. Outside of a pod the
// error is ErrNotInCluster. It corresponds to rest.InClusterConfig of client-go.
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
		return Config{}, fmt.Errorf("apiclient: in a cluster, but without the token of a service account: %w", err)
	}
	return c, nil
}

// InClusterNamespace returns the namespace of the pod that the program runs in: POD_NAMESPACE where it is set, else
// what the service account's file says. Outside of a pod it is empty.
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
