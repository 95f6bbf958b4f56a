//go:build !race

package shard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/explore"
	"github.com/leatproject/leat/internal/fixture"
)

// rightLease is the duration of a Lease on a right clock.
const rightLease = 60 * time.Second

// objects are the hashes of two objects. Two members have one each.
var objects = [2]uint64{1 << 62, 3 << 62}

type lease = coordinationv1.Lease

// group is a server with Leases, and two processes.
type group struct {
	leases    map[string]*lease
	version   int
	processes [2]*process
	rates     [2]float64 // of the clocks
	faults    int        // that may still happen
	deaf      bool       // a variant: a list contains only the Lease of the member that asks
}

// process is a replica. The exploration calls its steps, and each of its requests waits for an answer.
type process struct {
	g              *group
	i, life        int
	m              *Member
	leases         *apiclient.TypedClient[*lease]
	ctx            context.Context
	cancel         context.CancelFunc
	ended, stopped bool      // as by SIGKILL and SIGSTOP; a timer fires then, but it only notices what the clock shows
	running        bool      // a step has not ended
	began, next    time.Time // the running step, and the one that is due next
	answered       string    // what the step has got
	asked          *call     // it has no answer yet
	late           *call     // a write that nobody waits for, and that may still arrive
	working        int       // on objects[working-1], or 0
	end            func()    // of the work
}

// call is a request. Without a name, it is a list.
type call struct {
	method, name string
	lease        *lease // what it writes, or the UID and version of what it deletes
	until        time.Time
	handled      bool // reply is on its way
	reply        answer
	answers      chan answer
}

// answer is what a request gets: a reason why it failed, or Leases.
type answer struct {
	failure metav1.StatusReason
	leases  []*lease
}

const noAnswer metav1.StatusReason = "no answer"

func (g *group) local(i int, d time.Duration) time.Duration {
	return time.Duration(float64(d) / g.rates[i])
}

// processes are not in use. A client takes longer to make than to use.
var processes = sync.Pool{New: func() any {
	p := &process{}
	client, err := apiclient.New(apiclient.Config{Host: "http://server.memory", Transport: fixture.RoundTripper(p.RoundTrip)})
	if err != nil {
		panic(err)
	}
	p.leases = apiclient.NewTyped[*lease](client, leases, "default")
	return p
}}

// start starts a process, which makes a step at once.
func (g *group) start(i, life int, late *call) *process {
	p := processes.Get().(*process)
	*p = process{g: g, i: i, life: life, leases: p.leases, next: time.Now(), late: late, m: &Member{
		leases: p.leases, log: zap.NewNop(), joined: make(chan struct{}), wake: make(chan struct{}, 1), seen: observations{}, works: map[*work]struct{}{},
		o: Options{Namespace: "default", Group: "mill", Field: hashrange.UID, LeaseDuration: g.local(i, rightLease), RenewDeadline: g.local(i, rightLease*3/4), RetryPeriod: g.local(i, rightLease/4)},
	}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.m.begin()
	g.processes[i] = p
	return p
}

// restore makes a group equal to one in which no step runs, as it was at a time.
func (g *group) restore(from *group, at time.Time) {
	g.leases, g.version = maps.Clone(from.leases), from.version
	now := func(t time.Time) time.Time { return time.Now().Add(t.Sub(at)) }
	for i, p := range from.processes {
		q := g.start(i, p.life, nil)
		q.next = now(p.next)
		q.m.lease, q.m.name, q.m.published, q.m.held, q.m.admitted = p.m.lease, p.m.name, p.m.published, p.m.held, p.m.admitted
		for name, s := range p.m.seen {
			q.m.seen[name] = observation{s.uid, s.version, now(s.at)}
		}
		q.m.tenure = &tenure{deadline: now(p.m.tenure.deadline)}
		close(q.m.joined)
		q.m.timer.Reset(time.Until(q.m.tenure.deadline))
		q.stopped = p.stopped
	}
}

// RoundTrip runs on the goroutine of the step. A process that is stopped does not notice the end of the context.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.ended {
		return nil, io.ErrClosedPipe
	}
	if p.m.name == "" { // the list before a join; the name must not be random
		p.m.name = fmt.Sprintf("mill-%d-%d-%d", p.i, p.life, p.g.version)
	}
	var body struct {
		lease
		Preconditions *metav1.Preconditions `json:"preconditions"`
	}
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, err
		}
	}
	if o := body.Preconditions; o != nil {
		body.UID, body.ResourceVersion = *o.UID, *o.ResourceVersion
	}
	c := &call{method: r.Method, lease: &body.lease, answers: make(chan answer)}
	c.name = cmp.Or(c.lease.Name, strings.TrimPrefix(path.Base(r.URL.Path), "leases"))
	c.until, _ = r.Context().Deadline()
	p.asked = c
	a := <-c.answers
	if a.failure == noAnswer {
		return nil, errors.Join(r.Context().Err(), io.ErrClosedPipe) // an error that no client repeats
	}
	list := coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{Kind: "LeaseList", APIVersion: "coordination.k8s.io/v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, l := range a.leases { // the clock of the member measures the same time in other seconds
		seconds := int32(p.g.local(p.i, rightLease) / time.Second)
		list.Items = append(list.Items, *l.DeepCopy())
		list.Items[len(list.Items)-1].Spec.LeaseDurationSeconds = &seconds
	}
	var out any = list
	code := http.StatusOK
	if a.failure != "" {
		code = http.StatusConflict // the reason counts
		out = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: a.failure, Code: int32(code)}
	} else if c.name != "" {
		out = list.Items[0]
	}
	text, err := json.Marshal(out)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
}

