package reflector

import (
	"context"
	"strings"

	"github.com/leatproject/leat/api"
)

// A probe asks for an object that there is not. An object that has this name after all costs its own bytes, no more.
const (
	probeName      = "leat-probe"
	probeNamespace = "default"
)

// probe asks for the version of the server with a consistent list, from which it takes nothing else. A version from before
// the one reached is the truth: the server went back.
func (r *Reflector[T]) probe(ctx context.Context, s state) error {
	ctx, dog := newWatchdog(ctx)
	defer dog.stop()
	dog.after(probeTimeout)
	o := r.options(s)
	o.FieldSelector = narrow(o.FieldSelector, r.lw.Resource().Namespaced)
	o.OnUndecodable = func(*api.UndecodableError) error { return nil }
	meta, err := r.lw.List(ctx, o, func(T) error { return nil })
	switch {
	case err != nil && stalled(ctx):
		return ErrStalled
	case err == nil && older(meta.ResourceVersion, s.version):
		return errRewound
	}
	return err
}

// narrow adds to a field selector what makes it select one name. kube-apiserver then reads one key instead of looking for
// the first object that the selectors select, which may be the whole collection; without a namespace in the request it
// needs the one in the selector for that. The selectors themselves stay, because a client may be allowed no other list.
func narrow(selector string, namespaced bool) string {
	if strings.Contains(selector, "metadata.name=") {
		return selector // one name already, which may be the only one that is allowed
	}
	terms := []string{selector, "metadata.name=" + probeName, "metadata.namespace=" + probeNamespace}
	if !namespaced {
		terms = terms[:2]
	}
	if selector == "" {
		terms = terms[1:]
	}
	return strings.Join(terms, ",")
}
