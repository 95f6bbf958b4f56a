package testserver

import (
	"cmp"
	"crypto/subtle"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/disturb"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// call is the state of one request for a resource.
type call struct {
	*Server
	w       http.ResponseWriter
	http    *http.Request
	request Request
	c       *store.Collection
	def     *registry.Definition // the definition of c when the request arrived
	user    registry.User
	plan    *disturb.Plan // the faults that affect the request
	media   wire.Media

	stale        *disturb.Injection // not nil if a Stale fault affects the request
	staleState   *store.State
	staleDecided bool
}

// auditID is the header with the identity of a request in audit logs. The client may choose it.
const auditID = "Audit-Id"

// newAuditID returns a random UUID. It takes nothing from the seed of the server, so that the UIDs of objects do not
// depend on the number of requests.
func newAuditID() string {
	high, low := rand.Uint64(), rand.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", high>>32, uint16(high>>16), high&0xfff, 0x8000|low>>50, low&(1<<48-1))
}

// handle answers a request. Its steps are authentication, faults, documents, authorization and resources.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	request := parseRequest(r)
	if inside(r) {
		s.answer(w, r, request, insider)
		return
	}
	user, unknown := s.authenticate(r)
	request.User = user.Name
	s.log.add(request)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.Header().Set(auditID, cmp.Or(r.Header.Get(auditID), newAuditID()))
	w = s.plan.Disturb(w, request.target(r))
	if w == nil {
		return // a fault has answered
	}
	w, r = indent(w, r, request)
	if err := checkTimeout(request); err != nil {
		fail(w, err)
		return
	}
	if unknown != nil && (s.extension.Authenticate != nil || !public(request.Path)) {
		if !apierrors.IsUnauthorized(unknown) {
			w.Header().Set("X-Content-Type-Options", "nosniff") // about impersonation
		}
		fail(w, unknown)
		return
	}
	passed, ok := s.gates.enter(r, request, user)
	if !ok {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
		return
	}
	if passed != nil {
		defer func() { <-passed }()
	}
	if err := s.authorize(r, request, user); err != nil {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		fail(w, err)
		return
	}
	s.answer(w, r, request, user)
}

// answer answers a request that may be sent.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, request Request, user registry.User) {
	switch {
	case s.extension.Proxy != nil && s.extension.Proxy(w, r):
	case request.Resource != "":
		s.serveResource(w, r, request, user)
	case s.extension.Documents == nil || !s.extension.Documents(w, r, user):
		s.document(w, r, request)
	}
}

// authorize returns an error, which is the answer, if the user may not send this request.
func (s *Server) authorize(r *http.Request, request Request, user registry.User) error {
	if request.Resource != "" && s.options.Authorize != nil {
		if err := s.options.Authorize(request); err != nil {
			return forbidden(request, err)
		}
	}
	if s.extension.Authorize == nil {
		return nil
	}
	a := &extension.Attributes{
		Group: request.Group, Served: request.Version, Plural: request.Resource, Subresource: request.Subresource,
		Verb: request.Verb, Key: api.Key{Namespace: request.Namespace, Name: request.Name}, User: user, Path: request.Path,
	}
	_, a.Resource, _ = s.store.Find(request.Group, request.Version, request.Resource)
	return s.extension.Authorize(r.Context(), a)
}

// authenticate returns the user of a request, or the error that rejects the request.
func (s *Server) authenticate(r *http.Request) (registry.User, error) {
	if s.extension.Authenticate != nil {
		return s.extension.Authenticate(r)
	}
	token := wire.BearerToken(r)
	for have, name := range s.options.Tokens {
		if token != "" && subtle.ConstantTimeCompare([]byte(have), []byte(token)) == 1 {
			return registry.User{Name: name}, nil
		}
	}
	if len(s.options.Tokens) == 0 {
		return registry.User{}, nil
	}
	return registry.User{}, wire.Error(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
}

// checkTimeout rejects a malformed parameter "timeout". kube-apiserver ignores it in requests without a time limit,
// which are watches and logs.
func checkTimeout(r Request) error {
	text := r.Query.Get("timeout")
	if text == "" || r.Verb == "watch" || r.Subresource == "log" {
		return nil
	}
	if _, err := time.ParseDuration(text); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid timeout specified in the request URL - %v", err))
	}
	return nil
}