// all returns the Leases in the order of their names.
func (g *group) all() []*lease {
	return slices.SortedFunc(maps.Values(g.leases), func(a, b *lease) int { return strings.Compare(a.Name, b.Name) })
}

// handle lets the server handle a request of a process.
func (g *group) handle(i int, c *call) answer {
	now := g.leases[c.name]
	switch {
	case c.name == "":
		return answer{leases: slices.DeleteFunc(g.all(), func(l *lease) bool { return g.deaf && !strings.HasPrefix(l.Name, fmt.Sprintf("mill-%d-", i)) })}
	case c.method == http.MethodPost && now != nil:
		return answer{failure: metav1.StatusReasonAlreadyExists}
	case c.method != http.MethodPost && now == nil:
		return answer{failure: metav1.StatusReasonNotFound}
	case c.lease.UID != "" && (c.lease.ResourceVersion != now.ResourceVersion || c.lease.UID != now.UID):
		return answer{failure: metav1.StatusReasonConflict}
	case c.method == http.MethodGet:
		return answer{leases: []*lease{now}}
	case c.method == http.MethodDelete:
		delete(g.leases, c.name)
		return answer{leases: []*lease{now}}
	}
	g.version++
	l := c.lease.DeepCopy()
	if l.ResourceVersion = fmt.Sprintf("@%d@", g.version); now == nil {
		l.UID = types.UID("u" + l.ResourceVersion)
	}
	g.leases[c.name] = l
	return answer{leases: []*lease{l}}
}

func (p *process) step() {
	p.running, p.began, p.answered, p.m.wake = true, time.Now(), "", make(chan struct{}, 1)
	go func() {
		over := p.m.step(p.ctx)
		p.running, p.next = false, time.Now().Add(p.m.o.RetryPeriod)
		if over {
			p.kill()
		}
	}()
	synctest.Wait()
}

// get lets an answer reach the process.
func (p *process) get(a answer) {
	c := p.asked
	if p.asked = nil; !c.handled && a.failure == noAnswer && c.method != http.MethodGet {
		p.late = c
	}
	p.answered += fmt.Sprint(time.Since(p.began), a.failure, textOf(a.leases...))
	c.answers <- a
	synctest.Wait()
}

// kill ends the process. A write on its way may still arrive.
func (p *process) kill() {
	p.ended, p.working = true, 0
	p.m.timer.Stop()
	p.cancel()
	if p.asked != nil {
		p.get(answer{failure: noAnswer})
	}
}

// may reports whether the process may write for an object: by new work, or by work that runs.
func (p *process) may(object int) bool {
	return !p.ended && p.m.tenure.valid() && (p.working == object+1 || p.m.admitted.Contains(objects[object]))
}

func (p *process) runs() bool { return !p.ended && !p.stopped }

// due returns the time until the process acts by itself.
func (p *process) due() time.Duration {
	at := p.next
	switch {
	case p.asked != nil:
		at = p.asked.until
	case len(p.m.wake) > 0:
		at = time.Now()
	}
	if t := p.m.tenure; t.valid() && t.deadline.Before(at) {
		at = t.deadline
	}
	return time.Until(at)
}

