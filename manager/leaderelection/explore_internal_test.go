//go:build !race

package leaderelection

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/explore"
	"github.com/leatproject/leat/internal/fixture"
)

// These are the times of the lease on a right clock.
const (
	rightLease    = 60 * time.Second
	rightDeadline = 40 * time.Second
	rightRetry    = 15 * time.Second
)

// stored is the lease. Its version is zero if it does not exist. A holder is 16 × the candidate and its life; zero
// means no holder.
type stored struct{ holder, version, seconds uint8 }

// wireRequest is a request, as the server sees it.
type wireRequest struct {
	write, create bool
	lease         stored // what it writes; its version is the precondition
}

func (r wireRequest) String() string {
	switch {
	case !r.write:
		return "a read"
	case r.lease.holder == 0:
		return "a release"
	}
	return "a write that holds the lease"
}

// wireAnswer is the answer to a request.
type wireAnswer struct {
	at    time.Duration // since the attempt began
	code  int16         // 410 is the conflict of a creation
	lease stored
}

type phase uint8

const (
	campaigns phase = iota
	leads
	releases // the work has ended, and the lease is given back
	ended
)

// candidate is a replica. Times are ages, or times until something happens.
type candidate struct {
	phase    phase
	life     int
	observed stored
	changed  time.Duration // since the observed lease changed
	renewed  time.Duration // since the start of the last renewal
	wait     time.Duration // until the next attempt, or the deadline
	stopped  bool          // as by SIGSTOP

	// A request that has no answer yet is played again from the beginning of its attempt.
	open    bool
	elapsed time.Duration // since the attempt began
	limit   time.Duration // when the attempt ends without an answer
	script  [5]wireAnswer
	answers int
	request wireRequest
	handled bool // the server has handled it; reply is on its way
	reply   wireAnswer
	old     wireRequest // a write that the candidate has given up, and that may still arrive
}

// term is a state of the world.
type term struct {
	lease      stored
	candidates [2]candidate
	rates      [2]float64
	faults     int
	variant    leaderVariant
	wrong      string
	last       string
}

// leaderVariant is a rule that a test breaks, outside of the package.
type leaderVariant uint8

const (
	_                leaderVariant = iota
	countsFromAnswer               // a lease counts from the answer, not from the request
	releasesEarly                  // the lease is released before the work has ended
)

func (w term) local(i int, d time.Duration) time.Duration {
	return time.Duration(float64(d) / w.rates[i])
}

func (w term) identity(i int) string { return fmt.Sprintf("%d.%d", i, w.candidates[i].life) }

func holderOf(identity string) uint8 {
	var i, life int
	if n, _ := fmt.Sscanf(identity, "%d.%d", &i, &life); n < 2 {
		return 0
	}
	return uint8(16*(i+1) + life)
}

func holderName(holder uint8) string {
	if holder == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", holder/16-1, holder%16)
}

// seconds returns the duration of the lease as the clock of a candidate measures it.
func (w term) seconds(i int, right uint8) int32 {
	if right == uint8(rightLease/time.Second) {
		return int32(w.local(i, rightLease) / time.Second)
	}
	return int32(right)
}

func (w term) object(i int, s stored) *coordinationv1.Lease {
	if s.version == 0 {
		return nil
	}
	holder, seconds := holderName(s.holder), w.seconds(i, s.seconds)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mill", UID: "u", ResourceVersion: fmt.Sprint(s.version)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds},
	}
}

func (w term) storedOf(i int, l *coordinationv1.Lease) (s stored) {
	if l == nil {
		return s
	}
	if l.Spec.HolderIdentity != nil {
		s.holder = holderOf(*l.Spec.HolderIdentity)
	}
	if l.Spec.LeaseDurationSeconds != nil {
		s.seconds = uint8(*l.Spec.LeaseDurationSeconds)
	}
	if s.seconds == uint8(w.local(i, rightLease)/time.Second) {
		s.seconds = uint8(rightLease / time.Second)
	}
	_, _ = fmt.Sscan(l.ResourceVersion, &s.version)
	return s
}

// errOpen ends an attempt whose request has no answer yet.
var errOpen = errors.New("the request is still open")

// player is the network of one attempt.
type player struct {
	w       *term
	i       int
	base    time.Time // the attempt began
	next    int       // answer of the script
	timeout bool      // the attempt ends without an answer
	asked   *wireRequest
}

