package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cmd/leat/internal/endpoint"
	"github.com/leatproject/leat/cmd/leat/internal/fielddiff"
	"github.com/leatproject/leat/internal/visible"
	"github.com/leatproject/leat/observe/recording"
)

// showOptions are the flags of leat show.
type showOptions struct {
	namespace string
	at        string
	diff      string
	object    string
	output    string
	page      string
}

// recorded is a timeline of whole objects.
type recorded = recording.Timeline[*unstructured.Unstructured]

// recordedChange is a change in it.
type recordedChange = recording.Change[*unstructured.Unstructured]

func newShow() *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show FILE [RESOURCE] [--at TIME | --diff TIME TIME | --object NAMESPACE/NAME | --page]",
		Short: "Show what a recording has: the state at a time, a difference, or the history of an object",
		Long: `Show what a recording of leat record has. Without a resource, print the recorded times, requests and resources. With
one, print its objects as the client knew them at the end of the recording, or at a time.

A TIME is a time of day of the recording (12:03:05 or 12:03:05.250, in the local time zone), a time with a date
(2026-03-01T12:03:05Z), or a distance from the first record (+90s). It is the end of its last digit: 12:03:05 includes
the changes of this second, and 12:03:05.250 those of this millisecond. A distance includes its millisecond. The client
knew no object before the end of the first list: for a time before that, leat show shows the state at that end.

With --page, serve a page with a slider over the recorded time, until an interrupt. It shows what the client knew at
each moment: its streams, objects, events, and one object with its states and changed fields.

A file that is cut off or damaged is shown as far as possible. The exit code is then 1, and the last line says what is
missing. With --page, the first lines and the page say it.`,
		Example: `  leat show shop.rec
  leat show shop.rec pods -n shop --at 12:03:05
  leat show shop.rec pods --diff 12:03:05 12:04:00
  leat show shop.rec pods --object shop/web-0
  leat show shop.rec pods --at +90s -o json
  leat show shop.rec --page`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s needs the file of a recording", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], args[1:], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.namespace, "namespace", "n", "", "show only this namespace (default: all)")
	f.StringVar(&o.at, "at", "", "time of the state (default: the end of the recording)")
	f.StringVar(&o.diff, "diff", "", "show what changed between this time and a second one, which follows as an argument")
	f.StringVar(&o.object, "object", "", "show the history of one object: NAMESPACE/NAME, or NAME without a namespace")
	f.StringVarP(&o.output, "output", "o", "table", "output format of a state: table, name or json")
	f.StringVar(&o.page, "page", "", "serve a page of the recording, on a free port or at an address: --page=127.0.0.1:8090 (default: none)")
	f.Lookup("page").NoOptDefVal = endpoint.FreePort
	return cmd
}

// validate checks the flags. It returns the resource, and the second time of --diff.
func (o showOptions) validate(args []string) (resource, until string, err error) {
	if o.diff != "" && len(args) == 2 {
		until, args = args[1], args[:1]
	}
	modes := 0
	for _, set := range []bool{o.at != "", o.diff != "", o.object != ""} {
		if set {
			modes++
		}
	}
	if o.page != "" {
		if len(args) > 0 || o.diff != "" || o.object != "" || o.namespace != "" || o.output != "table" {
			return "", "", usagef("--page shows the whole recording; it can begin at a time with --at")
		}
		return "", "", nil
	}
	switch {
	case modes > 1:
		return "", "", usagef("--at, --diff and --object exclude each other")
	case len(args) > 1:
		return "", "", usagef("leat show takes a file and one resource, and got %q too", args[1])
	case len(args) == 0 && (modes > 0 || o.namespace != ""):
		return "", "", usagef("name a resource, such as pods, behind the file")
	case o.diff != "" && until == "":
		return "", "", usagef("--diff needs two times: --diff 12:03:05 12:04:00")
	case o.object != "" && o.namespace != "":
		return "", "", usagef("--object has the namespace already: --object NAMESPACE/NAME")
	case !slices.Contains([]string{"table", "name", "json"}, o.output):
		return "", "", usagef("--output %q: the formats are table, name and json", o.output)
	}
	if len(args) == 1 {
		resource = args[0]
	}
	return resource, until, nil
}

func (o showOptions) run(ctx context.Context, path string, args []string, stdout, stderr io.Writer) error {
	resource, until, err := o.validate(args)
	if err != nil {
		return err
	}
	file, err := recording.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	out := newLines(stdout)
	if o.page != "" {
		return o.servePage(ctx, out, path, file)
	}
	if resource == "" {
		err = o.summary(ctx, out, file)
	} else {
		err = o.show(ctx, out, stderr, file, resource, until)
	}
	if err == nil {
		err = out.flush()
	}
	return errors.Join(err, incomplete(path, file)) // what is missing may be the reason of the other error
}

// incomplete returns an error that names the parts that cannot be read.
func incomplete(path string, file *recording.File) error {
	problems := file.Problems()
	if len(problems) == 0 {
		return nil
	}
	text := problems[0].Error()
	if more := len(problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more parts)", more)
	}
	return fmt.Errorf("%s: %s; the rest was read", path, text)
}

