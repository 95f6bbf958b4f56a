package kubeconfig

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/exec"
)

// applyPlugin makes the exec plugin of a user's entry the source of credentials. Other credentials of the entry or of
// the options win over a plugin, as with kubectl.
func (c *choice) applyPlugin(cfg *apiclient.Config, o *Options) error {
	e := c.user.Exec
	if e == nil || o.identifies() || identified(cfg) {
		return nil
	}
	plugin := exec.Options{
		Command: e.Command, Dir: filepath.Dir(c.user.origin), Args: e.Args,
		APIVersion: e.APIVersion, InstallHint: e.InstallHint, InteractiveMode: exec.InteractiveMode(e.InteractiveMode),
		Terms: o.Plugins,
	}
	for _, v := range e.Env {
		plugin.Env = append(plugin.Env, exec.Variable{Name: v.Name, Value: apiclient.NewSecret(v.Value)})
	}
	if e.ProvideClusterInfo {
		info, err := c.clusterInfo(cfg)
		if err != nil {
			return err
		}
		plugin.Cluster = info
	}
	p, err := exec.New(plugin)
	if err != nil {
		return c.pluginError(err)
	}
	cfg.Credentials = p
	return nil
}

// identified reports whether a user's entry has credentials other than a plugin.
func identified(cfg *apiclient.Config) bool {
	return !cfg.BearerToken.IsZero() || cfg.BearerTokenFile != "" || cfg.Username != "" || !cfg.Password.IsZero() ||
		len(cfg.TLS.CertData) > 0 || cfg.TLS.CertFile != ""
}

// clusterInfo returns the server for the plugin, as the client uses it.
func (c *choice) clusterInfo(cfg *apiclient.Config) (*exec.Cluster, error) {
	info := &exec.Cluster{
		Server: cfg.Host, TLSServerName: cfg.TLS.ServerName, Insecure: cfg.TLS.Insecure,
		CAData: cfg.TLS.CAData, CAFile: cfg.TLS.CAFile, ProxyURL: cfg.ProxyURL, DisableCompression: cfg.DisableCompression,
	}
	found := false
	for _, e := range c.cluster.Extensions {
		if e.Name != execExtension {
			continue
		}
		if found {
			return nil, &Error{
				Path: c.cluster.origin, Field: "clusters[" + c.clusterName + "].extensions",
				Err: fmt.Errorf("two entries have the name %q", execExtension),
			}
		}
		info.Config, found = e.Extension, true
	}
	return info, nil
}

// pluginFields has the names in a file of the fields in an error of exec.New.
var pluginFields = map[string]string{
	"Command": "command", "APIVersion": "apiVersion", "Env": "env", "InteractiveMode": "interactiveMode",
}

// pluginError returns an error that names the field of the file or of the options.
func (c *choice) pluginError(err error) error {
	var wrong *exec.FieldError
	if !errors.As(err, &wrong) {
		return err
	}
	field, ofFile := pluginFields[wrong.Field]
	if !ofFile {
		return &Error{Field: "Options.Plugins", Err: err}
	}
	return &Error{Path: c.user.origin, Field: "users[" + c.userName + "].exec." + field, Err: wrong.Err}
}
