package front

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Controllers is the environment variable that switches controllers on.
const Controllers = "LEAT_CONTROLLERS"

// LeaveTime is how long programs wait until a listener is closed.
const LeaveTime = 500 * time.Millisecond

// etcdWait is how long kube-apiserver waits for its etcd, unless --storage-initialization-timeout is given. The real
// program ends when its first connection is not ready after this time.
const etcdWait = "20s"

// effective are the flags of kube-apiserver that have an effect.
var effective = []string{
	"anonymous-auth", "authorization-mode", "bind-address", "cert-dir", "client-ca-file", "disable-admission-plugins",
	"enable-admission-plugins", "enable-priority-and-fairness", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-servers", "feature-gates", "max-mutating-requests-inflight",
	"max-requests-inflight", "secure-port",
	"service-account-issuer", "service-account-key-file", "service-account-signing-key-file",
	"storage-initialization-timeout", "tls-cert-file", "tls-private-key-file",
	"token-auth-file",
}

// realModes are the modes of authorization of kube-apiserver.
var realModes = []string{"ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"}

// RunAPIServer runs the program kube-apiserver, and returns its exit code: 0 after ctx has ended, and 1 for a failure.
func RunAPIServer(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parse("kube-apiserver", apiServerFlags, args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		f.usage(stdout)
		return 0
	case err == nil && f.Truth("version", false):
		fmt.Fprintln(stdout, "Kubernetes v1.37.2")
		return 0
	case err == nil && f.set.NArg() > 0:
		err = fmt.Errorf("\"kube-apiserver\" does not take any arguments, got %q", f.set.Args())
	case err == nil:
		if err = checkIdle(f); err != nil {
			break
		}
		f.effective = effectiveOf(f)
		f.Notice(stderr)
		if names := missing(f); len(names) > 0 {
			fmt.Fprintf(stderr, "kube-apiserver: admission plugins that leat-server lacks: %s\n", strings.Join(names, " "))
		}
		err = runAPIServer(ctx, f)
	}
	if err != nil {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	return 0
}

// checkIdle returns the error of kube-apiserver for flags that have no effect here and that are often wrong.
func checkIdle(f *Flags) error {
	for i, network := range strings.Split(cmp.Or(f.Last("service-cluster-ip-range", ""), "10.0.0.0/24"), ",") {
		if _, _, err := net.ParseCIDR(network); err != nil {
			return fmt.Errorf("service-cluster-ip-range[%d] is not %s", i, []string{"a valid cidr", "an ip net"}[min(i, 1)])
		}
	}
	if path := f.Last("audit-policy-file", ""); path != "" {
		if _, err := os.ReadFile(path); err != nil {
			return fmt.Errorf("loading audit policy file: failed to read file path %q: %w", path, err)
		}
	}
	return nil
}

// effectiveOf returns the flags with an effect, and those whose values are what a test server does anyway.
func effectiveOf(f *Flags) []string {
	out := slices.Clone(effective)
	if f.Last("service-cluster-ip-range", "") == "10.0.0.0/24" {
		out = append(out, "service-cluster-ip-range")
	}
	if f.Truth("allow-privileged", false) {
		out = append(out, "allow-privileged")
	}
	return out
}

func runAPIServer(ctx context.Context, f *Flags) error {
	asked, err := newRequest(f)
	if err != nil {
		return err
	}
	conn, err := connect(ctx, f, asked)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer conn.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, conn) // until etcd ends, or has stopped to serve
	}()
	select {
	case <-ended:
		if ctx.Err() != nil {
			return nil // a signal may end both programs
		}
		return errors.New("etcd has ended or has stopped serving; see its output")
	case <-ctx.Done():
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		select {
		case <-ended: // nothing listens any more
		case <-time.After(LeaveTime):
		}
	}
	return nil
}

// newRequest reads the flags and their files.
func newRequest(f *Flags) (*Request, error) {
	if err := required(f); err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(f.Last("secure-port", "6443"), 0, 16)
	if err != nil {
		return nil, err
	}
	host := f.Last("bind-address", "0.0.0.0")
	if net.ParseIP(host) == nil {
		return nil, fmt.Errorf("invalid argument %q for \"--bind-address\" flag: failed to parse IP", host)
	}
	r := &Request{Address: net.JoinHostPort(host, strconv.FormatUint(port, 10))}
	modes := f.Listed("authorization-mode")
	if len(modes) == 0 {
		modes = []string{"AlwaysAllow"}
	}
	for _, mode := range modes {
		if !slices.Contains(realModes, mode) {
			return nil, fmt.Errorf("authorization-mode %q is not a valid mode", mode)
		}
		if !slices.Contains([]string{"RBAC", "AlwaysAllow", "Node"}, mode) {
			return nil, fmt.Errorf("--authorization-mode: leat-server has RBAC, AlwaysAllow and Node, which allows nothing, and not %q", mode)
		}
	}
	if !slices.Contains(modes, "RBAC") && !slices.Contains(modes, "AlwaysAllow") {
		return nil, errors.New("--authorization-mode: leat-server needs RBAC or AlwaysAllow, because its Node allows nothing")
	}
	r.Cluster = Settings{
		Modes: modes, Anonymous: f.Truth("anonymous-auth", true) && !slices.Contains(modes, "AlwaysAllow"),
		Issuer: f.given("service-account-issuer")[0], Gates: strings.Join(f.given("feature-gates"), ","),
	}
	if r.Cluster.Enabled, err = plugins(f, "enable-admission-plugins"); err != nil {
		return nil, err
	}
	if r.Cluster.Disabled, err = plugins(f, "disable-admission-plugins"); err != nil {
		return nil, err
	}
	if text := os.Getenv(Controllers); text != "" {
		if r.Cluster.Controllers, err = strconv.ParseBool(text); err != nil {
			return nil, fmt.Errorf("%s=%q: it is true or false", Controllers, text)
		}
	}
	return r, cmp.Or(r.Cluster.limit(f), r.readFiles(f))
}

