package runner

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leatproject/leat/bench/subject"
)

const (
	fleetAgents  = 1_000 // node agents, each with its own connection
	podsOfNode   = 4
	fleetOpening = 32 // agents that join at once, except in a restart
	// The pauses of an agent that tries to join add up to 28 to 55 s: each is between half of its length and the whole.
	joinAttempts   = 12
	joinTimeout    = 30 * time.Second // of one attempt
	firstJoinPause = 50 * time.Millisecond
	maxJoinPause   = 8 * time.Second
)

// fleetRow is the row about node agents.
func fleetRow(servers []Entrant) Row {
	return Row{
		Name: "fleet", Title: "1,000 node agents at one API server", Entrants: servers, Rounds: 1,
		Columns: []string{
			"join cpu ms", "KB/agent", "change cpu ms", "restart cpu ms", "restart s", "list any cpu ms", "list newest cpu ms", "answer KB",
		},
		Note: "1,000 agents with a TLS connection each watch the four pods of their node, with a field selector. Processor time and " +
			"memory are those of the server's processes, for each agent, change or list. A join is a handshake and a WatchList. " +
			"Each change is of one pod, so one agent gets it. In a restart all agents join at once. The lists are of one node's " +
			"pods, of any version (a watch cache answers) and of the newest. The answer is what one agent reads in a join.",
	}
}

// nodePods is a kind of pods, one on each node.
func nodePods(number int) apiKind {
	return apiKind{
		"pod", "/api/v1/namespaces/default/pods",
		fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod%d-%%[1]d","labels":{"app":"web"}},"spec":{"nodeName":"node-%%[1]d",`, number) + podSpec[1:] + `}`,
	}
}

// agent is one watch of the pods of a node.
type agent struct {
	client *http.Client
	end    context.CancelFunc // ends the watch
	body   io.ReadCloser
	in     *bufio.Reader
	read   int // bytes of the initial state
}

var initialEnd = []byte(`"k8s.io/initial-events-end":"true"`)

const ofNode = "fieldSelector=spec.nodeName%%3Dnode-%d"

// join opens the watch of a node and reads the initial state.
func (s *apiServer) join(ctx context.Context, node int) (*agent, error) {
	ctx, end := context.WithCancel(ctx)
	timeout := time.AfterFunc(joinTimeout, end)
	defer timeout.Stop()
	own := *s
	own.client = s.another()
	path := fmt.Sprintf("/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&"+ofNode, node)
	res, err := own.open(ctx, http.MethodGet, path, nil)
	if err != nil {
		end()
		own.client.CloseIdleConnections()
		return nil, err
	}
	a := &agent{client: own.client, end: end, body: res.Body, in: bufio.NewReader(res.Body)}
	for {
		line, err := a.in.ReadBytes('\n')
		if err != nil {
			a.leave()
			return nil, fmt.Errorf("the watch of node %d ended after %d bytes: %w", node, a.read+len(line), err)
		}
		a.read += len(line)
		if bytes.Contains(line, initialEnd) {
			return a, nil
		}
	}
}

func (a *agent) leave() {
	a.end()
	_ = a.body.Close()
	a.client.CloseIdleConnections()
}

// joinPersistently joins, and tries again after a pause when that fails, as every client does: a server that gets all
// agents at once closes connections. The pauses grow.
func (s *apiServer) joinPersistently(ctx context.Context, node int) (*agent, error) {
	pause := firstJoinPause
	for attempt := 1; ; attempt++ {
		a, err := s.join(ctx, node)
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case attempt == joinAttempts:
			return nil, fmt.Errorf("%d attempts: %w", attempt, err)
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2+1))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		pause = min(2*pause, maxJoinPause)
	}
}

// joinAll opens the watches of all nodes, a number of them at once.
func (s *apiServer) joinAll(ctx context.Context, n, atOnce int) ([]*agent, error) {
	agents := make([]*agent, n)
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i := range agents {
		g.Go(func() (err error) {
			agents[i], err = s.joinPersistently(ctx, i)
			return err
		})
	}
	return agents, g.Wait()
}

func leaveAll(agents []*agent) {
	for _, a := range agents {
		if a != nil {
			a.leave()
		}
	}
}

// fleetOf returns the work of measuring a number of agents. A step that fails has no figure.
func fleetOf(agents int) func(context.Context, *apiServer) (subject.Metrics, error) {
	return func(ctx context.Context, s *apiServer) (subject.Metrics, error) {
		for i := range podsOfNode {
			if err := s.create(ctx, nodePods(i), 0, agents); err != nil {
				return nil, err
			}
		}
		m := subject.Metrics{}
		return m, errors.Join(s.fleetLists(ctx, agents, m), s.fleetWatches(ctx, agents, m))
	}
}

func (s *apiServer) fleetLists(ctx context.Context, agents int, m subject.Metrics) error {
	for name, version := range map[string]string{"any": "resourceVersion=0&", "newest": ""} {
		seconds, err := s.spent(func() error {
			for i := range agents {
				if _, err := s.do(ctx, http.MethodGet, fmt.Sprintf("/api/v1/pods?"+version+ofNode, i), nil); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		m["list "+name+" cpu ms"] = seconds * 1e3 / float64(agents)
	}
	return nil
}

func (s *apiServer) fleetWatches(ctx context.Context, n int, m subject.Metrics) error {
	size, err := s.rss()
	if err != nil {
		return err
	}
	var agents []*agent
	defer func() { leaveAll(agents) }()
	measured := func(name string, do func() error) error {
		seconds, err := s.spent(do)
		if err == nil {
			m[name] = seconds * 1e3 / float64(n)
		}
		return err
	}
	if err := measured("join cpu ms", func() (err error) { agents, err = s.joinAll(ctx, n, fleetOpening); return err }); err != nil {
		return err
	}
	after, err := s.rss()
	if err != nil {
		return err
	}
	m["KB/agent"], m["answer KB"] = (after-size)*1e3/float64(n), float64(agents[0].read)/1e3
	if err := measured("change cpu ms", func() error { return s.changeEach(ctx, agents) }); err != nil {
		return err
	}
	leaveAll(agents)
	began := time.Now()
	err = measured("restart cpu ms", func() (err error) { agents, err = s.joinAll(ctx, n, n); return err })
	if err == nil {
		m["restart s"] = time.Since(began).Seconds()
	}
	return err
}

// changeEach changes one pod of each node, and waits until each agent has received the change.
func (s *apiServer) changeEach(ctx context.Context, agents []*agent) error {
	for i := range agents {
		path := fmt.Sprintf("/api/v1/namespaces/default/pods/pod0-%d", i)
		if _, err := s.do(ctx, http.MethodPatch, path, []byte(`{"metadata":{"labels":{"app":"changed"}}}`)); err != nil {
			return err
		}
	}
	for _, a := range agents {
		for {
			line, err := a.in.ReadBytes('\n')
			if err != nil {
				return err
			}
			if bytes.Contains(line, []byte(`"type":"MODIFIED"`)) {
				break
			}
		}
	}
	return nil
}
