package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// The objects: as many mills in as many namespaces, and at most so many parts of each.
const (
	namespaces = 6
	millCount  = 60
	maxParts   = 4
	textLength = 200
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 10)) }

func namespaceOf(n int) string { return fmt.Sprint("ns-", n%namespaces) }

func millKey(n int) api.Key {
	return api.Key{Namespace: namespaceOf(n), Name: fmt.Sprint("mill-", n)}
}

func uid(round, n int) types.UID {
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", round, n))
}

// text is one of a hundred, all of the same length, because a decoder remembers strings that repeat.
func text(r *rand.Rand) string {
	return strings.Repeat(fmt.Sprintf("%02d, ", r.IntN(100)), textLength/4)
}

// churn changes objects and injects faults until its time is over. It returns whether a fault lied, and what was
// injected, by kind.
func (s *soak) churn(ctx context.Context, v *visitors, d time.Duration) (lied bool, injected map[string][]*testserver.Injection, err error) {
	injected = map[string][]*testserver.Injection{}
	names := slices.Sorted(maps.Keys(s.kinds))
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		select {
		case <-tick.C:
		case <-over.C:
			return lied, injected, nil
		case <-ctx.Done():
			return lied, injected, nil // the round still settles, so that the soak ends in good order
		}
		switch n := s.rand.IntN(1000); {
		case n < 700:
			err = s.write()
		case n < 760:
			name := names[s.rand.IntN(len(names))]
			lied = lied || slices.Contains(undetected, name)
			injected[name] = append(injected[name], s.world.server.Inject(s.kinds[name][s.rand.IntN(len(s.kinds[name]))]))
		case n < 764:
			i := s.world.server.Inject(faults.Fault{Effect: faults.Outage{}})
			injected[outage] = append(injected[outage], i)
			time.AfterFunc(rand.N(300*time.Millisecond), i.Remove)
		case n < 780:
			s.healSome(injected)
		case n < 850:
			err = v.come()
		case n < 900:
			v.goAway()
		}
		if err != nil {
			return lied, injected, err
		}
	}
}

// healSome removes half of the faults.
func (s *soak) healSome(injected map[string][]*testserver.Injection) {
	for _, all := range injected {
		for _, i := range all {
			if rand.IntN(2) == 0 {
				i.Remove()
			}
		}
	}
}

// write creates, changes or deletes a mill, replaces it by another of the same name, or deletes one of its parts.
func (s *soak) write() error {
	n := s.rand.IntN(millCount)
	key := millKey(n)
	server := s.world.server
	switch what := s.rand.IntN(12); {
	case what < 8:
		return s.put(n, s.rand.IntN(maxParts+1))
	case what == 8:
		return ignoreNotFound(server.Delete(mills, key))
	case what == 9:
		if err := ignoreNotFound(server.Delete(mills, key)); err != nil {
			return err
		}
		return s.put(n, s.rand.IntN(maxParts+1))
	default:
		return ignoreNotFound(server.Delete(parts, api.Key{Namespace: key.Namespace, Name: fmt.Sprintf("%s-%d", key.Name, s.rand.IntN(maxParts))}))
	}
}

// put creates or changes a mill.
func (s *soak) put(n, count int) error {
	key, content := millKey(n), text(s.rand)
	_, err := s.world.server.Edit(mills, key, func(u *unstructured.Unstructured) {
		u.Object["spec"] = map[string]any{"parts": int64(count), "text": content}
	})
	if !apierrors.IsNotFound(err) {
		return err
	}
	m := &mill{Spec: millSpec{Parts: count, Text: content}}
	m.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	_, err = s.world.server.Create(mills, m)
	return err
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