func forbidden(r Request, why error) error {
	user, where := r.User, " at the cluster scope"
	if user == "" {
		user = "system:anonymous"
	}
	if r.Namespace != "" {
		where = fmt.Sprintf(" in the namespace %q", r.Namespace)
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	who := fmt.Sprintf("User %q cannot %s resource %q in API group %q%s", user, r.Verb, resource, r.Group, where)
	return apierrors.NewForbidden(schema.GroupResource{Group: r.Group, Resource: r.Resource}, r.Name, fmt.Errorf("%s: %w", who, why))
}

// serveResource finds the resource and the handler of a request, and runs the handler.
func (s *Server) serveResource(w http.ResponseWriter, r *http.Request, request Request, user registry.User) {
	c, def, ok := s.store.Find(request.Group, request.Version, request.Resource)
	if !ok || !rightScope(def, request) {
		s.notFound(w, request)
		return
	}
	x := &call{Server: s, w: w, http: r, request: request, c: c, def: def, user: user, plan: &s.plan}
	if inside(r) {
		x.plan = &s.calm
	}
	warn(w, def.WarningsIn(request.Version))
	handler := x.handler()
	if handler == nil {
		x.unhandled()
		return
	}
	var err error
	x.media, err = x.offer().Negotiate(r.Header.Get("Accept"))
	if err == nil && x.media.As == wire.Table {
		x.media.Include, err = wire.IncludePolicy(request.Query.Get("includeObject"))
	}
	if err == nil {
		err = handler()
	}
	if err != nil {
		if r.Context().Err() != nil {
			panic(http.ErrAbortHandler) // the client has gone
		}
		x.fail(err)
	}
}

// offer returns what the request can be answered with.
func (x *call) offer() wire.Offer {
	o := wire.Offer{
		Types: []string{wire.JSON}, Kinds: x.otherKinds(), Route: !x.def.Custom,
		Text: x.request.Subresource == "log", Custom: x.def.Custom,
		// The informers of the control plane need no managedFields, which are most of the metadata of a new object.
		DropFields: x.options.DropFields || inside(x.http),
	}
	o.Streams = x.request.Verb == "watch" || x.request.Verb == "list"
	if !x.def.Untyped {
		o.Types = x.def.Schema.MediaTypes()
		if x.def.Custom {
			o.Types = append(o.Types, wire.Protobuf) // for metadata
		}
	}
	return o
}

// unhandled answers a request that has no handler. The answers differ because kube-apiserver serves custom resources
// with other code than built-in ones.
func (x *call) unhandled() {
	unknown := x.request.Subresource != "" && !x.hasSubresource()
	switch {
	case unknown && x.def.Custom:
		fail(x.w, apierrors.NewNotFound(x.def.GroupResource(), x.request.Name))
	case unknown:
		x.notFound(x.w, x.request)
	case x.def.Custom && x.request.Subresource != "":
		fail(x.w, apierrors.NewMethodNotSupported(x.def.GroupResource(), x.request.Verb))
	case x.def.Custom && x.request.Name == "" && (x.request.Verb == "update" || x.request.Verb == "patch"):
		fail(x.w, apierrors.NewBadRequest("name must be provided"))
	case x.def.Custom && x.request.Verb == strings.ToLower(x.http.Method): // OPTIONS, and methods that HTTP does not have
		fail(x.w, apierrors.NewMethodNotSupported(x.def.GroupResource(), "")) // they have no verb
	default:
		fail(x.w, wire.NotAllowed())
	}
}

// rightScope reports whether a path fits the scope of its resource: with a namespace if the resource is namespaced, and
// without one otherwise. The paths of all namespaces have none. Those of custom resources exist only for lists and
// watches; those of built-in resources answer 405 to other requests.
func rightScope(d *registry.Definition, r Request) bool {
	switch {
	case d.IsNamespace():
		return r.Namespace == r.Name
	case !d.Namespaced:
		return r.Namespace == ""
	case r.Namespace == "" && d.Custom:
		return r.Verb == "list" || r.Verb == "watch"
	case r.Namespace == "":
		return r.Name == ""
	}
	return true
}

// handler returns the function that answers a request, or nil if the resource does not have the method.
func (x *call) handler() func() error {
	reads := x.request.Verb == "get" || x.request.Verb == "list" || x.request.Verb == "watch"
	if reads && x.http.Method != http.MethodGet && !x.headOfCustom() {
		return nil // HEAD, and every method on an old path of watches
	}
	if x.request.Subresource != "" {
		return x.subresource()
	}
	if x.def.Act != nil {
		return x.acting()
	}
	if x.def.IsBinding() {
		return x.binding()
	}
	if x.def.Verbs != nil && x.def.Virtual() && x.request.Verb != "get" && x.request.Verb != "list" {
		return x.unwatchable()
	}
	named := x.request.Name != ""
	switch x.request.Verb {
	case "get":
		return x.get
	case "list":
		return x.list
	case "watch":
		return x.watch
	case "create":
		// Authorization and admission see the name in the path of a custom resource, and the object has the one in the
		// body.
		if (!named || x.def.Custom) && x.whole() {
			return x.submitBody
		}
	case "update":
		if named {
			return x.submitBody
		}
	case "patch":
		if named {
			return x.patch
		}
	case "delete":
		return x.delete
	case "deletecollection":
		if x.whole() && !x.def.IsNamespace() {
			return x.deleteCollection
		}
	}
	return nil
}

// unwatchable returns the function that answers a watch of a resource that is not stored, or nil for a write. A watch
// of one object is a get, as in kube-apiserver.
func (x *call) unwatchable() func() error {
	switch {
	case x.request.Verb != "watch":
		return nil
	case x.request.Name != "":
		return x.get
	}
	return func() error { return apierrors.NewMethodNotSupported(x.def.GroupResource(), "watch") }
}

// headOfCustom reports whether a request is a HEAD of custom resources. kube-apiserver answers it like a GET.
func (x *call) headOfCustom() bool {
	return x.def.Custom && x.http.Method == http.MethodHead
}

// whole reports whether the path of a collection names all of it: a namespace, or a resource without namespaces.
func (x *call) whole() bool { return !x.def.Namespaced || x.request.Namespace != "" }

// shape returns the encoding that the request wants.
func (x *call) shape() wire.Shape {
	return wire.NewShape(x.media, x.def, x.request.Version)
}

// respond writes one object.
func (x *call) respond(code int, r *store.Record) error {
	if err := x.media.CheckListKind(false, x.def.TypeName(x.def.Kind)); err != nil {
		return err
	}
	buffer := wire.TakeBuffer()
	body, err := x.shape().Object(buffer.Bytes, r)
	if err != nil {
		return err
	}
	if buffer.Bytes = body; x.write(code, body) {
		buffer.Release()
	}
	return nil
}

// write writes an answer that is no stream, in the media type of the request, and returns what wire.Write returns.
// kube-apiserver compresses large ones.
func (x *call) write(code int, body []byte) (sent bool) {
	w := x.w
	if x.options.Compress && len(body) > wire.CompressFrom {
		if g, ok := wire.Compress(x.w, x.http); ok {
			w = g
			defer g.Finish()
		}
	}
	return wire.Write(w, x.media.Type, code, body)
}

// notFound answers a path that the server does not serve: with a Status below known roots and the groups of built-in
// resources, otherwise with plain text.
func (s *Server) notFound(w http.ResponseWriter, r Request) {
	parts := splitPath(r.Path)
	if parts[0] == "api" || parts[0] == "version" ||
		parts[0] == "apis" && len(parts) > 1 && s.hasBuiltins(parts[1]) {
		err := wire.Error(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
		err.ErrStatus.Details = &metav1.StatusDetails{}
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte("404 page not found\n")) // as above
}

// fail answers with an error as a Status.
func fail(w http.ResponseWriter, err error) {
	wire.WriteStatus(w, wire.StatusOf(err))
}

// otherKinds returns the kinds, besides metadata, into which this request can convert its objects.
func (x *call) otherKinds() []string {
	if x.request.Subresource == "" && x.def.Act == nil || x.request.Subresource == "status" || x.part().Columns != nil {
		return []string{wire.Table}
	}
	return nil
}

// fail answers with an error as a Status in the media type of the request.
func (x *call) fail(err error) {
	status := wire.StatusOf(err)
	wire.WriteStatusAs(x.w, x.media.Errors, int(status.Code), status)
}

// target returns what faults see of the request.
func (x *call) target() disturb.Target { return x.request.target(x.http) }

// queueTime is how long a request waits in a queue of kube-apiserver with its default flags.
const queueTime = 15 * time.Second

// gates contain an element for each request in progress. A nil gate has no limit.
type gates struct {
	reads, writes chan struct{}
	wait          time.Duration
}

func newGates(o InFlight) (g gates) {
	switch {
	case o.Queue:
		g.reads, g.wait = make(chan struct{}, o.Reads+o.Writes), queueTime
		g.writes = g.reads
		return g
	case o.Reads > 0:
		g.reads = make(chan struct{}, o.Reads)
	}
	if o.Writes > 0 {
		g.writes = make(chan struct{}, o.Writes)
	}
	return g
}

// enter lets a request in, and returns the gate that it passed, or nil. ok is false if there are too many.
func (g gates) enter(r *http.Request, request Request, user registry.User) (passed chan struct{}, ok bool) {
	gate := g.writes
	if request.Verb == "get" || request.Verb == "list" {
		gate = g.reads
	}
	if gate == nil || request.Verb == "watch" || slices.Contains(streams, request.Subresource) {
		return nil, true
	}
	select {
	case gate <- struct{}{}:
		return gate, true
	default:
	}
	if slices.Contains(user.Groups, "system:masters") {
		return nil, true
	}
	select {
	case gate <- struct{}{}:
		return gate, true
	case <-time.After(g.wait):
	case <-r.Context().Done():
	}
	return nil, false
}