// wait returns the time until a process acts by itself, and whether a request is open.
func (g *group) wait() (d time.Duration, open bool) {
	d = time.Hour
	for _, p := range g.processes {
		if open = open || p.asked != nil; p.runs() {
			d = min(d, p.due())
		}
	}
	return d, open
}

func (g *group) check() error {
	for object := range objects {
		if g.processes[0].may(object) && g.processes[1].may(object) {
			return fmt.Errorf("two members work on the object %d", object)
		}
	}
	return nil
}

// rests reports whether each member has one object, and nothing is in progress.
func (g *group) rests() bool {
	for _, p := range g.processes {
		if !p.runs() || p.running || p.ctx.Err() != nil || p.working > 0 || p.late != nil || len(p.m.wake) > 0 ||
			!p.m.pending.Empty() || !p.m.held.Equal(p.m.admitted) || p.may(0) == p.may(1) {
			return false
		}
	}
	return g.processes[0].may(0) != g.processes[1].may(0)
}

func textOf(all ...*lease) (text string) {
	for _, l := range all {
		if l != nil {
			text += fmt.Sprint(l.Name, l.ResourceVersion, l.UID, l.Annotations)
		}
	}
	return text
}

func (c *call) text() string {
	if c == nil {
		return "-"
	}
	return fmt.Sprint(c.method, c.name, textOf(c.lease), c.handled, c.reply.failure, textOf(c.reply.leases...))
}

// parts returns what the server and each member have.
func (g *group) parts() []string {
	lines := []string{"server: Leases of the members"}
	for _, l := range g.all() {
		lines[0] += " " + strings.Split(l.Name, "-")[1]
	}
	for i, p := range g.processes {
		may := map[[2]bool]string{{false, false}: "no object", {true, false}: "the object 0", {false, true}: "the object 1", {true, true}: "both objects"}
		is := fmt.Sprintf("member %d: may write for %s", i, may[[2]bool{p.may(0), p.may(1)}])
		if p.asked != nil {
			is += map[string]string{"GET": "; asks for Leases", "POST": "; creates its Lease", "PUT": "; writes its Lease", "DELETE": "; deletes a Lease"}[p.asked.method]
		}
		lines = append(lines, is)
	}
	return lines
}

var versions = regexp.MustCompile(`@\d+@`)

func (g *group) key(to []byte) []byte {
	text := fmt.Sprint(g.faults, textOf(g.all()...))
	left := func(t time.Time) time.Duration { return max(-1, time.Until(t)) }
	for _, p := range g.processes {
		if text += fmt.Sprint("#", p.ended, p.late.text()); p.ended {
			continue
		}
		m := p.m
		text += fmt.Sprint(p.stopped, p.running, p.ctx.Err(), p.working, p.asked.text(), m.name, m.published, m.pending, m.held, m.admitted,
			textOf(m.lease), len(m.wake), left(p.next))
		if p.running {
			text += fmt.Sprint(p.answered, time.Since(p.began))
		}
		if m.tenure != nil {
			text += fmt.Sprint(m.tenure.lost, left(m.tenure.deadline))
		}
		for _, name := range slices.Sorted(maps.Keys(m.seen)) {
			s := m.seen[name]
			text += fmt.Sprint(name, s.version, s.uid, min(time.Since(s.at), m.o.LeaseDuration))
		}
	}
	known := map[string]string{} // only the identity of a version matters
	return append(to, versions.ReplaceAllStringFunc(text, func(version string) string {
		if known[version] == "" {
			known[version] = fmt.Sprint("@", len(known))
		}
		return known[version]
	})...)
}

