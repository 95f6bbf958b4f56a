package compare

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"
)

// restingTurns is the number of turns of the garbage collector in which the answer of a step must not change.
const restingTurns = 3

// rest repeats a step until its answer is the same in several turns of the garbage collector. A controller has no sign
// that it is done. But the garbage collector takes objects in the order of their events, so it has looked at what the
// earlier steps changed when it deletes an object that was created after them.
func (r *run) rest(ctx context.Context, s *Step) (*Answer, error) {
	once := *s
	once.Rest = false
	var last *Answer
	for same := 0; same < restingTurns; {
		if err := r.turn(ctx); err != nil {
			return nil, fmt.Errorf("wait for the garbage collector: %w", err)
		}
		a, err := r.step(ctx, &once)
		if err != nil {
			return nil, err
		}
		if last != nil && a.Text == last.Text && reflect.DeepEqual(items(a.Value), items(last.Value)) {
			same++
		} else {
			same = 0
		}
		last = a
	}
	return last, nil
}

// turn creates a ConfigMap whose owner does not exist, and waits until it is deleted.
func (r *run) turn(ctx context.Context) error {
	r.turns++
	owner := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"00000000-0000-4000-8000-%012d"}`, r.turns)
	create := &Step{
		Method: http.MethodPost, Path: "/api/v1/namespaces/$ns/configmaps", User: "admin",
		Body: `{"metadata":{"name":"turn","ownerReferences":[` + owner + `]}}`,
	}
	if a, err := r.send(ctx, create); err != nil || a.Status != http.StatusCreated {
		return fmt.Errorf("create an object without an owner: %w, %+v", err, a)
	}
	get := &Step{Method: http.MethodGet, Path: create.Path + "/turn", User: "admin"}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		a, err := r.send(ctx, get)
		if err != nil || a.Status == http.StatusNotFound {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// items returns the items of a list, because the version of the list grows with every write. Of another value, it
// returns all.
func items(value any) any {
	if list, ok := value.(map[string]any); ok && list["items"] != nil {
		return list["items"]
	}
	return value
}
