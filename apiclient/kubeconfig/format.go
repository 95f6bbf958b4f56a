package kubeconfig

import "encoding/json"

// execExtension is the extension of a cluster that the exec plugins of its users get.
const execExtension = "client.authentication.k8s.io/exec"

// The types below are the format of the file, as clientcmd/api/v1 of client-go defines it. Data are base64 text here,
// because the errors of encoding/json do not name the field. Other fields are ignored, because every vendor adds some.
type file struct {
	Kind           string         `json:"kind,omitempty"`
	APIVersion     string         `json:"apiVersion,omitempty"`
	CurrentContext string         `json:"current-context,omitempty"`
	Clusters       []namedCluster `json:"clusters,omitempty"`
	Users          []namedUser    `json:"users,omitempty"`
	Contexts       []namedContext `json:"contexts,omitempty"`
}

type namedCluster struct {
	Name    string  `json:"name"`
	Cluster cluster `json:"cluster"`
}

type namedUser struct {
	Name string `json:"name"`
	User user   `json:"user"`
}

type namedContext struct {
	Name    string      `json:"name"`
	Context contextInfo `json:"context"`
}

type cluster struct {
	Server             string      `json:"server,omitempty"`
	CA                 string      `json:"certificate-authority,omitempty"`
	CAData             string      `json:"certificate-authority-data,omitempty"`
	Insecure           bool        `json:"insecure-skip-tls-verify,omitempty"`
	TLSServerName      string      `json:"tls-server-name,omitempty"`
	ProxyURL           string      `json:"proxy-url,omitempty"`
	DisableCompression bool        `json:"disable-compression,omitempty"`
	Extensions         []extension `json:"extensions,omitempty"`

	origin string // the file of the entry
}

type extension struct {
	Name      string          `json:"name"`
	Extension json.RawMessage `json:"extension"`
}

type user struct {
	Token        string              `json:"token,omitempty"`
	TokenFile    string              `json:"tokenFile,omitempty"`
	Cert         string              `json:"client-certificate,omitempty"`
	CertData     string              `json:"client-certificate-data,omitempty"`
	Key          string              `json:"client-key,omitempty"`
	KeyData      string              `json:"client-key-data,omitempty"`
	Username     string              `json:"username,omitempty"`
	Password     string              `json:"password,omitempty"`
	As           string              `json:"as,omitempty"`
	AsUID        string              `json:"as-uid,omitempty"`
	AsGroups     []string            `json:"as-groups,omitempty"`
	AsExtra      map[string][]string `json:"as-user-extra,omitempty"`
	Exec         *execPlugin         `json:"exec,omitempty"`
	AuthProvider *authProvider       `json:"auth-provider,omitempty"`

	origin string
}

type execPlugin struct {
	APIVersion         string         `json:"apiVersion"`
	Command            string         `json:"command"`
	Args               []string       `json:"args"`
	Env                []execVariable `json:"env"`
	InstallHint        string         `json:"installHint"`
	ProvideClusterInfo bool           `json:"provideClusterInfo"`
	InteractiveMode    string         `json:"interactiveMode"`
}

type execVariable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// authProvider has only the name, for an error.
type authProvider struct {
	Name string `json:"name"`
}

type contextInfo struct {
	Cluster   string `json:"cluster"`
	User      string `json:"user"`
	Namespace string `json:"namespace,omitempty"`

	origin string
}