// limit reads the limits of requests in progress. Without these flags, all stay zero.
func (s *Settings) limit(f *Flags) error {
	if len(f.given("max-requests-inflight"))+len(f.given("max-mutating-requests-inflight")) == 0 {
		return nil
	}
	number := func(name, fallback string) int {
		n, _ := strconv.ParseInt(f.Last(name, fallback), 0, 64) // parse has refused other texts
		return int(min(n, 1<<20))
	}
	s.Reads, s.Writes = number("max-requests-inflight", "400"), number("max-mutating-requests-inflight", "200")
	s.Queue = f.Truth("enable-priority-and-fairness", true)
	if s.Queue && s.Reads+s.Writes == 0 {
		return errors.New("invalid configuration: MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; they must add up to something positive")
	}
	return nil
}

// plugins returns the admission plugins of a flag that leat-server has.
func plugins(f *Flags, flag string) (out []string, err error) {
	real := strings.Fields(allPlugins)
	for _, name := range f.Listed(flag) {
		switch n := slices.Index(real, name); {
		case n < 0:
			return nil, fmt.Errorf("%s plugin %q is unknown", flag, name)
		case n+1 < len(real) && real[n+1] == "+" && !slices.Contains(out, name):
			out = append(out, name)
		}
	}
	return out, nil
}

// missing returns the plugins of kube-apiserver that were enabled and that leat-server lacks.
func missing(f *Flags) (out []string) {
	has, err := plugins(f, "enable-admission-plugins")
	for _, name := range f.Listed("enable-admission-plugins") {
		if err == nil && !slices.Contains(has, name) && name != "NamespaceLifecycle" {
			out = append(out, name)
		}
	}
	return out
}

// required returns the errors of kube-apiserver for flags that it needs, and for a wrong port.
func required(f *Flags) error {
	has := func(name string) bool { return len(f.Listed(name)) > 0 && !slices.Contains(f.given(name), "") }
	const issuers = "service-account-issuer"
	issuer, signing := has(issuers), has("service-account-signing-key-file")
	var wrong []string
	if !has("etcd-servers") {
		wrong = append(wrong, "--etcd-servers must be specified")
	}
	if port, err := strconv.ParseUint(f.Last("secure-port", "6443"), 0, 16); err != nil || port == 0 {
		wrong = append(wrong, fmt.Sprintf("--secure-port %s must be between 1 and 65535, inclusive. It cannot be turned off with 0",
			f.Last("secure-port", "")))
	}
	if !issuer && len(f.given(issuers)) > 0 {
		wrong = append(wrong, issuers+" should not be an empty string")
	} else if !issuer {
		wrong = append(wrong, issuers+" is a required flag")
	}
	if !has("service-account-key-file") {
		wrong = append(wrong, "either `--service-account-key-file` or `--service-account-signing-endpoint` must be set")
	}
	switch {
	case !issuer && !signing:
		wrong = append(wrong, "--service-account-signing-key-file and --service-account-issuer are required flags")
	case !issuer || !signing:
		wrong = append(wrong, "--service-account-signing-key-file, --service-account-issuer, and --api-audiences should be specified together")
	}
	for _, name := range []string{"max-requests-inflight", "max-mutating-requests-inflight"} {
		if strings.HasPrefix(f.Last(name, ""), "-") {
			wrong = append(wrong, "--"+name+" can not be negative value")
		}
	}
	switch len(wrong) {
	case 0:
		return nil
	case 1:
		return errors.New(wrong[0])
	}
	return fmt.Errorf("[%s]", strings.Join(wrong, ", "))
}

// readFiles reads the files of flags.
func (r *Request) readFiles(f *Flags) (err error) {
	read := func(name string) (text []byte) {
		if path := f.Last(name, ""); path != "" && err == nil {
			if text, err = os.ReadFile(path); err != nil {
				err = fmt.Errorf("--%s: %w", name, err)
			}
		}
		return text
	}
	r.Cluster.ClientCA, r.Cluster.SigningKey = read("client-ca-file"), read("service-account-signing-key-file")
	r.Certificate, r.Key = read("tls-cert-file"), read("tls-private-key-file")
	tokens := read("token-auth-file")
	for _, path := range f.given("service-account-key-file") {
		key, failed := os.ReadFile(path)
		if failed != nil {
			return fmt.Errorf("--service-account-key-file: %w", failed)
		}
		r.Cluster.Keys = append(r.Cluster.Keys, key)
	}
	if err == nil {
		r.Cluster.Tokens, err = parseTokens(tokens)
	}
	if err == nil && r.Certificate == nil && r.Key == nil {
		r.Certificate, r.Key, err = certificateIn(f.Last("cert-dir", "/var/run/kubernetes"), r.Address)
	}
	return err
}

// parseTokens reads a token file: lines with a token, a name, a UID and perhaps groups.
func parseTokens(text []byte) (out []Token, err error) {
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1
	lines, err := r.ReadAll()
	if err != nil {
		return nil, errors.New("--token-auth-file: it is not CSV") // the error might quote a token
	}
	for n, line := range lines {
		if len(line) < 3 || line[0] == "" {
			return nil, fmt.Errorf("--token-auth-file: line %d needs a token, a user name and a user ID", n+1)
		}
		t := Token{Token: line[0], Name: line[1], UID: line[2]}
		if len(line) > 3 && line[3] != "" {
			t.Groups = strings.Split(line[3], ",")
		}
		out = append(out, t)
	}
	return out, nil
}
