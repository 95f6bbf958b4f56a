package kubeconfig

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// Error says which file, and which field of it, is wrong. It never holds the value of a credential.
type Error struct {
	Path  string // the file, or the list of files, that was looked at
	Field string // such as users[admin].client-key-data; empty where the whole file is meant
	Err   error
}

// Error names the files, the field and the reason.
func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("kubeconfig %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("kubeconfig %s: %s: %v", e.Path, e.Field, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// The types below are the file's format. Data stands in them as base64 text, because encoding/json would not say in
// which field it is broken. Fields that are not here are not looked at: every vendor adds some.
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
	Server             string `json:"server,omitempty"`
	CA                 string `json:"certificate-authority,omitempty"`
	CAData             string `json:"certificate-authority-data,omitempty"`
	Insecure           bool   `json:"insecure-skip-tls-verify,omitempty"`
	TLSServerName      string `json:"tls-server-name,omitempty"`
	ProxyURL           string `json:"proxy-url,omitempty"`
	DisableCompression bool   `json:"disable-compression,omitempty"`

	origin string // the file that it stands in
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

type contextInfo struct {
	Cluster   string `json:"cluster"`
	User      string `json:"user"`
	Namespace string `json:"namespace,omitempty"`

	origin string
}

// execPlugin and authProvider are read as far as an error needs to name them.
type execPlugin struct {
	Command string `json:"command"`
}

type authProvider struct {
	Name string `json:"name"`
}

// merged is what a list of files says: the first that has a name has the say about it.
type merged struct {
	paths          []string
	currentContext string
	clusters       map[string]cluster
	users          map[string]user
	contexts       map[string]contextInfo
}

func newMerged() *merged {
	return &merged{clusters: map[string]cluster{}, users: map[string]user{}, contexts: map[string]contextInfo{}}
}

// path names the files in an error: those that were read, or else those that were looked for.
func (m *merged) path() string {
	paths := m.paths
	if len(paths) == 0 {
		paths = defaultPaths()
	}
	return strings.Join(paths, string(filepath.ListSeparator))
}

// add merges one file; os.ErrNotExist is in the error if there is none.
func (m *merged) add(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return &Error{Path: path, Err: err}
	}
	f, err := read(path)
	if err != nil {
		return err
	}
	m.paths = append(m.paths, path)
	if m.currentContext == "" {
		m.currentContext = f.CurrentContext
	}
	return m.addEntries(path, f)
}

func (m *merged) addEntries(path string, f *file) error {
	seen := map[string]bool{}
	check := func(list, name string) error {
		if name == "" {
			return &Error{Path: path, Field: list, Err: errors.New("an entry has no name")}
		}
		if seen[list+name] {
			return &Error{Path: path, Field: list, Err: fmt.Errorf("two entries have the name %q", name)}
		}
		seen[list+name] = true
		return nil
	}
	for _, c := range f.Clusters {
		if err := check("clusters", c.Name); err != nil {
			return err
		}
		c.Cluster.origin = path
		keepFirst(m.clusters, c.Name, c.Cluster)
	}
	for _, u := range f.Users {
		if err := check("users", u.Name); err != nil {
			return err
		}
		u.User.origin = path
		keepFirst(m.users, u.Name, u.User)
	}
	for _, c := range f.Contexts {
		if err := check("contexts", c.Name); err != nil {
			return err
		}
		c.Context.origin = path
		keepFirst(m.contexts, c.Name, c.Context)
	}
	return nil
}

func keepFirst[V any](m map[string]V, name string, v V) {
	if _, ok := m[name]; !ok {
		m[name] = v
	}
}

func read(path string) (*file, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &Error{Path: path, Err: bare(err)}
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, &Error{Path: path, Err: errors.New(firstLine(err))}
	}
	f := &file{}
	if err := json.Unmarshal(asJSON, f); err != nil {
		return nil, explain(path, err)
	}
	if f.Kind != "" && f.Kind != "Config" || f.APIVersion != "" && f.APIVersion != "v1" {
		return nil, &Error{Path: path, Field: "kind", Err: fmt.Errorf("it holds a %s of %s, not a Config of v1", f.Kind, f.APIVersion)}
	}
	return f, nil
}

// explain names the field of a value that has the wrong type. It does not quote the value, which may be a token.
func explain(path string, err error) error {
	var t *json.UnmarshalTypeError
	if !errors.As(err, &t) {
		return &Error{Path: path, Err: errors.New("it is not a map of fields")}
	}
	kind, _, _ := strings.Cut(t.Value, " ")
	hint := ""
	if t.Type.Kind().String() == "string" {
		hint = "; put it in quotes if it is meant as text"
	}
	return &Error{Path: path, Field: t.Field, Err: fmt.Errorf("a %s stands where a %s belongs%s", kind, t.Type.Kind(), hint)}
}

// firstLine keeps of a YAML error what is known to hold no value: the library says the line, and then what it expected.
func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "\n")
	if strings.Contains(line, "unmarshal errors") { // what follows is a list, one line each
		_, rest, _ := strings.Cut(err.Error(), "\n")
		line, _, _ = strings.Cut(strings.TrimSpace(rest), "\n")
	}
	for _, mark := range []string{"`", "anchor '", "invalid map key: "} { // what follows these is a value
		if before, _, found := strings.Cut(line, mark); found {
			return before + strings.TrimRight(mark, "`' :") + " (not shown)"
		}
	}
	return line
}

// bare drops the operation and the path from an error of the file system; the path is named already.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// decode reads a field of base64 data, which may be wrapped over lines.
func decode(path, field, text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, &Error{Path: path, Field: field, Err: err}
	}
	return data, nil
}

// parseProxy reads a URL whose text may hold a password, which an error does not quote.
func parseProxy(path, field, text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, &Error{Path: path, Field: field, Err: errors.New("it is not a URL")}
	}
	return u, nil
}

// beside makes a path relative to the file that names it.
func beside(origin, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(origin), path)
}
