package kubeconfig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/apiclient"
)

// entry is the name of the cluster, the user and the context in a file of Write.
const entry = "leat"

// Write writes a kubeconfig with one context, from a configuration and a namespace. Only its owner may read the file.
// The file is replaced at once: a reader sees the old file or the new one. A configuration with Transport, DialContext
// or Credentials is an error, because a file cannot express them. Fields that a kubeconfig does not have, such as
// UserAgent and the limits, are left out. Write corresponds to clientcmd.WriteToFile of client-go.
func Write(path string, c apiclient.Config, namespace string) error {
	data, err := Marshal(c, namespace)
	if err == nil {
		err = bare(replace(path, data))
	}
	if err != nil {
		return &Error{Path: path, Err: err}
	}
	return nil
}

// Marshal returns the kubeconfig that Write writes. It fails where Write does because of c.
func Marshal(c apiclient.Config, namespace string) ([]byte, error) {
	if c.Transport != nil || c.DialContext != nil {
		return nil, errors.New("a configuration with a transport or dialler of its own cannot be written to a file")
	}
	if c.Credentials != nil {
		return nil, fmt.Errorf("credentials that come from a %T cannot be written to a file", c.Credentials)
	}
	f, err := toFile(c, namespace)
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(f)
}

func toFile(c apiclient.Config, namespace string) (*file, error) {
	paths := []string{c.BearerTokenFile, c.TLS.CAFile, c.TLS.CertFile, c.TLS.KeyFile}
	for i, p := range paths {
		if p == "" {
			continue
		}
		abs, err := filepath.Abs(p) // Load resolves a relative path relative to the kubeconfig
		if err != nil {
			return nil, fmt.Errorf("the path %s: %w", p, err)
		}
		paths[i] = abs
	}
	encode := base64.StdEncoding.EncodeToString
	return &file{
		Kind: "Config", APIVersion: "v1", CurrentContext: entry,
		Clusters: []namedCluster{{Name: entry, Cluster: cluster{
			Server: c.Host, CA: paths[1], CAData: encode(c.TLS.CAData), Insecure: c.TLS.Insecure,
			TLSServerName: c.TLS.ServerName, ProxyURL: proxyText(c.ProxyURL), DisableCompression: c.DisableCompression,
		}}},
		Users: []namedUser{{Name: entry, User: user{
			Token: c.BearerToken.Reveal(), TokenFile: paths[0],
			Cert: paths[2], CertData: encode(c.TLS.CertData), Key: paths[3], KeyData: encode([]byte(c.TLS.KeyData.Reveal())),
			Username: c.Username, Password: c.Password.Reveal(),
			As: c.Impersonate.UserName, AsUID: c.Impersonate.UID, AsGroups: c.Impersonate.Groups, AsExtra: c.Impersonate.Extra,
		}}},
		Contexts: []namedContext{{Name: entry, Context: contextInfo{Cluster: entry, User: entry, Namespace: namespace}}},
	}, nil
}

func proxyText(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.String()
}

// replace writes a file under another name and renames it. os.CreateTemp makes files that only their owner may read.
func replace(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // fails after the rename, as it should
	if _, err := temp.Write(data); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
