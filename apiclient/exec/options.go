package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/leatproject/leat/apiclient"
)

// The versions of the protocol that New understands.
const (
	V1      = "client.authentication.k8s.io/v1"
	V1Beta1 = "client.authentication.k8s.io/v1beta1"
)

// DefaultTimeout is how long a plugin may take where Terms say nothing: long enough for a person to log in.
const DefaultTimeout = 5 * time.Minute

// InteractiveMode says what a plugin wants of standard input. It corresponds to ExecInteractiveMode of client-go.
type InteractiveMode string

// The modes. Standard input is given to a plugin only if it is a terminal.
const (
	Never       InteractiveMode = "Never"       // the plugin does not read standard input
	IfAvailable InteractiveMode = "IfAvailable" // it does if there is one
	Always      InteractiveMode = "Always"      // it cannot run without
)

// Options are what a user's entry of a kubeconfig says about its plugin, and the terms of the program that runs it.
// Printed, they show neither arguments nor values of variables, either of which may hold a credential.
// They correspond to ExecConfig of client-go.
type Options struct {
	// Command is the program to run. With a separator in it, it is a path, relative to Dir; without, it is looked for in
	// PATH. The current folder is never searched, not even where PATH says so.
	Command string
	// Dir is the folder of the kubeconfig.
	Dir string
	// Args are the arguments.
	Args []string
	// Env is added to this program's own environment and wins over it.
	Env []Variable
	// APIVersion is V1 or V1Beta1. The plugin must answer in the same.
	APIVersion string
	// InstallHint tells a person how to get the command. It stands in the error when there is no such command.
	InstallHint string
	// InteractiveMode has a default, IfAvailable, in V1Beta1 only.
	InteractiveMode InteractiveMode
	// Cluster is told to the plugin if it is not nil.
	Cluster *Cluster

	// Terms are those of the program.
	Terms Terms
}

// String shows options without arguments and without values.
func (o Options) String() string {
	return fmt.Sprintf("exec.Options{Command:%s Args:%d Env:%v APIVersion:%s}", o.Command, len(o.Args), o.Env, o.APIVersion)
}

// GoString is String.
func (o Options) GoString() string { return o.String() }

// Format is String, whatever the verb.
func (o Options) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, o.String()) }

// MarshalJSON writes String: it is meant for logs, not for storage.
func (o Options) MarshalJSON() ([]byte, error) { return json.Marshal(o.String()) }

// Variable is one of the environment. Tokens are often handed to plugins in one.
type Variable struct {
	Name  string
	Value apiclient.Secret
}

// Cluster is what a plugin is told of the server that the credentials are for.
// It corresponds to Cluster of the API group client.authentication.k8s.io.
type Cluster struct {
	Server             string
	TLSServerName      string
	Insecure           bool
	CAData             []byte   // wins over CAFile
	CAFile             string   // read for each run; a regular file of at most 4 MiB
	ProxyURL           *url.URL // told with its password
	DisableCompression bool
	// Config is what the cluster's extension client.authentication.k8s.io/exec holds, as JSON.
	Config []byte
}

// String shows a cluster without the password of its proxy and without Config.
func (c Cluster) String() string { return "exec.Cluster{Server:" + c.Server + "}" }

// GoString is String.
func (c Cluster) GoString() string { return c.String() }

// Format is String, whatever the verb.
func (c Cluster) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.String()) }

// MarshalJSON writes String: it is meant for logs, not for storage.
func (c Cluster) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// Terms are those of a program that runs plugins, whichever a kubeconfig names. The zero value lets any run, as kubectl
// does, with the program's own terminal if it has one.
type Terms struct {
	// Policy says which commands may run. A kubeconfig from somebody else runs what it names.
	Policy Policy
	// Timeout is how long a plugin may take. Zero means DefaultTimeout.
	Timeout time.Duration
	// Stdin is given to interactive plugins if it is a terminal. Nil means os.Stdin.
	Stdin *os.File
	// StdinUnavailable says, if it is not empty, that no plugin can have standard input, and why: "it is the manifest".
	StdinUnavailable string
	// Stderr gets what plugins write to standard error. Nil means os.Stderr for those that have the terminal, and for
	// others nothing: the first lines of one that fails are in the error.
	Stderr io.Writer
}

// FieldError says which field of Options is wrong and why.
type FieldError struct {
	Field string // "APIVersion", "Env"
	Err   error
}

// Error names the field and the reason.
func (e *FieldError) Error() string { return "exec: Options." + e.Field + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *FieldError) Unwrap() error { return e.Err }

func fieldErrorf(field, format string, a ...any) error {
	return &FieldError{Field: field, Err: fmt.Errorf(format, a...)}
}

// complete fills in what has a default and finds what is wrong.
func (o *Options) complete() error {
	switch {
	case o.Command == "":
		return fieldErrorf("Command", "it is empty")
	case strings.ContainsRune(o.Command, 0):
		return fieldErrorf("Command", "it holds a NUL")
	case o.APIVersion == "":
		return fieldErrorf("APIVersion", "it is empty; %s is the present version", V1)
	case o.APIVersion != V1 && o.APIVersion != V1Beta1:
		return fieldErrorf("APIVersion", "%.80q is not known; %s and %s are", o.APIVersion, V1, V1Beta1)
	}
	for _, v := range o.Env {
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") || strings.ContainsRune(v.Value.Reveal(), 0) {
			return fieldErrorf("Env", "%.80q cannot be a variable of an environment", v.Name)
		}
	}
	if o.Cluster != nil && len(o.Cluster.Config) > 0 && !json.Valid(o.Cluster.Config) {
		return fieldErrorf("Cluster.Config", "it is not JSON")
	}
	if o.InteractiveMode == "" && o.APIVersion == V1Beta1 {
		o.InteractiveMode = IfAvailable
	}
	switch o.InteractiveMode {
	case Never, IfAvailable, Always:
	case "":
		return fieldErrorf("InteractiveMode", "it is empty, and %s has no default; Never, IfAvailable and Always are known", V1)
	default:
		return fieldErrorf("InteractiveMode", "%.80q is not known; Never, IfAvailable and Always are", o.InteractiveMode)
	}
	if o.Terms.Timeout < 0 {
		return fieldErrorf("Terms.Timeout", "it is negative")
	}
	if o.Terms.Timeout == 0 {
		o.Terms.Timeout = DefaultTimeout
	}
	if o.Terms.Stdin == nil {
		o.Terms.Stdin = os.Stdin
	}
	if err := o.Terms.Policy.validate(); err != nil {
		return &FieldError{Field: "Terms.Policy", Err: err}
	}
	return nil
}

// interactive decides whether a run gets standard input.
func (o *Options) interactive(isTerminal func(*os.File) bool) (bool, error) {
	if o.InteractiveMode == Never {
		return false, nil
	}
	var obstacle error
	switch {
	case o.Terms.StdinUnavailable != "":
		obstacle = errors.New("it is not available: " + o.Terms.StdinUnavailable)
	case !isTerminal(o.Terms.Stdin):
		obstacle = errors.New("it is not a terminal")
	}
	if obstacle != nil && o.InteractiveMode == Always {
		return false, fmt.Errorf("%w: %w", ErrNoTerminal, obstacle)
	}
	return obstacle == nil, nil
}
