package runner

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/leatproject/leat/bench/server"
	"github.com/leatproject/leat/bench/subject"
)

// resources measures programs with many custom resources.
func resources(z Sizes) Row {
	spec := subject.Spec{Work: subject.Resources, Resources: z.Resources, Objects: 20, Form: subject.Unstructured}
	packed := spec
	packed.Form = subject.Packed
	return Row{
		Name: "resources", Title: "Many custom resources", Quick: true, Rounds: min(3, z.Rounds),
		Columns: []string{"RSS MB", "live MB", "goroutines", "connections", "dialed", "wall s", "cpu s"},
		Note: "500 custom resources (a quick run has 100) with 20 objects of 2 KB each and an informer each, over TLS and HTTP/2, as maps; packed: as the bytes of the server. From before " +
			"the client exists until every informer has its objects. The connections are those that are open afterwards, and those that were opened. controller-runtime has no limit of requests.",
		Entrants: []Entrant{
			{Label: "leat, unstructured", Program: leat, Spec: spec},
			{Label: "leat, unstructured packed", Program: leat, Spec: packed},
			{Label: "controller-runtime, unstructured", Program: controllerRuntime, Spec: spec},
		},
	}
}

// turnWithResources runs one turn of an entrant with a server of custom resources.
func (r *run) turnWithResources(ctx context.Context, e Entrant) (metrics subject.Metrics, err error) {
	s, err := server.NewCustom(e.Spec.Resources, e.Spec.Namespaces, e.Spec.Objects)
	if err != nil {
		return nil, err
	}
	_, stop := background(ctx, s.Run)
	defer func() { err = errors.Join(err, stop()) }()
	e.Spec.URL, e.Spec.CA = s.URL(), s.Authority()
	p, err := launch(ctx, filepath.Join(r.Binaries, e.Program), e.Spec, e.Env)
	if err != nil {
		return nil, err
	}
	report, err := p.wait(nil)
	if err != nil {
		return nil, err
	}
	report.Metrics["dialed"] = float64(s.Accepted())
	return report.Metrics, nil
}
