package front

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// The flags of the real programs, with their types. --help of kube-apiserver 1.37 and etcd 3.7 prints them.
var (
	//go:embed flags/kube-apiserver.txt
	apiServerFlags string
	//go:embed flags/etcd.txt
	etcdFlags string
	// allPlugins are the admission plugins of kube-apiserver. Those of leat-server have a plus.
	//go:embed flags/plugins.txt
	allPlugins string
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
	case "uint":
		_, err = strconv.ParseUint(text, 0, 64)
	case "duration":
		_, err = time.ParseDuration(text)
	}
	v.given = append(v.given, text)
	return err
}

// Flags are the flags of a command line.
type Flags struct {
	name      string
	set       *pflag.FlagSet
	effective []string // flags that have an effect, or whose effect is what happens anyway
}

// parse reads a command line with the flags of a list.
func parse(name, list string, args []string) (*Flags, error) {
	set := pflag.NewFlagSet(name, pflag.ContinueOnError)
	set.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	set.Usage = func() {}
	for line := range strings.Lines(list + "version bool\n") {
		flag, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		short := ""
		if flag == "v" {
			short = "v"
		}
		added := set.VarPF(&value{kind: kind}, flag, short, "")
		if kind == "bool" {
			added.NoOptDefVal = "true"
		}
	}
	return &Flags{name: name, set: set}, set.Parse(args)
}

// given returns the texts of a flag.
func (f *Flags) given(name string) []string { return f.set.Lookup(name).Value.(*value).given }

// Last returns the last text of a flag, or a default.
func (f *Flags) Last(name, fallback string) string {
	if all := f.given(name); len(all) > 0 {
		return all[len(all)-1]
	}
	return fallback
}

// Listed returns the elements of a flag that may be repeated and whose texts may be lists with commas.
func (f *Flags) Listed(name string) (out []string) {
	for _, text := range f.given(name) {
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}

// Truth returns the value of a flag without an argument.
func (f *Flags) Truth(name string, fallback bool) bool {
	yes, err := strconv.ParseBool(f.Last(name, strconv.FormatBool(fallback)))
	return err == nil && yes
}

// Notice names the flags that were given and have no effect here.
func (f *Flags) Notice(stderr io.Writer) {
	var idle []string
	f.set.Visit(func(one *pflag.Flag) {
		if !slices.Contains(f.effective, one.Name) {
			idle = append(idle, "--"+one.Name)
		}
	})
	if len(idle) > 0 {
		fmt.Fprintf(stderr, "%s: flags without an effect in leat-server: %s\n", f.name, strings.Join(idle, " "))
	}
}

// usage prints what --help prints.
func (f *Flags) usage(stdout io.Writer) {
	fmt.Fprintf(stdout, "This %s is part of leat-server, which serves a Kubernetes API from memory. Some flags have no effect.\n\n"+
		"Usage:\n  %s [flags]\n\nFlags:\n%s", f.name, f.name, f.set.FlagUsages())
}
