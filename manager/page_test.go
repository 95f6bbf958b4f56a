package manager_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/manager"
)

// book is a StatePage that notes what it shows.
type book struct {
	err error

	mu    sync.Mutex // guards shown
	shown map[string]any
}

func (b *book) Register(name string, r any) (remove func(), err error) {
	if b.err != nil {
		return nil, b.err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown[name] = r
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.shown, name)
	}, nil
}

func (b *book) Handler(debug bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s with debug %t", r.URL.Path, debug)
	})
}

func TestPageShowsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		page := &book{shown: map[string]any{}}
		p.run(t, manager.Options{Elector: p.elector, Admin: manager.AdminOptions{Page: page}}, func() {
			for _, part := range []any{p.maps, p.factory, p.controller, p.recorder, p.elector} {
				require.Contains(t, values(page.shown), part)
			}
			require.IsType(t, (*manager.Manager)(nil), page.shown["manager"])
		})
		require.Len(t, page.shown, 1, "only the manager is left")
	})
}

func values(m map[string]any) (all []any) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

func TestPageIsServed(t *testing.T) {
	m := newManager(t, manager.Options{})
	page := &book{shown: map[string]any{}}
	for _, debug := range []bool{true, false} {
		h := m.AdminHandler(manager.AdminOptions{Page: page, Debug: debug})
		code, text := ask(h, "/page/state")
		require.Equal(t, 200, code)
		require.Equal(t, fmt.Sprintf("/state with debug %t", debug), text)
		code, _ = ask(h, "/page")
		require.Equal(t, http.StatusTemporaryRedirect, code)
	}
	code, _ := ask(m.AdminHandler(manager.AdminOptions{}), "/page/")
	require.Equal(t, 404, code)
}

func TestPageThatFails(t *testing.T) {
	_, err := manager.New(manager.Options{Admin: manager.AdminOptions{Page: &book{err: io.ErrUnexpectedEOF}}})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	page := &book{shown: map[string]any{}}
	m := newManager(t, manager.Options{Admin: manager.AdminOptions{Page: page}, Metrics: failing{}})
	require.ErrorContains(t, m.Add(newParts(t).maps), "no metrics")
	require.Len(t, page.shown, 1, "only the manager is left")
}

// failing is a MetricsRegistry without room.
type failing struct{}

func (failing) Register(string, any) (func(), error) { return nil, errors.New("no metrics") }
