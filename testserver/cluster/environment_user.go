package cluster

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/leatproject/leat/testserver/internal/registry"
)

// AuthenticatedUser is a user of an Environment.
type AuthenticatedUser struct{ config *rest.Config }

// AddUser returns a user with a new token. Without a binding, it may do what every authenticated user may do. base has
// other settings of the user's configuration, such as UserAgent, and may be nil; its credentials and its address are
// replaced, and QPS is -1 unless base has another one. An existing cluster has no users to add.
func (e *Environment) AddUser(u User, base *rest.Config) (*AuthenticatedUser, error) {
	switch {
	case e.stopped:
		return nil, errStopped
	case !e.started:
		return nil, errNotStarted
	case e.Cluster == nil:
		const says = "cluster: add the user %s: the cluster existed before (use Impersonate of rest.Config instead)"
		return nil, fmt.Errorf(says, u.Name)
	case u.Name == "":
		return nil, fmt.Errorf("cluster: add a user: it has no name")
	}
	if base == nil {
		base = &rest.Config{}
	}
	out := rest.AnonymousClientConfig(base)
	out.Host, out.TLSClientConfig = e.Config.Host, rest.TLSClientConfig{CAData: e.Config.CAData}
	out.BearerToken = e.Cluster.users.NewToken(registry.User{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra})
	if out.QPS == 0 {
		out.QPS = e.Config.QPS
	}
	return &AuthenticatedUser{out}, nil
}

// Config returns the configuration of the user's clients.
func (u *AuthenticatedUser) Config() *rest.Config { return u.config }

// KubeConfig returns a kubeconfig with the content of Config, for kubectl and other processes.
func (u *AuthenticatedUser) KubeConfig() ([]byte, error) { return kubeconfigOf(u.config) }

// kubeconfigOf returns a kubeconfig with the content of a configuration.
func kubeconfigOf(c *rest.Config) ([]byte, error) {
	const name = "leat"
	out := clientcmdapi.NewConfig()
	out.CurrentContext = name
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	out.Clusters[name] = &clientcmdapi.Cluster{
		Server: c.Host, TLSServerName: c.ServerName, InsecureSkipTLSVerify: c.Insecure,
		CertificateAuthority: c.CAFile, CertificateAuthorityData: c.CAData,
	}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificate: c.CertFile, ClientCertificateData: c.CertData, ClientKey: c.KeyFile, ClientKeyData: c.KeyData,
		Token: c.BearerToken, TokenFile: c.BearerTokenFile, Username: c.Username, Password: c.Password,
		Impersonate: c.Impersonate.UserName, ImpersonateUID: c.Impersonate.UID, ImpersonateGroups: c.Impersonate.Groups,
		ImpersonateUserExtra: c.Impersonate.Extra, AuthProvider: c.AuthProvider, Exec: c.ExecProvider,
	}
	text, err := clientcmd.Write(*out)
	if err != nil {
		return nil, fmt.Errorf("cluster: write a kubeconfig: %w", err)
	}
	return text, nil
}
