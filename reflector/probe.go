package reflector

import (
	"context"
	"strings"

	"github.com/leatproject/leat/api"
)

// A probe selects an object that does not exist. If an object has this name anyway, it costs its own bytes.
const (
	probeName      = "leat-probe"
	probeNamespace = "default"
)

// probe requests the version of the server with a consistent list, and uses nothing else of the answer. It returns
// errRolledBack if the version is older than the one reached.
func (r *Reflector[T]) probe(ctx context.Context, s *state) error {
	ctx, dog := newWatchdog(ctx)
	defer dog.stop()
	dog.after(probeTimeout)
	o := r.options(s)
	o.FieldSelector = selectOneName(o.FieldSelector, r.lw.Resource().Namespaced)
	o.OnUndecodable = func(*api.UndecodableError) error { return nil }
	meta, err := r.lw.List(ctx, o, func(T) error { return nil })
	switch {
	case err != nil && stalled(ctx):
		return ErrStalled
	case err == nil && older(meta.ResourceVersion, s.version):
		return errRolledBack
	}
	return err
}

// selectOneName adds terms to a field selector so that it selects one name. kube-apiserver then reads one key instead
// of the whole collection; without a namespace in the request it needs the namespace in the selector for that. The
// selector itself stays, because the server may not allow the client any other list.
func selectOneName(selector string, namespaced bool) string {
	if strings.Contains(selector, "metadata.name=") {
		return selector // it selects one name already, perhaps the only one that the server allows
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