// summary prints what a file has.
func (o showOptions) summary(ctx context.Context, out *lines, file *recording.File) error {
	timeline, err := recording.Load[*unstructured.Unstructured](ctx, file.Reader, nil)
	if err != nil {
		return err
	}
	first, last := file.Span()
	if first.IsZero() {
		out.printf("The recording is empty.\n")
		return nil
	}
	out.printf("From      %s\nTo        %s (%s)\n", stamp(first), stamp(last), last.Sub(first).Round(time.Millisecond))
	if !file.Complete() {
		out.printf("State     without an end: the recorder was killed, or still runs\n")
	}
	for _, note := range timeline.Notes() {
		out.printf("Note      %s\n", note)
	}
	out.printf("\n")
	rows := [][]string{{"RESOURCE", "KIND", "OBJECTS", "CHANGES", "LISTS", "WATCHES", "FAILED"}}
	for _, r := range withRefused(timeline.Resources(), file.Streams()) {
		lists, watches, failed := 0, 0, map[int]int{}
		for _, s := range file.Streams() {
			switch {
			case s.Group != r.Group || s.Plural != r.Plural || s.Version != r.Version:
			case s.Code != http.StatusOK && s.Code != http.StatusSwitchingProtocols:
				failed[s.Code]++
			case s.Watch:
				watches++
			default:
				lists++
			}
		}
		changes := 0
		for _, c := range timeline.Changes() {
			if c.Resource == r && !c.Initial {
				changes++
			}
		}
		rows = append(rows, []string{r.String(), r.Kind, fmt.Sprint(len(timeline.At(r, last))), fmt.Sprint(changes), fmt.Sprint(lists), fmt.Sprint(watches), failures(failed)})
	}
	out.table(rows)
	return nil
}

// withRefused adds the resources of which a file has requests, but no answer with data.
func withRefused(all []api.Resource, streams []*recording.Stream) []api.Resource {
	all = slices.Clone(all)
	for _, s := range streams {
		same := func(r api.Resource) bool {
			return r.Group == s.Group && r.Version == s.Version && r.Plural == s.Plural
		}
		if !slices.ContainsFunc(all, same) {
			all = append(all, s.Resource())
		}
	}
	return all
}

// failures returns the number of requests by status code, such as "2 × 403, 1 × 410".
func failures(counts map[int]int) string {
	var all []string
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%d × %d", counts[code], code))
	}
	if len(all) == 0 {
		return "0"
	}
	return strings.Join(all, ", ")
}

// show prints a state, a difference or a history.
func (o showOptions) show(ctx context.Context, out *lines, stderr io.Writer, file *recording.File, name, until string) error {
	timeline, r, err := loadResource(ctx, file, name)
	if err != nil {
		return err
	}
	for _, note := range timeline.Notes() {
		visible.Fprintf(stderr, "leat: %s\n", note)
	}
	switch {
	case o.object != "":
		return o.history(out, timeline, r)
	case o.diff != "":
		from, err := stateMoment(stderr, "--diff", o.diff, timeline, r)
		if err != nil {
			return err
		}
		to, err := stateMoment(stderr, "--diff", until, timeline, r)
		if err != nil {
			return err
		}
		if to.Before(from) {
			return usagef("--diff: %s is after %s; a time is the end of its last digit", o.diff, until)
		}
		return o.difference(out, timeline.At(r, from), timeline.At(r, to))
	}
	_, at := timeline.Span()
	if o.at != "" {
		if at, err = stateMoment(stderr, "--at", o.at, timeline, r); err != nil {
			return err
		}
	}
	return o.state(out, timeline.At(r, at))
}

// loadResource reads the changes of a resource, which the user calls by its plural, its kind, or either with its group.
func loadResource(ctx context.Context, file *recording.File, name string) (*recorded, api.Resource, error) {
	var found []api.Resource
	var names []string
	all, err := recording.Load[*unstructured.Unstructured](ctx, file.Reader, nil)
	if err != nil {
		return nil, api.Resource{}, err
	}
	for _, r := range all.Resources() {
		names = append(names, r.String())
		if called(r, name) {
			found = append(found, r)
		}
	}
	switch {
	case len(found) == 1:
		return all, found[0], nil
	case len(found) > 1:
		return nil, api.Resource{}, usagef("%q is ambiguous: %v", name, found)
	case len(names) == 0:
		return nil, api.Resource{}, fmt.Errorf("the recording has no lists and no watches")
	}
	return nil, api.Resource{}, usagef("the recording has no %s; it has %s", name, strings.Join(names, ", "))
}

// shortNames are those of kubectl for the most common resources. A recording has only plural names and kinds.
var shortNames = map[string]string{
	"po": "pods", "deploy": "deployments", "rs": "replicasets", "sts": "statefulsets", "ds": "daemonsets", "svc": "services",
	"cm": "configmaps", "no": "nodes", "ns": "namespaces", "sa": "serviceaccounts", "ev": "events", "ep": "endpoints",
	"pvc": "persistentvolumeclaims", "pv": "persistentvolumes", "cj": "cronjobs", "ing": "ingresses", "crd": "customresourcedefinitions",
}

