package controlplane

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Controllers is the environment variable that switches controllers on.
const Controllers = "LEAT_CONTROLLERS"

// etcdWait is how long kube-apiserver waits for its etcd.
const etcdWait = 5 * time.Second

// effective are the flags of kube-apiserver that have an effect.
var effective = []string{
	"anonymous-auth", "authorization-mode", "bind-address", "cert-dir", "client-ca-file", "disable-admission-plugins",
	"enable-admission-plugins", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-servers", "feature-gates", "secure-port",
	"service-account-issuer", "service-account-key-file", "service-account-signing-key-file", "tls-cert-file", "tls-private-key-file",
	"token-auth-file",
}

// RunAPIServer runs the program kube-apiserver, and returns its exit code: 0 after ctx has ended, and 1 for a failure.
func RunAPIServer(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parse("kube-apiserver", apiServerFlags, args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(stdout, usage(f, "kube-apiserver"))
		return 0
	case err == nil && truth(f, "version", false):
		fmt.Fprintln(stdout, "Kubernetes v1.37.2")
		return 0
	case err == nil && f.NArg() > 0:
		err = fmt.Errorf("\"kube-apiserver\" does not take any arguments, got %q", f.Args())
	case err == nil:
		notice(stderr, "kube-apiserver", idle(f))
		err = runAPIServer(ctx, f)
	}
	if err != nil {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	return 0
}

// idle returns the flags that were given and change nothing. The values of envtest are what a test server does anyway.
func idle(f *pflag.FlagSet) []string {
	anyway := slices.Clone(effective)
	if last(f, "service-cluster-ip-range", "") == "10.0.0.0/24" {
		anyway = append(anyway, "service-cluster-ip-range")
	}
	if truth(f, "allow-privileged", false) {
		anyway = append(anyway, "allow-privileged")
	}
	return without(f, anyway)
}

func runAPIServer(ctx context.Context, f *pflag.FlagSet) error {
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
		return errors.New("etcd has ended, and with it the API server")
	case <-ctx.Done():
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		select {
		case <-ended: // nothing listens any more
		case <-time.After(leaveTime):
		}
	}
	return nil
}

// newRequest reads the flags and their files.
func newRequest(f *pflag.FlagSet) (*request, error) {
	if err := required(f); err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(last(f, "secure-port", "6443"), 0, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("--secure-port %s must be between 1 and 65535, inclusive. It cannot be turned off with 0", last(f, "secure-port", ""))
	}
	host := last(f, "bind-address", "0.0.0.0")
	if net.ParseIP(host) == nil {
		return nil, fmt.Errorf("invalid argument %q for \"--bind-address\" flag: failed to parse IP", host)
	}
	r := &request{Address: net.JoinHostPort(host, strconv.FormatUint(port, 10))}
	modes := listed(f, "authorization-mode")
	if len(modes) == 0 {
		modes = []string{"AlwaysAllow"}
	}
	for _, mode := range modes {
		if !slices.Contains([]string{"RBAC", "AlwaysAllow", "Node"}, mode) {
			return nil, fmt.Errorf("--authorization-mode: leat-server has RBAC, AlwaysAllow and Node, which allows nothing, and not %q", mode)
		}
	}
	r.Cluster = settings{
		Modes: modes, Anonymous: truth(f, "anonymous-auth", true) && !slices.Contains(modes, "AlwaysAllow"),
		Issuer: given(f, "service-account-issuer")[0], Gates: strings.Join(given(f, "feature-gates"), ","),
		Enabled: listed(f, "enable-admission-plugins"), Disabled: listed(f, "disable-admission-plugins"),
	}
	if text := os.Getenv(Controllers); text != "" {
		if r.Cluster.Controllers, err = strconv.ParseBool(text); err != nil {
			return nil, fmt.Errorf("%s=%q: it is true or false", Controllers, text)
		}
	}
	return r, r.readFiles(f)
}

// required returns an error for flags that kube-apiserver needs too.
func required(f *pflag.FlagSet) error {
	for _, name := range []string{"etcd-servers", "service-account-issuer", "service-account-key-file", "service-account-signing-key-file"} {
		if len(given(f, name)) == 0 {
			return fmt.Errorf("--%s must be specified", name)
		}
	}
	return nil
}

// readFiles reads the files of flags.
func (r *request) readFiles(f *pflag.FlagSet) (err error) {
	read := func(name string) (text []byte) {
		if path := last(f, name, ""); path != "" && err == nil {
			if text, err = os.ReadFile(path); err != nil {
				err = fmt.Errorf("--%s: %w", name, err)
			}
		}
		return text
	}
	r.Cluster.ClientCA, r.Cluster.SigningKey = read("client-ca-file"), read("service-account-signing-key-file")
	r.Certificate, r.Key = read("tls-cert-file"), read("tls-private-key-file")
	tokens := read("token-auth-file")
	for _, path := range given(f, "service-account-key-file") {
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
		r.Certificate, r.Key, err = certificateIn(last(f, "cert-dir", "/var/run/kubernetes"), r.Address)
	}
	return err
}