// RoundTrip answers a request of the script.
func (p *player) RoundTrip(r *http.Request) (*http.Response, error) {
	c := &p.w.candidates[p.i]
	if p.asked != nil {
		return nil, errOpen
	}
	if p.next == c.answers {
		request, err := p.read(r)
		p.asked = &request
		<-time.After(time.Until(p.base.Add(c.elapsed)))
		if err == nil && p.timeout {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return nil, errors.Join(errOpen, err)
	}
	a := c.script[p.next]
	p.next++
	<-time.After(time.Until(p.base.Add(a.at)))
	body := map[int16]string{500: "InternalError", 404: "NotFound", 409: "Conflict", 410: "AlreadyExists"}[a.code]
	code := int(a.code)
	if code == 410 {
		code = 409
	}
	if body != "" {
		body = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, body, code)
	} else {
		body = fmt.Sprintf(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"namespace":"default","name":"mill","uid":"u","resourceVersion":"%d"},"spec":{"holderIdentity":%q,"leaseDurationSeconds":%d}}`,
			a.lease.version, holderName(a.lease.holder), p.w.seconds(p.i, a.lease.seconds))
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (p *player) read(r *http.Request) (out wireRequest, err error) {
	if r.Method == http.MethodGet {
		return out, nil
	}
	var l coordinationv1.Lease
	if err := json.NewDecoder(r.Body).Decode(&l); err != nil {
		return out, err
	}
	return wireRequest{write: true, create: r.Method == http.MethodPost, lease: p.w.storedOf(p.i, &l)}, nil
}

// network is the client of all candidates. The context of a request has its player.
var network = func() *apiclient.Client {
	client, err := apiclient.New(apiclient.Config{Host: "http://server.memory", Transport: fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
		return r.Context().Value(playerKey{}).(*player).RoundTrip(r)
	})})
	if err != nil {
		panic(err)
	}
	return client
}()

type playerKey struct{}

// elector returns the real elector of a candidate, at the beginning of its attempt, which is now.
func (w *term) elector(i int) *Elector {
	c := &w.candidates[i]
	o := Options{
		Namespace: "default", Name: "mill", Identity: w.identity(i), LeaseDuration: w.local(i, rightLease),
		RenewDeadline: w.local(i, rightDeadline), RetryPeriod: w.local(i, rightRetry),
	}
	now := time.Now()
	return &Elector{
		o: o, log: zap.NewNop(), leading: c.phase == leads, renewed: now.Add(c.elapsed - c.renewed),
		lock: lock{
			o: o, leases: apiclient.NewTyped[*coordinationv1.Lease](network, leases, o.Namespace),
			observed: w.object(i, c.observed), changedAt: now.Add(c.elapsed - c.changed),
		},
	}
}

// play runs the attempt in progress of a candidate, as far as it has answers.
func (w term) play(i int, timeout bool) term {
	c := &w.candidates[i]
	p := &player{w: &w, i: i, base: time.Now(), timeout: timeout}
	e := w.elector(i)
	ctx := context.WithValue(context.Background(), playerKey{}, p)
	c.limit = e.attemptDeadline(p.base).Sub(p.base)
	var held bool
	var lost, err error
	switch c.phase {
	case leads:
		held, lost = e.renewOnce(ctx)
	case releases:
		c.limit = e.o.RenewDeadline
		e.release(ctx)
	default:
		held, err = e.attempt(ctx)
	}
	if p.asked != nil && !timeout { // the attempt goes on when the request has its answer
		c.open, c.request, c.handled = true, *p.asked, false
		return w
	}
	now := time.Now()
	if took := now.Sub(p.base); took > c.elapsed {
		w.wrong = fmt.Sprintf("an attempt takes %v, and not %v", took, c.elapsed)
	}
	if c.open && timeout && c.request.write && !c.handled {
		c.old = c.request
	}
	before := c.observed
	c.observed = w.storedOf(i, e.lock.observed)
	if c.observed != before || c.observed.version == 0 {
		c.changed = now.Sub(e.lock.changedAt)
	}
	c.renewed = now.Sub(e.renewed)
	took := c.elapsed
	c.open, c.handled, c.elapsed, c.limit, c.answers, c.script, c.request, c.reply = false, false, 0, 0, 0, [5]wireAnswer{}, wireRequest{}, wireAnswer{}
	switch {
	case c.phase == releases:
		c.phase = ended
	case lost != nil:
		c.phase = ended
	case c.phase == leads, held:
		if c.phase == campaigns {
			took = 0 // the first tick comes a whole period after the election
		}
		if c.phase = leads; held && w.variant == countsFromAnswer {
			c.renewed = 0
		}
		c.wait = min(max(0, e.o.RetryPeriod-took), max(0, e.o.RenewDeadline-c.renewed))
	default:
		c.wait = e.o.RetryPeriod // the shortest pause; next offers the longest too
		if left := e.lock.expiresIn(); left > 0 {
			c.wait = min(c.wait, left)
		}
	}
	if why := cmp.Or(lost, err); why != nil {
		w.last += fmt.Sprintf(" (%v)", why)
	}
	return w
}

// leading reports whether the elector counts itself as the leader.
func (w *term) leading(i int) bool {
	c := w.candidates[i]
	if c.phase == releases && w.variant == releasesEarly {
		return true
	}
	e := &Elector{o: Options{RenewDeadline: w.local(i, rightDeadline)}, leading: c.phase == leads, renewed: time.Now().Add(-c.renewed)}
	return e.Leading()
}

func (w term) check() error {
	switch {
	case w.wrong != "":
		return errors.New(w.wrong)
	case w.leading(0) && w.leading(1):
		return errors.New("two candidates lead")
	}
	for i, c := range w.candidates {
		if c.phase == leads && !c.stopped && c.due() > 0 && c.renewed > w.local(i, rightDeadline) {
			return fmt.Errorf("candidate %d works past its deadline", i)
		}
	}
	return nil
}

func (w term) describe(format string, args ...any) term {
	w.last = fmt.Sprintf(format, args...)
	return w
}

// handle lets the server handle a request.
func (w *term) handle(r wireRequest) (a wireAnswer) {
	a = wireAnswer{code: 200}
	switch {
	case !r.write && w.lease.version == 0:
		a.code = 404
	case r.write && r.create && w.lease.version > 0:
		a.code = 410
	case r.write && !r.create && r.lease.version != w.lease.version:
		a.code = 409
	case r.write:
		version := w.lease.version + 1
		w.lease = r.lease
		w.lease.version = version
	}
	a.lease = w.lease
	return a
}

// due returns the time until a candidate acts.
func (c *candidate) due() time.Duration {
	if c.open {
		return c.limit - c.elapsed
	}
	return c.wait
}

// acts reports whether a candidate does something by itself.
func (c *candidate) acts() bool { return c.phase != ended && !c.stopped }

// pass lets time pass until a candidate acts.
func (w term) pass() (term, bool) {
	d := time.Duration(-1)
	for i := range w.candidates {
		if c := &w.candidates[i]; c.acts() && (d < 0 || c.due() < d) {
			d = c.due()
		}
	}
	if d <= 0 {
		return w, false
	}
	for i := range w.candidates {
		c := &w.candidates[i]
		c.changed += d
		c.renewed += d
		if c.open {
			c.elapsed += d
		} else {
			c.wait = max(0, c.wait-d)
		}
	}
	return w.describe("%v pass", d.Round(100*time.Millisecond)), true
}

// next yields the world after each step that can follow.
func (w term) next(to func(term)) {
	open := false
	for i := range w.candidates {
		w.act(i, to)
		open = open || w.candidates[i].open
	}
	if s, ok := w.pass(); ok && (!open || w.faults > 0) {
		if open {
			s.faults-- // a request or an answer takes long
		}
		to(s)
	}
}

func (w term) act(i int, to func(term)) {
	c := w.candidates[i]
	fault := func(s term) term { s.faults--; return s }
	if c.old.write {
		s := w.describe("the server handles an old write of candidate %d", i)
		s.handle(c.old)
		s.candidates[i].old = wireRequest{}
		to(s)
	}
	if c.phase == ended {
		if c.life < 2 {
			s := w.describe("candidate %d starts again", i)
			s.candidates[i] = candidate{life: c.life + 1, old: c.old}
			to(s)
		}
		return
	}
	if c.stopped {
		s := w.describe("candidate %d continues", i)
		s.candidates[i].stopped = false
		to(s)
	} else if w.faults > 0 {
		s := fault(w).describe("candidate %d is stopped", i)
		s.candidates[i].stopped = true
		to(s)
		s = fault(w).describe("candidate %d is killed", i)
		s.candidates[i] = candidate{life: c.life, phase: ended, old: c.old}
		if c.open && c.request.write && !c.handled {
			s.candidates[i].old = c.request
		}
		to(s)
	}
	if c.open {
		w.carry(i, to)
	}
	if c.stopped {
		return
	}
	if c.due() <= 0 {
		if c.open {
			to(w.describe("the attempt of candidate %d ends without an answer", i).play(i, true))
		} else {
			to(w.describe("candidate %d makes an attempt", i).play(i, false))
		}
	}
	if c.phase == campaigns && !c.open && c.wait == w.local(i, rightRetry) {
		s := w.describe("candidate %d waits longer", i)
		s.candidates[i].wait += time.Duration(jitter * float64(c.wait))
		if left := s.elector(i).lock.expiresIn(); left > 0 {
			s.candidates[i].wait = min(s.candidates[i].wait, left)
		}
		to(s)
	}
	if c.phase == leads && !c.open {
		s := w.describe("the work of candidate %d is to end, and it releases the lease", i)
		s.candidates[i].phase = releases
		to(s.play(i, false))
	}
}

// carry yields what can happen to a request and its answer.
func (w term) carry(i int, to func(term)) {
	c := w.candidates[i]
	answer := func(s term, a wireAnswer) {
		k := &s.candidates[i]
		a.at = k.elapsed
		k.script[k.answers] = a
		k.answers++
		to(s.play(i, false))
	}
	inTime := !c.stopped && c.due() > 0
	if c.handled {
		if inTime {
			answer(w.describe("the answer reaches candidate %d", i), c.reply)
		}
		return
	}
	s := w.describe("the server handles a request of candidate %d: %v", i, c.request)
	a := s.handle(c.request)
	if inTime {
		answer(s, a)
	}
	if w.faults > 0 {
		s = s.describe("%s; the answer takes long", s.last)
		s.faults--
		s.candidates[i].handled, s.candidates[i].reply = true, a
		to(s)
		if inTime {
			s := w.describe("the server refuses the request of candidate %d", i)
			s.faults--
			answer(s, wireAnswer{code: 500})
		}
	}
}

// fair returns the next step of a healthy network and of processes that run.
func (w term) fair() (next term, good bool) {
	w.faults = 0
	leaders, quiet := 0, true
	for i := range w.candidates {
		c := &w.candidates[i]
		quiet = quiet && !c.open && !c.stopped
		if c.phase == leads && w.leading(i) && c.observed == w.lease {
			leaders++
		}
		switch {
		case c.stopped:
			c.stopped = false
			return w.describe("fair: candidate %d continues", i), false
		case c.phase == ended:
			c.old.write = false
			w.candidates[i] = candidate{life: min(c.life+1, 15)}
			return w.describe("fair: candidate %d starts again", i), false
		}
	}
	if leaders == 1 && quiet {
		return w, true
	}
	first := true
	take := func(s term) {
		if first {
			next, first = s, false
		}
	}
	for i := range w.candidates {
		c := &w.candidates[i]
		switch {
		case !first:
		case c.open && c.due() <= 0:
			take(w.describe("fair: the attempt of candidate %d ends without an answer", i).play(i, true))
		case c.open:
			w.carry(i, take)
		case c.due() <= 0:
			take(w.describe("fair: candidate %d makes an attempt", i).play(i, false))
		}
	}
	if first {
		next, _ = w.pass()
	}
	return next, false
}

func (w term) key(to []byte) []byte {
	ms := func(d, most time.Duration) {
		d = min(d, most) / (10 * time.Millisecond)
		to = append(to, byte(d), byte(d>>8))
	}
	versions := map[uint8]byte{0: 0} // only their identity matters
	put := func(s stored) {
		if _, known := versions[s.version]; !known {
			versions[s.version] = byte(len(versions))
		}
		to = append(to, s.holder, versions[s.version], s.seconds)
	}
	flag := func(all ...bool) {
		b := byte(0)
		for i, f := range all {
			if f {
				b |= 1 << i
			}
		}
		to = append(to, b)
	}
	request := func(r wireRequest) { flag(r.write, r.create); put(r.lease) }
	put(w.lease)
	to = append(to, byte(w.faults))
	flag(w.wrong != "")
	for i := range w.candidates {
		c := &w.candidates[i]
		to = append(to, byte(c.phase), byte(c.life))
		put(c.observed)
		ms(c.changed, w.local(i, rightLease))
		ms(c.renewed, 2*w.local(i, rightDeadline))
		ms(c.wait, time.Hour/6)
		flag(c.stopped, c.open, c.handled)
		request(c.old)
		if !c.open {
			continue
		}
		ms(c.elapsed, time.Hour/6)
		request(c.request)
		for _, a := range append(c.script[:c.answers:c.answers], c.reply) {
			ms(a.at, time.Hour/6)
			to = append(to, byte(a.code), byte(a.code>>8))
			put(a.lease)
		}
	}
	return to
}

// leaderWorld returns the world of two candidates, whose clocks have these rates. It begins with nothing, and with a
// leader.
func leaderWorld(t *testing.T, v leaderVariant, faults int, rates ...float64) explore.World[term] {
	first := term{rates: [2]float64(rates), variant: v, faults: faults}
	led := first.along(t, "candidate 0 makes", "candidate 0: a read", "candidate 0: a write", "candidate 1 makes", "candidate 1: a read").
		describe("candidate 0 leads, and candidate 1 has read the lease")
	return explore.World[term]{
		First: []term{first, led}, Next: term.next, Key: term.key, Check: term.check, Fair: term.fair, FairSteps: 250,
		Describe: func(w term) string { return w.last },
	}
}

// along returns the world after steps whose descriptions have these texts.
func (w term) along(t *testing.T, texts ...string) term {
	synctest.Test(t, func(t *testing.T) {
		for _, text := range texts {
			var found *term
			w.next(func(next term) {
				if found == nil && strings.Contains(next.last, text) {
					found = &next
				}
			})
			if found == nil {
				t.Fatalf("no step has %q", text)
			}
			w = *found
		}
	})
	return w
}

// TestExplore makes every order of attempts, lost, late and repeated requests, stops, kills and ends, with clocks whose
// rates differ by the factor 1.5.
func TestExplore(t *testing.T) {
	explore.Test(t, leaderWorld(t, 0, 3, 0.8, 1.2), explore.Options{Depth: 60, States: 8_000, Around: explore.InBubbles(t)})
}

// Each variant breaks a rule that an elector has broken once, or has clocks beyond the bound. The exploration must find
// it. They are counterexamples of leat explore.
func TestExploreFindsBrokenRules(t *testing.T) {
	fromAnswer := leaderWorld(t, countsFromAnswer, 3, 0.8, 1.2)
	fromAnswer.First = []term{fromAnswer.First[0].along(t, "candidate 0 makes", "candidate 0: a read", "the answer takes long",
		"candidate 1 makes", "candidate 1: a read", "pass", "the answer reaches candidate 0", "candidate 0 is stopped").
		describe("candidate 1 has read the lease of candidate 0 before candidate 0 got the answer and was stopped")}
	for file, v := range map[string]struct {
		rule string
		w    explore.World[term]
	}{
		"lease_from_answer": {"A lease counts from the answer of its renewal, not from the request. The clocks of the candidates have the rates 0.8 and 1.2.", fromAnswer},
		"early_release":     {"A leader releases the lease before its work has ended.", leaderWorld(t, releasesEarly, 3, 1, 1)},
		"distant_clocks":    {"The clocks of the candidates have the rates 0.75 and 1.5. A leader stops after 40 seconds on its clock, and others wait for 60 seconds on theirs.", leaderWorld(t, 0, 3, 0.75, 1.5)},
	} {
		t.Run(file, func(t *testing.T) {
			o := explore.Options{Depth: 60, States: 200_000, Workers: 1, Around: explore.InBubbles(t)} // one worker, so that the steps are always the same
			r := explore.Finds(t, v.w, o, "two candidates lead")
			v.w.Describe = func(w term) string {
				return cmp.Or(strings.TrimPrefix(w.last, "fair: "), "nobody holds the lease") + w.sides()
			}
			synctest.Test(t, func(t *testing.T) {
				explore.Save(t, "../../docs/counterexamples/"+file+".txt", v.rule, "At most one replica leads at a time, if no clock is 1.5 times as fast as another (package leaderelection, 1).", r, explore.Replay(v.w, r.Choices))
			})
		})
	}
}

// sides describes the lease and each candidate. Its times are of a correct clock.
func (w term) sides() string {
	lease := "free"
	if holder := holderName(w.lease.holder); holder != "" {
		lease = fmt.Sprintf("version %d, of candidate %s", w.lease.version, holder[:1])
	}
	out := "\n   lease: " + lease
	for i, c := range w.candidates {
		is := []string{"waits", "works, and its term is over", "releases the lease", "has ended"}[c.phase]
		if w.leading(i) && c.phase == releases {
			is = "leads, because its work still runs"
		} else if w.leading(i) {
			is = fmt.Sprintf("leads for %v more", (w.local(i, rightDeadline) - c.renewed).Round(100*time.Millisecond))
		}
		if c.open {
			is += ", asks: " + c.request.String()
		}
		if c.stopped {
			is += ", is stopped"
		}
		out += fmt.Sprintf("\n   candidate %d: %s", i, is)
	}
	return out
}
