package controlplane

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// The flags of the real programs, with their types. --help of kube-apiserver 1.37 and etcd 3.7 prints them.
var (
	//go:embed flags/kube-apiserver.txt
	apiServerFlags string
	//go:embed flags/etcd.txt
	etcdFlags string
)

// value is a flag of a real program. It keeps what was given.
type value struct {
	kind  string
	given []string
}

func (v *value) String() string { return strings.Join(v.given, ",") }

// Type returns the name of the type, which --help prints.
func (v *value) Type() string { return v.kind }

// Set adds a text.
func (v *value) Set(text string) error {
	var err error
	switch v.kind {
	case "bool":
		_, err = strconv.ParseBool(text)
	case "int":
		_, err = strconv.ParseInt(text, 0, 64)
	case "duration":
		_, err = time.ParseDuration(text)
	}
	v.given = append(v.given, text)
	return err
}

// parse reads a command line with the flags of a list.
func parse(name, list string, args []string) (*pflag.FlagSet, error) {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	f.Usage = func() {}
	f.SortFlags = true
	for line := range strings.Lines(list) {
		flag, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		short := ""
		if flag == "v" {
			short = "v"
		}
		added := f.VarPF(&value{kind: kind}, flag, short, "")
		if kind == "bool" {
			added.NoOptDefVal = "true"
		}
	}
	f.VarPF(&value{kind: "bool"}, "version", "", "").NoOptDefVal = "true"
	return f, f.Parse(args)
}

// given returns the texts of a flag.
func given(f *pflag.FlagSet, name string) []string { return f.Lookup(name).Value.(*value).given }

// last returns the last text of a flag, or a default.
func last(f *pflag.FlagSet, name, fallback string) string {
	if all := given(f, name); len(all) > 0 {
		return all[len(all)-1]
	}
	return fallback
}

// listed returns the elements of a flag that may be repeated and whose texts may be lists with commas.
func listed(f *pflag.FlagSet, name string) (out []string) {
	for _, text := range given(f, name) {
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}

// truth returns the value of a flag without an argument.
func truth(f *pflag.FlagSet, name string, fallback bool) bool {
	yes, err := strconv.ParseBool(last(f, name, strconv.FormatBool(fallback)))
	return err == nil && yes
}

// without returns the flags that were given and have no effect here.
func without(f *pflag.FlagSet, effective []string) (out []string) {
	f.Visit(func(one *pflag.Flag) {
		if !slices.Contains(effective, one.Name) {
			out = append(out, "--"+one.Name)
		}
	})
	return out
}

// usage returns what --help prints.
func usage(f *pflag.FlagSet, name string) string {
	return fmt.Sprintf("%s is the one of leat-server: it serves a Kubernetes API from memory, and not all flags have an "+
		"effect.\n\nUsage:\n  %s [flags]\n\nFlags:\n%s", name, name, f.FlagUsages())
}