// parseTokens reads a token file: lines with a token, a name, a UID and perhaps groups.
func parseTokens(text []byte) (out []token, err error) {
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1
	lines, err := r.ReadAll()
	if err != nil {
		return nil, errors.New("--token-auth-file: it is no CSV") // the error might quote a token
	}
	for n, line := range lines {
		if len(line) < 3 || line[0] == "" {
			return nil, fmt.Errorf("--token-auth-file: line %d needs a token, a user name and a user ID", n+1)
		}
		t := token{Token: line[0], Name: line[1], UID: line[2]}
		if len(line) > 3 && line[3] != "" {
			t.Groups = strings.Split(line[3], ",")
		}
		out = append(out, t)
	}
	return out, nil
}

// certificateIn reads the certificate in a folder, or makes it.
func certificateIn(folder, address string) (certificate, key []byte, err error) {
	files := [2]string{filepath.Join(folder, "apiserver.crt"), filepath.Join(folder, "apiserver.key")}
	if ok, err := cert.CanReadCertAndKey(files[0], files[1]); err != nil {
		return nil, nil, fmt.Errorf("--cert-dir: %w", err)
	} else if !ok {
		host, _, _ := net.SplitHostPort(address) //nolint:errcheck // newRequest has joined it
		made, madeKey, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"kubernetes.default.svc", "kubernetes.default", "kubernetes", "localhost"})
		if err == nil {
			err = cmp.Or(cert.WriteCert(files[0], made), keyutil.WriteKey(files[1], madeKey))
		}
		if err != nil {
			return nil, nil, fmt.Errorf("--cert-dir: %w", err)
		}
		return made, madeKey, nil
	}
	if certificate, err = os.ReadFile(files[0]); err == nil {
		key, err = os.ReadFile(files[1])
	}
	if err != nil {
		err = fmt.Errorf("--cert-dir: %w", err)
	}
	return certificate, key, err
}

// errPassing means that an etcd may still come.
var errPassing = errors.New("etcd does not answer")

// connect asks the first etcd that answers to serve, and returns the connection for which it serves.
func connect(ctx context.Context, f *pflag.FlagSet, r *request) (net.Conn, error) {
	servers := listed(f, "etcd-servers")
	limit, cancel := context.WithTimeout(ctx, etcdWait)
	defer cancel()
	for {
		var err error
		for _, server := range servers {
			var conn net.Conn
			if conn, err = connectTo(limit, f, server, r); err == nil {
				return conn, nil
			}
			if !errors.Is(err, errPassing) {
				return nil, err
			}
		}
		select {
		case <-limit.Done():
			return nil, fmt.Errorf("%w within %v", err, etcdWait)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func connectTo(ctx context.Context, f *pflag.FlagSet, server string, r *request) (net.Conn, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("--etcd-servers %q: it is no URL", server)
	}
	var dialer interface {
		DialContext(context.Context, string, string) (net.Conn, error)
	} = &net.Dialer{}
	if u.Scheme == "https" {
		config, err := clientTLS(f)
		if err != nil {
			return nil, err
		}
		dialer = &tls.Dialer{Config: config}
	}
	conn, err := dialer.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", server, errPassing, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := ask(conn, u.Host, r); err != nil {
		_ = conn.Close() // the other error says more
		return nil, err
	}
	return conn, nil
}

// ask sends a request and reads the answer.
func ask(conn net.Conn, host string, r *request) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	asked, err := http.NewRequest(http.MethodPost, "http://"+host+servePath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	asked.Header.Set("Connection", "Upgrade")
	asked.Header.Set("Upgrade", protocol)
	if err := asked.Write(conn); err != nil {
		return fmt.Errorf("%w: %w", errPassing, err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), asked)
	if err != nil {
		return fmt.Errorf("%w: %w", errPassing, err)
	}
	switch answer.StatusCode {
	case http.StatusSwitchingProtocols:
		return nil
	case http.StatusNotFound:
		return fmt.Errorf("the etcd at %s is not the one of leat-server", host)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	_ = answer.Body.Close() // it was read
	return cmp.Or(err, errors.New(strings.TrimSpace(string(text))))
}

// clientTLS returns the configuration for an etcd with https.
func clientTLS(f *pflag.FlagSet) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if path := last(f, "etcd-cafile", ""); path != "" {
		if config.RootCAs, err = readPool(path); err != nil {
			return nil, fmt.Errorf("--etcd-cafile: %w", err)
		}
	}
	if path := last(f, "etcd-certfile", ""); path != "" {
		pair, err := tls.LoadX509KeyPair(path, last(f, "etcd-keyfile", ""))
		if err != nil {
			return nil, fmt.Errorf("--etcd-certfile, --etcd-keyfile: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