func called(r api.Resource, name string) bool {
	name, group, hasGroup := strings.Cut(strings.ToLower(name), ".")
	if long := shortNames[name]; long != "" {
		name = long
	}
	if hasGroup && group != r.Group && group != strings.TrimSuffix(r.Version+"."+r.Group, ".") {
		return false
	}
	return name == r.Plural || name == strings.ToLower(r.Kind)
}

// state prints objects.
func (o showOptions) state(out *lines, all []recordedChange) error {
	all = slices.DeleteFunc(all, func(c recordedChange) bool { return !o.selects(c.Key) })
	switch o.output {
	case "json":
		items := make([]*unstructured.Unstructured, 0, len(all))
		for _, c := range all {
			object, err := c.Object()
			if err != nil {
				return err
			}
			items = append(items, object)
		}
		return out.json(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	case "name":
		for _, c := range all {
			out.printf("%s\n", api.FormatKey(c.Key))
		}
		return nil
	}
	rows := [][]string{{"NAMESPACE", "NAME", "VERSION", "CHANGED"}}
	for _, c := range all {
		changed := clock(c.Time)
		if c.Initial {
			changed = "before"
		}
		rows = append(rows, []string{c.Key.Namespace, c.Key.Name, c.ResourceVersion, changed})
	}
	out.table(rows)
	return nil
}

func (o showOptions) selects(key api.Key) bool {
	return o.namespace == "" || key.Namespace == o.namespace
}

// difference prints the objects that differ between two states.
func (o showOptions) difference(out *lines, before, after []recordedChange) error {
	states := map[api.Key][2]*recordedChange{}
	var keys []api.Key
	for i, state := range [][]recordedChange{before, after} {
		for j := range state {
			c := &state[j]
			pair, known := states[c.Key]
			if !known {
				keys = append(keys, c.Key)
			}
			pair[i] = c
			states[c.Key] = pair
		}
	}
	slices.SortFunc(keys, func(a, b api.Key) int { return strings.Compare(a.String(), b.String()) })
	equal := true
	for _, key := range keys {
		pair := states[key]
		if !o.selects(key) || pair[0] != nil && pair[1] != nil && pair[0].ResourceVersion == pair[1].ResourceVersion {
			continue
		}
		equal = false
		switch {
		case pair[0] == nil:
			out.printf("ADDED     %s\n", api.FormatKey(key))
		case pair[1] == nil:
			out.printf("DELETED   %s\n", api.FormatKey(key))
		default:
			out.printf("MODIFIED  %s\n", api.FormatKey(key))
			if err := printFields(out, *pair[0], *pair[1]); err != nil {
				return err
			}
		}
	}
	if equal {
		out.printf("Nothing changed.\n")
	}
	return nil
}

// printFields prints the fields that differ.
func printFields(out *lines, before, after recordedChange) error {
	a, err := before.Object()
	if err != nil {
		return err
	}
	b, err := after.Object()
	if err != nil {
		return err
	}
	for _, line := range fielddiff.Lines(a.Object, b.Object) {
		out.printf("  %s\n", line)
	}
	return nil
}

// history prints all changes of one object.
func (o showOptions) history(out *lines, timeline *recorded, r api.Resource) error {
	key, err := api.ParseKey(o.object)
	if err != nil {
		return usagef("--object %q: write it as NAMESPACE/NAME, or NAME", o.object)
	}
	var last *recordedChange
	found := false
	for _, c := range timeline.Changes() {
		if c.Resource != r || c.Key != key {
			continue
		}
		found = true
		note := ""
		switch {
		case c.Initial:
			note = "  (in the first list)"
		case c.FinalStateUnknown:
			note = "  (seen by a later list; the watch missed it)"
		}
		out.printf("%s  %-8s  version %s%s\n", clock(c.Time), c.Type, c.ResourceVersion, note)
		if _, modified, _ := c.Before(); modified && last != nil {
			if err := printFields(out, *last, c); err != nil {
				return err
			}
		}
		last = &c
	}
	if !found {
		return fmt.Errorf("the recording has no %s %s", r, api.FormatKey(key))
	}
	return nil
}

// lines writes lines, and keeps the first error.
type lines struct {
	w   io.Writer
	err error
}

func newLines(w io.Writer) *lines { return &lines{w: w} }

func (l *lines) printf(format string, args ...any) {
	if l.err == nil {
		_, l.err = visible.Fprintf(l.w, format, args...)
	}
}

func (l *lines) table(rows [][]string) {
	if l.err == nil {
		l.err = printTable(l.w, rows)
	}
}

func (l *lines) json(v any) error {
	e := json.NewEncoder(l.w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	return e.Encode(v)
}

func (l *lines) flush() error {
	if l.err != nil {
		return fmt.Errorf("write: %w", l.err)
	}
	return nil
}