// stepsOf returns the steps of one process.
func stepsOf(i int) (steps []explore.Step[*group]) {
	add := func(fair bool, faults int, name string, can func(*process) bool, do func(*process)) {
		steps = append(steps, explore.Step[*group]{
			Name: fmt.Sprintf(name, i), Fair: fair, Can: func(g *group) bool { return g.faults >= faults && can(g.processes[i]) },
			Do: func(g *group) { g.faults -= faults; do(g.processes[i]) },
		})
	}
	asks := func(p *process) bool { return p.runs() && p.asked != nil && p.due() > 0 && !p.asked.handled }
	add(true, 0, "member %d continues", func(p *process) bool { return p.stopped && !p.ended }, func(p *process) { p.stopped = false })
	add(true, 0, "member %d starts again", func(p *process) bool { return p.ended }, func(p *process) { p.g.start(i, p.life+1, p.late); processes.Put(p) })
	add(true, 0, "the server handles a late write of member %d", func(p *process) bool { return p.late != nil }, func(p *process) { p.g.handle(i, p.late); p.late = nil })
	add(true, 0, "the work of member %d ends", func(p *process) bool { return p.working > 0 }, func(p *process) { p.working = 0; p.end() })
	add(true, 0, "the server answers member %d", asks, func(p *process) { p.get(p.g.handle(i, p.asked)) })
	add(true, 0, "the late answer reaches member %d", func(p *process) bool { return p.runs() && p.asked != nil && p.asked.handled && p.due() > 0 }, func(p *process) { p.get(p.asked.reply) })
	add(true, 0, "a request of member %d ends without an answer", func(p *process) bool { return p.runs() && p.asked != nil && p.due() <= 0 }, func(p *process) { p.get(answer{failure: noAnswer}) })
	add(true, 0, "member %d makes a step", func(p *process) bool { return p.runs() && !p.running && p.due() <= 0 }, (*process).step)
	add(false, 1, "the server handles the request of member %d, and the answer is late", func(p *process) bool { return !p.ended && p.asked != nil && !p.asked.handled }, func(p *process) { p.asked.reply, p.asked.handled = p.g.handle(i, p.asked), true })
	add(false, 1, "the server refuses the request of member %d", asks, func(p *process) { p.get(answer{failure: metav1.StatusReasonInternalError}) })
	add(false, 1, "member %d is killed", func(p *process) bool { return !p.ended }, (*process).kill)
	add(false, 1, "member %d is stopped", (*process).runs, func(p *process) { p.stopped = true })
	add(false, 1, "member %d is to leave", func(p *process) bool { return p.runs() && p.m.tenure != nil && p.ctx.Err() == nil }, func(p *process) { p.cancel(); p.m.wakeUp() })
	for object, hash := range objects {
		add(false, 0, fmt.Sprintf("member %%d begins to work on the object %d", object), func(p *process) bool { return p.runs() && p.working == 0 && p.may(object) },
			func(p *process) {
				p.working = object + 1
				_, p.end, _ = p.m.Begin(context.Background(), hash)
			})
	}
	return steps
}

