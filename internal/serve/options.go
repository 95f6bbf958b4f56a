package serve

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/leatproject/leat/internal/regularfile"
	"github.com/leatproject/leat/internal/sameorigin"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faultplan"
)

// Options are the flags of a server.
type Options struct {
	listen       string
	admin        string
	allowedHosts list
	kubeconfig   string
	token        string
	tls          bool
	lenient      bool
	faults       list
	faultsFile   string
	seed         string
	data         string
	maxClusters  int
	maxObjects   int
	maxBytes     int
}

// list is a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, ", ") }

// Set adds a value.
func (l *list) Set(text string) error {
	*l = append(*l, text)
	return nil
}

// Flags adds the flags.
func (o *Options) Flags(f *flag.FlagSet) {
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`address` to listen on; port 0 picks a free one")
	f.StringVar(&o.admin, "admin", "", "loopback `address` for the admin endpoint, such as 127.0.0.1:8081 (default: none)")
	f.Var(&o.allowedHosts, "allow-host", "further `host` or host:port that requests may name, such as that of a tunnel or a proxy; may be repeated")
	f.StringVar(&o.kubeconfig, "kubeconfig-out", "leat.kubeconfig", "`file` to write a kubeconfig to; empty writes none")
	f.StringVar(&o.token, "token", "", "bearer `token` that clients must send; kubectl and client-go send the token of a kubeconfig only over TLS, so use --tls too")
	f.BoolVar(&o.tls, "tls", false, "serve over TLS and HTTP/2, with a certificate of its own")
	f.BoolVar(&o.lenient, "lenient", false, "accept objects in namespaces that do not exist, and delete pods at once")
	f.Var(&o.faults, "fault", "a `fault`, such as 'watch pods: drop 10%'; may be repeated")
	f.StringVar(&o.faultsFile, "faults", "", "`file` with a fault plan in YAML")
	f.StringVar(&o.seed, "seed", "", "`number` that decides about faults with a probability, and about UIDs (default: that of the plan, or a random one)")
	f.StringVar(&o.data, "data", "", "`file` with the state, in YAML or JSON: read at the start if it exists, written at the end")
	f.IntVar(&o.maxClusters, "max-clusters", 1000, "largest `number` of clusters that the admin endpoint creates beside the first one")
	f.IntVar(&o.maxObjects, "max-objects", 0, "`number` of objects, with those of a new cluster, at which a cluster is full, as with a full etcd (default: no limit)")
	f.IntVar(&o.maxBytes, "max-bytes", 0, "`number` of bytes of all objects in JSON, with those of a new cluster, beyond which a cluster is full (default: no limit)")
}

// UsageError is an error in the flags. Hooks.New may return one.
type UsageError struct{ Err error }

// Error returns the error without a prefix.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

func usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Check returns the error of wrong flags. It reads no file. Run calls it first; a program that listens on more
// addresses calls it before that.
func (o Options) Check() error {
	if err := o.checkAddresses(); err != nil {
		return err
	}
	o.faultsFile = ""
	_, err := o.plan()
	return err
}

func (o Options) checkAddresses() error {
	address, err := net.ResolveTCPAddr("tcp", o.listen)
	if err != nil {
		return usagef("--listen: %w", err)
	}
	if !address.IP.IsLoopback() && o.token == "" {
		return usagef("--listen %s: others can reach it, so it needs a --token", o.listen)
	}
	if _, err := sameorigin.New(o.allowedHosts); err != nil {
		return usagef("--allow-host: %w", err)
	}
	for _, limit := range []struct {
		flag  string
		value int
	}{{"clusters", o.maxClusters}, {"objects", o.maxObjects}, {"bytes", o.maxBytes}} {
		if limit.value < 0 {
			return usagef("--max-%s %d: it is a number that is not negative", limit.flag, limit.value)
		}
	}
	if o.admin != "" {
		host, _, err := net.SplitHostPort(o.admin)
		if err != nil {
			return usagef("--admin: %w", err)
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return usagef("--admin %s: it must be an address of loopback, such as 127.0.0.1:8081", o.admin)
		}
	}
	return nil
}

// plan returns the faults of the flags and of the file, with the seed.
func (o Options) plan() (faultplan.Plan, error) {
	p := faultplan.Plan{Seed: rand.Uint64N(1 << 32)} // short, because a person may have to type it
	if o.faultsFile != "" {
		text, err := regularfile.Read(o.faultsFile)
		if err != nil {
			return p, fmt.Errorf("--faults: %w", err)
		}
		if p, err = faultplan.ParsePlan(text); err != nil {
			return p, fmt.Errorf("--faults %s: %w", o.faultsFile, err)
		}
	}
	if o.seed != "" {
		var err error
		if p.Seed, err = strconv.ParseUint(o.seed, 10, 64); err != nil {
			return p, usagef("--seed %q is not a number", o.seed)
		}
	}
	for _, text := range o.faults {
		f, err := faultplan.Parse(text)
		if err != nil {
			return p, usagef("--fault: %w", err)
		}
		p.Faults = append(p.Faults, f)
	}
	for _, f := range p.Faults {
		if f.Snapshot != "" && o.admin == "" {
			return p, usagef("fault %q: it waits for a snapshot, which only the endpoint of --admin takes", f)
		}
	}
	return p, nil
}

// server returns the options of the server.
func (o Options) server(seed uint64) testserver.Options {
	so := testserver.Options{
		TLS: o.tls, HTTP2: o.tls, AllowedHosts: o.allowedHosts, ManagedFields: true, ClockVersions: true, Seed: seed,
		StrictNamespaces: !o.lenient, ImmediateDeletion: o.lenient,
		MaxObjects: o.maxObjects, MaxBytes: o.maxBytes,
		DeletionPause: time.Millisecond, // in forks too, because they have clients of the network
	}
	if o.token != "" {
		so.Tokens = testserver.Tokens{o.token: "admin"}
	}
	return so
}

// load reads the state, if there is a file.
func (o Options) load(server *testserver.Server) error {
	if o.data == "" {
		return nil
	}
	info, err := os.Stat(o.data)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = checkFolder(o.data)
	case err == nil && !info.Mode().IsRegular():
		err = errors.New("it is not a regular file")
	case err == nil:
		var text []byte
		if text, err = os.ReadFile(o.data); err == nil {
			err = server.Load(text)
		}
	}
	if err != nil {
		return fmt.Errorf("--data %s: %w", o.data, err)
	}
	return nil
}
