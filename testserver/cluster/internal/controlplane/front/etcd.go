package front

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"

	"github.com/spf13/pflag"
)

// effectiveOfEtcd are the flags of etcd that have an effect, or whose effect is what happens anyway.
var effectiveOfEtcd = []string{
	"name", "data-dir", "listen-client-urls", "advertise-client-urls", "listen-peer-urls", "initial-advertise-peer-urls", "initial-cluster",
	"initial-cluster-state", "initial-cluster-token", "unsafe-no-fsync", "cert-file", "key-file", "client-cert-auth", "trusted-ca-file",
	"logger", "log-level", "log-outputs", "quota-backend-bytes",
}

// EtcdVersion is the version that etcd reports.
const EtcdVersion = "3.7.0"

// ParseEtcd reads the command line of etcd. It returns nil and an exit code if the program ends after that.
func ParseEtcd(args []string, stdout, stderr io.Writer) (*Flags, int) {
	args = slices.Clone(args)
	for i, arg := range args {
		if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' {
			args[i] = "-" + arg // etcd accepts one dash too
		}
	}
	f, err := parse("etcd", etcdFlags, args)
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		fmt.Fprintf(stderr, "flag provided but not defined: -%s\n", unknown.GetSpecifiedName())
		return nil, 2
	case errors.As(err, &invalid):
		form := "invalid value %q for flag -%s: parse error\n"
		if invalid.GetFlag().Value.Type() == "bool" {
			form = "invalid boolean value %q for -%s: parse error\n"
		}
		fmt.Fprintf(stderr, form, invalid.GetValue(), invalid.GetFlag().Name)
		return nil, 2
	case errors.Is(err, pflag.ErrHelp):
		f.usage(stdout)
		return nil, 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return nil, 2
	case f.Truth("version", false):
		fmt.Fprintln(stdout, "etcd Version: "+EtcdVersion)
		return nil, 0
	case checkURLs(f) != nil:
		fmt.Fprintln(stderr, checkURLs(f))
		return nil, 2
	case f.set.NArg() > 0:
		fmt.Fprintf(stderr, "etcd: %q is not a valid flag\n", f.set.Arg(0))
		return nil, 1
	case len(f.given("listen-client-urls")) > 0 && len(f.given("advertise-client-urls")) == 0:
		fmt.Fprintln(stderr, "etcd: --advertise-client-urls is required when --listen-client-urls is set explicitly")
		return nil, 1
	}
	f.effective = effectiveOfEtcd
	return f, 0
}

// checkURLs returns the error of etcd for a flag with a malformed URL.
func checkURLs(f *Flags) error {
	for _, name := range []string{"listen-client-urls", "advertise-client-urls", "listen-peer-urls", "initial-advertise-peer-urls"} {
		for _, text := range f.Listed(name) {
			u, err := url.Parse(text)
			switch {
			case err != nil:
			case !slices.Contains([]string{"http", "https", "unix", "unixs"}, u.Scheme):
				err = fmt.Errorf("URL scheme must be http, https, unix, or unixs: %s", text)
			case u.Scheme == "http" || u.Scheme == "https":
				if _, _, split := net.SplitHostPort(u.Host); split != nil {
					err = fmt.Errorf("URL address does not have the form \"host:port\": %s", text)
				}
			}
			if err != nil {
				return fmt.Errorf("invalid value %q for flag -%s: %w", f.Last(name, ""), name, err)
			}
		}
	}
	return nil
}