// groupMachine returns two members whose clocks have these rates.
func groupMachine(t *testing.T, deaf bool, faults, fairSteps int, rates ...float64) explore.Machine[*group] {
	passes := explore.Fair("time passes", func(g *group) bool {
		d, open := g.wait()
		return d > 0 && d < time.Hour && (!open || g.faults > 0)
	}, func(g *group) {
		d, open := g.wait()
		if open {
			g.faults-- // a request or an answer takes long
		}
		fixture.Pass(d)
	})
	empty := group{rates: [2]float64(rates), deaf: deaf, faults: faults}
	m := explore.Machine[*group]{
		New:   func() *group { g := empty; g.leases = map[string]*lease{}; return &g },
		Steps: slices.Concat(stepsOf(0), stepsOf(1), []explore.Step[*group]{passes}),
		Key:   (*group).key, Check: (*group).check, Good: (*group).rests, FairSteps: fairSteps, Lines: (*group).parts,
		Close: func(g *group) {
			for _, p := range g.processes {
				p.kill()
				processes.Put(p)
			}
		},
	}
	begin := func(g *group) { g.start(0, 0, nil); g.start(1, 0, nil) }
	// follow takes fair steps until a condition holds. A member that was stopped or has ended stays so.
	follow := func(g *group, until func() bool) {
		for n := 0; !until(); n++ {
			if n == 1000 {
				panic("shard: the first states are not reached")
			}
			k := slices.IndexFunc(m.Steps, func(s explore.Step[*group]) bool {
				return s.Fair && !strings.HasSuffix(s.Name, "continues") && !strings.HasSuffix(s.Name, "starts again") && s.Can(g)
			})
			m.Steps[k].Do(g)
		}
	}
	first := func(name string, prepare func(g *group), then func(g *group)) {
		from := &group{rates: empty.rates, leases: map[string]*lease{}}
		var at time.Time
		synctest.Test(t, func(*testing.T) {
			begin(from)
			prepare(from)
			at = time.Now()
			for _, p := range from.processes {
				if len(p.m.wake) > 0 {
					p.next = at
				}
			}
			from.processes[0].kill()
			from.processes[1].kill()
		})
		m.First = append(m.First, explore.Step[*group]{Name: name, Do: func(g *group) { g.restore(from, at); then(g) }})
	}
	nothing := func(*group) {}
	first("a group at rest", func(g *group) { follow(g, g.rests) }, nothing)
	first("a group at rest; member 1 was stopped after a renewal, and its Lease expires soon", func(g *group) {
		p, m := g.processes[1], g.processes[0].m
		follow(g, func() bool { return g.rests() && time.Until(p.m.tenure.deadline) == p.m.o.RenewDeadline })
		p.stopped = true
		follow(g, func() bool { d, _ := g.wait(); return d > 0 && time.Since(m.seen[p.m.name].at)+d >= m.o.LeaseDuration })
	}, nothing)
	alone := func(g *group) { // member 0 has all objects, and member 1 has joined
		p := g.processes[0]
		g.processes[1].kill()
		follow(g, func() bool { return !p.running && p.may(0) && p.may(1) })
		q := g.start(1, 1, nil)
		follow(g, func() bool { return !q.running && q.m.lease != nil })
	}
	first("member 0 has all objects, and member 1 has joined", alone, nothing)
	m.First = append(m.First, explore.Step[*group]{Name: "nothing, and member 0 joins", Do: func(g *group) {
		begin(g)
		follow(g, func() bool { p := g.processes[0]; return p.m.lease != nil && !p.running })
	}})
	// begins lets a process begin a step: its renewal and its list have answers.
	begins := func(g *group, p *process) {
		fixture.Pass(max(0, p.due()))
		p.step()
		p.get(g.handle(p.i, p.asked))
		p.get(g.handle(p.i, p.asked))
	}
	first("member 0 has all objects and works on the object 1; it sees that member 1 has joined", alone, func(g *group) {
		p := g.processes[0]
		p.working = 2
		_, p.end, _ = p.m.Begin(context.Background(), objects[1])
		begins(g, p)
	})
	first("member 1 had the first seat and left; member 0 is about to write that it takes it, and member 1 joins again", func(g *group) {
		q := g.processes[1]
		g.processes[0].kill()
		follow(g, func() bool { return !q.running && q.may(0) && q.may(1) })
		p := g.start(0, 1, nil)
		follow(g, g.rests)
		q.cancel()
		q.m.wakeUp()
		follow(g, func() bool { return q.ended && !p.running })
	}, func(g *group) {
		g.processes[1].kill()
		begins(g, g.processes[0])
		begins(g, g.start(1, 1, nil))
	})
	return m
}

// TestExplore makes every order of steps, works, lost and late requests, stops, kills and leaves, with clocks whose
// rates differ by less than the factor 60/45. The fewer faults may happen, the deeper it gets. The last two first
// states are close to what only a claim of another member, and only work that runs, prevents.
func TestExplore(t *testing.T) {
	o := explore.Options{Depth: 80, States: 1_500, Around: explore.InBubbles(t)}
	m := groupMachine(t, false, 0, 0, 1.2, 1)
	all := m.First
	m.First = all[:4]
	t.Run("without faults", func(t *testing.T) { explore.Test(t, m.World(), o) })
	o.States = 400
	m.First = all[4:]
	t.Run("claims and work", func(t *testing.T) { explore.Test(t, m.World(), o) })
	o.States = 1_500
	t.Run("with a fault", func(t *testing.T) { explore.Test(t, groupMachine(t, false, 1, 0, 1.2, 1).World(), o) })
	o.States = 100 // each is followed to a good end
	t.Run("good ends", func(t *testing.T) { explore.Test(t, groupMachine(t, false, 2, 250, 1.2, 1).World(), o) })
}

// The exploration must find that lists without the Leases of others break the protocol, and so do clocks beyond the
// bound.
func TestExploreFindsBrokenRules(t *testing.T) {
	o := explore.Options{Depth: 80, States: 5_000, Around: explore.InBubbles(t)}
	for name, v := range map[string]struct {
		rule string
		m    explore.Machine[*group]
	}{
		"unseen_leases":   {"A list contains only the Lease of the member that asks.", groupMachine(t, true, 0, 0, 1, 1)},
		"distant_members": {"The clocks of the members have the rates 1.5 and 0.75. A member stops after 45 seconds on its clock, and others wait for 60 seconds on theirs.", groupMachine(t, false, 0, 0, 1.5, 0.75)},
	} {
		v.m.Show(t, o, "two members work on", "../../docs/counterexamples/"+name+".txt", v.rule, "Two members never hold a range at the same time, if the speeds of their clocks differ by less than the factor 60/45 (package shard, 2).")
	}
}
