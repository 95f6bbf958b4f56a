package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/testserver"
)

// Timeline is a timeline of whole objects.
type Timeline = recording.Timeline[*unstructured.Unstructured]

// Change is a change in it.
type Change = recording.Change[*unstructured.Unstructured]

// Options returns the options of a server for a Player: it begins before all versions of a recording, and refuses
// writes, which would change the recorded state.
func Options() testserver.Options {
	return testserver.Options{FirstVersion: 4, Authorize: readOnly}
}

var errReadOnly = errors.New("this server replays a recording, which cannot be changed")

func readOnly(r testserver.Request) error {
	switch r.Verb {
	case "get", "list", "watch":
		return nil
	default:
		return errReadOnly
	}
}

// Player plays the changes of a recording on a test server. One goroutine at a time uses it.
type Player struct {
	server  *testserver.Server
	changes []Change
	at      int
}

// New plays the first lists of a recording on a server, after it has defined the resources that the server does not
// have. Next or Run plays the changes after them. The server should be new, and have Options.
func New(server *testserver.Server, t *Timeline) (*Player, error) {
	for _, r := range t.Resources() {
		if _, err := server.List(r, ""); err == nil {
			continue
		}
		if r.Kind == "" {
			return nil, fmt.Errorf("replay: the recording does not tell the kind of %s", r)
		}
		server.Register(r)
	}
	p := &Player{server: server, changes: t.Ordered()}
	for p.at < len(p.changes) && p.changes[p.at].Initial {
		if _, err := p.Next(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Left returns the number of changes that are not played yet.
func (p *Player) Left() int { return len(p.changes) - p.at }

// Next plays the next change and returns it. It panics if there is no change left.
func (p *Player) Next() (Change, error) {
	c := p.changes[p.at]
	p.at++
	object, err := c.Object()
	if err == nil {
		err = p.server.Play(c.Resource, c.Type, object, c.ResourceVersion)
	}
	if err != nil {
		return c, fmt.Errorf("replay: %s %s: %w", c.Resource, api.FormatKey(c.Key), err)
	}
	return c, nil
}

// longest bounds a pause in nanoseconds, so that it is a time.Duration. It is 146 years.
const longest = 1 << 62

// Run plays the changes that are left, with their pauses divided by speed, which is above 0. An infinite speed has no
// pauses. Run returns nil after the last change, and the error of ctx if that ends first. played may be nil; it gets
// each change.
func (p *Player) Run(ctx context.Context, speed float64, played func(Change)) error {
	if !(speed > 0) {
		return fmt.Errorf("replay: the speed %v is not above 0", speed)
	}
	if p.Left() == 0 {
		return nil
	}
	begin, first := time.Now(), p.changes[p.at].Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for p.Left() > 0 {
		pause := float64(p.changes[p.at].Time.Sub(first)) / speed
		due := begin.Add(time.Duration(min(pause, longest)))
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		c, err := p.Next()
		if err != nil {
			return err
		}
		if played != nil {
			played(c)
		}
	}
	return nil
}
