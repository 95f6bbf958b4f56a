package writer

import (
	"context"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// Act runs an action between mutating and validating admission. The caller does not hold the lock.
func (wr *Writer) Act(ctx context.Context, s *Submission, tree object.Tree, do registry.Action) (object.Tree, error) {
	s.def = s.Collection.Definition()
	tree, err := wr.managed(s, nil, tree)
	if err != nil {
		return nil, err
	}
	a := s.attributes(operationCreate, nil, tree)
	if s.Admission != nil {
		err := s.Admission.Mutate(ctx, a)
		s.Warnings = append(s.Warnings, a.Warnings...)
		a.Warnings = nil
		if err != nil {
			return nil, err
		}
	}
	return do(ctx, registry.Act{Operation: s.operation(), Key: s.Key, Tree: a.Object, Validate: func() error {
		if s.Admission == nil {
			return nil
		}
		err := s.Admission.Validate(ctx, a)
		s.Warnings = append(s.Warnings, a.Warnings...)
		return err
	}})
}
