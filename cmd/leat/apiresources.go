package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/internal/visible"
)

// apiResourcesOptions are the flags of leat api-resources.
type apiResourcesOptions struct {
	server     kubeconfig.Options
	group      *string // nil for all
	namespaced *bool   // nil for both
	verbs      []string
	categories []string
	sortBy     string
	output     string
	noHeaders  bool
}

func newAPIResources() *cobra.Command {
	var o apiResourcesOptions
	var group string
	var namespaced bool
	cmd := &cobra.Command{
		Use:   "api-resources",
		Short: "List the resources of a cluster",
		Long: `List the resources of a cluster, each in the version that the server prefers, with their short names. If the server of
an aggregated API does not answer, its resources are missing unless the cluster has cached them. The command then lists
the other resources, and fails with an error that names the documents it could not read.

Output formats: a table; wide, with verbs and categories; name; json, an APIResourceList.`,
		Example: `  leat api-resources --namespaced --verbs list,watch -o name
  leat api-resources --api-group apps -o wide
  leat api-resources --categories all --sort-by kind`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("api-group") {
				o.group = &group
			}
			if cmd.Flags().Changed("namespaced") {
				o.namespaced = &namespaced
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	connectFlags(cmd, &o.server)
	f := cmd.Flags()
	f.StringVar(&group, "api-group", "", "only those of this group; empty is the core group (default: all)")
	f.BoolVar(&namespaced, "namespaced", true, "only those with objects in namespaces, or with =false only the others (default: both)")
	f.StringSliceVar(&o.verbs, "verbs", nil, "only those with all of these verbs, such as list,watch")
	f.StringSliceVar(&o.categories, "categories", nil, "only those in all of these categories, such as all")
	f.StringVar(&o.sortBy, "sort-by", "", "sort by name or kind (default: by group, then by name)")
	f.StringVarP(&o.output, "output", "o", "", "output format: wide, name or json (default: a table)")
	f.BoolVar(&o.noHeaders, "no-headers", false, "leave out the first line of the table")
	return cmd
}

func (o apiResourcesOptions) run(ctx context.Context, stdout io.Writer) error {
	if o.sortBy != "" && o.sortBy != "name" && o.sortBy != "kind" {
		return usagef("--sort-by %q: it is name or kind", o.sortBy)
	}
	if !slices.Contains([]string{"", "wide", "name", "json"}, o.output) {
		return usagef("--output %q: the formats are wide, name and json", o.output)
	}
	client, _, err := connect(ctx, o.server, nil)
	if err != nil {
		return endOrError(ctx, err)
	}
	defer client.CloseIdleConnections()
	all, err := discovery.New(client, discovery.Options{}).All(ctx)
	var incomplete *discovery.IncompleteError
	if err != nil && !errors.As(err, &incomplete) {
		return endOrError(ctx, err)
	}
	if err := o.print(stdout, o.choose(all)); err != nil {
		return endOrError(ctx, fmt.Errorf("write: %w", err))
	}
	if incomplete != nil {
		return fmt.Errorf("the list is not complete: %w", first(incomplete.Unwrap()))
	}
	return nil
}

// maxReasons is the number of documents that an error names.
const maxReasons = 10

// first joins the first errors, and counts the others.
func first(all []error) error {
	if more := len(all) - maxReasons; more > 0 {
		all = append(slices.Clone(all[:maxReasons]), fmt.Errorf("and %d more", more))
	}
	return errors.Join(all...)
}

// choose filters and sorts the resources.
func (o apiResourcesOptions) choose(all []discovery.APIResource) []discovery.APIResource {
	chosen := slices.DeleteFunc(all, func(r discovery.APIResource) bool {
		switch {
		case !r.Preferred, len(r.Verbs) == 0, !r.Can(o.verbs...):
			return true
		case o.group != nil && *o.group != r.Group, o.namespaced != nil && *o.namespaced != r.Namespaced:
			return true
		}
		return slices.ContainsFunc(o.categories, func(c string) bool { return !slices.Contains(r.Categories, c) })
	})
	key := map[string]func(discovery.APIResource) string{
		"":     func(r discovery.APIResource) string { return r.Group },
		"name": func(r discovery.APIResource) string { return r.Plural },
		"kind": func(r discovery.APIResource) string { return r.Kind },
	}[o.sortBy]
	slices.SortStableFunc(chosen, func(a, b discovery.APIResource) int {
		return cmp.Or(strings.Compare(key(a), key(b)), strings.Compare(a.Plural, b.Plural))
	})
	return chosen
}

func (o apiResourcesOptions) print(w io.Writer, all []discovery.APIResource) error {
	switch o.output {
	case "name":
		for _, r := range all {
			if _, err := visible.Fprintf(w, "%s\n", r); err != nil {
				return err
			}
		}
		return nil
	case "json":
		return printAPIResourceList(w, all)
	default:
		return o.table(w, all)
	}
}

// table prints the columns of kubectl api-resources.
func (o apiResourcesOptions) table(w io.Writer, all []discovery.APIResource) error {
	var rows [][]string
	row := func(cells ...string) {
		if o.output != "wide" {
			cells = cells[:5]
		}
		rows = append(rows, cells)
	}
	if !o.noHeaders {
		row("NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "VERBS", "CATEGORIES")
	}
	list := func(s []string) string { return strings.Join(s, ",") }
	for _, r := range all {
		row(r.Plural, list(r.ShortNames), r.GroupVersion().String(), fmt.Sprint(r.Namespaced), r.Kind, list(r.Verbs), list(r.Categories))
	}
	return printTable(w, rows)
}

func printAPIResourceList(w io.Writer, all []discovery.APIResource) error {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, APIResources: []metav1.APIResource{}}
	for _, r := range all {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Plural, SingularName: r.Singular, Namespaced: r.Namespaced, Group: r.Group, Version: r.Version, Kind: r.Kind,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "    ")
	return e.Encode(list)
}
