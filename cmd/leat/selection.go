package main

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/leatproject/leat/api"
)

// selection is the objects that a command looks at.
type selection struct {
	allNamespaces  bool
	labels, fields string
}

// addFlags adds the flags. verb is what the command does in all namespaces.
func (s *selection) addFlags(cmd *cobra.Command, verb string) {
	f := cmd.Flags()
	f.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, verb+" all namespaces")
	f.StringVarP(&s.labels, "selector", "l", "", "label selector, such as app=web,tier!=cache")
	f.StringVar(&s.fields, "field-selector", "", "field selector, such as spec.nodeName=node-1")
}

// check checks the flags. namespace is the value of -n.
func (s *selection) check(namespace string) error {
	if s.allNamespaces && namespace != "" {
		return usagef("-n and -A exclude each other")
	}
	if _, err := labels.Parse(s.labels); err != nil {
		return usagef("--selector %q: %w", s.labels, err)
	}
	if _, err := fields.ParseSelector(s.fields); err != nil {
		return usagef("--field-selector %q: %w", s.fields, err)
	}
	return nil
}

func (s *selection) selector() api.Selector { return api.Selector{Labels: s.labels, Fields: s.fields} }

// namespaceOf returns the namespace of a request for a resource: empty stands for all, and for no namespace.
func (s *selection) namespaceOf(r api.Resource, namespace string) string {
	if s.allNamespaces || !r.Namespaced {
		return ""
	}
	return namespace
}
