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

// DefaultTimeout is the default of Terms.Timeout. A person can log in within it.
const DefaultTimeout = 5 * time.Minute

// InteractiveMode is a plugin's use of standard input. It corresponds to ExecInteractiveMode of client-go.
type InteractiveMode string

// The modes. Standard input is given to a plugin only if it is a terminal.
const (
	Never       InteractiveMode = "Never"       // the plugin does not read standard input
	IfAvailable InteractiveMode = "IfAvailable" // it reads standard input if that is a terminal
	Always      InteractiveMode = "Always"      // it needs standard input
)

// Options are the plugin of a user's entry in a kubeconfig, and the terms of the program that runs it. Formatted
// Options show neither arguments nor values of variables, because both may contain a credential. They correspond to
// ExecConfig of client-go.
type Options struct {
	// Command is the program to run. If it contains a path separator, it is a path relative to Dir. Otherwise PATH is
	// searched, but not the current folder, even if PATH contains it.
	Command string
	// Dir is the folder of the kubeconfig.
	Dir string
	// Args are the arguments.
	Args []string
	// Env is added to this program's own environment and wins over it.
	Env []Variable
	// APIVersion is V1 or V1Beta1. The plugin must answer in the same.
	APIVersion string
	// InstallHint tells a person how to install the command. It is in the error if there is no such command.
	InstallHint string
	// InteractiveMode must be set in V1. In V1Beta1 the default is IfAvailable.
	InteractiveMode InteractiveMode
	// Cluster is passed to the plugin, unless it is nil.
	Cluster *Cluster

	// Terms are set by the program, not by the kubeconfig.
	Terms Terms
}

// String formats options without arguments and without values.
func (o Options) String() string {
	return fmt.Sprintf("exec.Options{Command:%s Args:%d Env:%v APIVersion:%s}", o.Command, len(o.Args), o.Env, o.APIVersion)
}

// GoString is String.
func (o Options) GoString() string { return o.String() }

// Format is String, whatever the verb.
func (o Options) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, o.String()) }

// MarshalJSON writes String: it is meant for logs, not for storage.
func (o Options) MarshalJSON() ([]byte, error) { return json.Marshal(o.String()) }

// Variable is a variable of the environment. It often has a token.
type Variable struct {
	Name  string
	Value apiclient.Secret
}

// Cluster describes the server for the plugin. It corresponds to Cluster of the API group client.authentication.k8s.io.
type Cluster struct {
	Server             string
	TLSServerName      string
	Insecure           bool
	CAData             []byte   // wins over CAFile
	CAFile             string   // read for each run; a regular file of at most 4 MiB
	ProxyURL           *url.URL // the plugin gets its password too
	DisableCompression bool
	// Config is the content of the cluster's extension client.authentication.k8s.io/exec, as JSON.
	Config []byte
}

// String formats a cluster without the password of its proxy and without Config.
func (c Cluster) String() string { return "exec.Cluster{Server:" + c.Server + "}" }

// GoString is String.
func (c Cluster) GoString() string { return c.String() }

// Format is String, whatever the verb.
func (c Cluster) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.String()) }

// MarshalJSON writes String: it is meant for logs, not for storage.
func (c Cluster) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// Terms are the rules of a program for all plugins. The zero value allows any command, as kubectl does. An interactive
// plugin gets the program's terminal, if it has one.
type Terms struct {
	// Policy selects the commands that may run. Without one, a kubeconfig can run any command.
	Policy Policy
	// Timeout is the longest time of a run. Zero means DefaultTimeout.
	Timeout time.Duration
	// Stdin is given to interactive plugins if it is a terminal. Nil means os.Stdin.
	Stdin *os.File
	// StdinUnavailable is a reason why no plugin can have standard input: "it is the manifest". Empty means none.
	StdinUnavailable string
	// Stderr gets the standard error of the plugins as it is: what they say to the user, such as how to log in. Nil
	// means os.Stderr. Use io.Discard if what a plugin prints may be a secret, and os.Stderr is a log.
	Stderr io.Writer
}

// FieldError is an error in a field of Options.
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

// complete sets the defaults and validates the options.
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

// interactive reports whether a run gets standard input.
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
