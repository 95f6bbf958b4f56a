package accessreview

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

const (
	defaultTimeout = 10 * time.Second
	defaultKeep    = time.Minute
	// maxKept limits each of the two sets of answers. A new answer empties its set when the limit is reached.
	maxKept = 1000
	// maxToken is larger than every token of Kubernetes.
	maxToken = 64 << 10
	// maxLogged limits a path in the log, in bytes.
	maxLogged = 128
)

// Options configure a Filter. Client is required.
type Options struct {
	// Client sends the reviews. Its user needs the ClusterRole system:auth-delegator.
	Client *apiclient.Client
	// Audiences are those that a token must have one of. Empty means the audiences of the API server.
	Audiences []string
	// Keep is how long an answer of the API server is used again. Zero means a minute; a negative value means that
	// every request is reviewed.
	Keep time.Duration
	// Timeout limits the reviews of one request. Zero means 10 s.
	Timeout time.Duration
	// Logger logs reviews that fail. Nil logs nothing.
	Logger *zap.Logger
}

// Filter admits requests that the API server allows.
type Filter struct {
	o        Options
	tokens   *apiclient.TypedClient[*tokenReview]
	accesses *apiclient.TypedClient[*accessReview]

	mu sync.Mutex // guards the fields below
	// allowed and refused hold the answers that are used again. They are separate, because anybody can send requests
	// that are refused; such requests must not remove the answers of clients that are allowed.
	allowed, refused answers
}

// question identifies the reviews of a request by hashes of its token, and of its verb and path. So the memory of the
// process has no list of tokens, and a client without a valid token cannot fill it with long paths.
type question struct{ token, request [sha256.Size]byte }

// answer is the code for a request, and how long it is valid.
type answer struct {
	code  int
	until time.Time
}

type answers map[question]answer

// keep adds an answer.
func (a answers) keep(q question, new answer) {
	if len(a) >= maxKept {
		clear(a)
	}
	a[q] = new
}

// New returns a Filter. The error says which option is missing.
func New(o Options) (*Filter, error) {
	if o.Client == nil {
		return nil, errors.New("accessreview: Options.Client is required")
	}
	o.Keep, o.Timeout = cmp.Or(o.Keep, defaultKeep), cmp.Or(o.Timeout, defaultTimeout)
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return &Filter{
		o: o, allowed: answers{}, refused: answers{},
		tokens:   apiclient.NewTyped[*tokenReview](o.Client, tokenReviews, ""),
		accesses: apiclient.NewTyped[*accessReview](o.Client, accessReviews, ""),
	}, nil
}

// Handler returns a handler that calls next for allowed requests. A request without a valid token gets 401, and one
// that the user may not send gets 403. If the API server does not answer, it is 503.
func (f *Filter) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch code := f.code(r); code {
		case http.StatusOK:
			next.ServeHTTP(w, r)
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
			fallthrough
		default:
			http.Error(w, http.StatusText(code), code)
		}
	})
}

// code returns 200 for a request that is allowed.
func (f *Filter) code(r *http.Request) int {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return http.StatusUnauthorized
	}
	verb, path := strings.ToLower(r.Method), r.URL.Path
	q := question{sha256.Sum256([]byte(token)), sha256.Sum256([]byte(verb + " " + path))} // a verb has no space
	if code, ok := f.recall(q); ok {
		return code
	}
	ctx, cancel := context.WithTimeout(r.Context(), f.o.Timeout)
	defer cancel()
	code, err := f.ask(ctx, token, attributes{Path: path, Verb: verb})
	if err != nil {
		f.o.Logger.Warn("a request could not be reviewed", zap.String("path", path[:min(len(path), maxLogged)]), zap.NamedError("err", err))
		return http.StatusServiceUnavailable
	}
	f.keep(q, code)
	return code
}

// ask sends both reviews.
func (f *Filter) ask(ctx context.Context, token string, asked attributes) (int, error) {
	who, err := f.tokens.Create(ctx, &tokenReview{Spec: tokenSpec{Token: token, Audiences: f.o.Audiences}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, err
	case !who.Status.Authenticated, len(f.o.Audiences) > 0 && !slices.ContainsFunc(who.Status.Audiences, f.isMine):
		return http.StatusUnauthorized, nil
	}
	u := who.Status.User
	may, err := f.accesses.Create(ctx, &accessReview{Spec: accessSpec{
		User: u.Username, UID: u.UID, Groups: u.Groups, Extra: u.Extra,
		NonResourceAttributes: asked,
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, err
	case !may.Status.Allowed || may.Status.Denied:
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func (f *Filter) isMine(audience string) bool { return slices.Contains(f.o.Audiences, audience) }

func (f *Filter) recall(q question) (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.allowed[q]
	if !ok {
		a, ok = f.refused[q]
	}
	return a.code, ok && time.Now().Before(a.until)
}

func (f *Filter) keep(q question, code int) {
	if f.o.Keep < 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a := answer{code, time.Now().Add(f.o.Keep)}
	if code == http.StatusOK {
		delete(f.refused, q)
		f.allowed.keep(q, a)
		return
	}
	delete(f.allowed, q)
	f.refused.keep(q, a)
}

// The reviews, in their JSON.
var (
	tokenReviews  = api.Resource{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenReview", Plural: "tokenreviews"}
	accessReviews = api.Resource{Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview", Plural: "subjectaccessreviews"}
)

type tokenReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   tokenSpec `json:"spec"`
	Status struct {
		Authenticated bool `json:"authenticated,omitempty"`
		User          user `json:"user,omitzero"`
		// Audiences are those of the request that the token has.
		Audiences []string `json:"audiences,omitempty"`
	} `json:"status,omitzero"`
}

type tokenSpec struct {
	Token     string   `json:"token"`
	Audiences []string `json:"audiences,omitempty"`
}

type user struct {
	Username string              `json:"username,omitempty"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

type accessReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   accessSpec `json:"spec"`
	Status struct {
		Allowed bool `json:"allowed,omitempty"`
		Denied  bool `json:"denied,omitempty"`
	} `json:"status,omitzero"`
}

type accessSpec struct {
	NonResourceAttributes attributes          `json:"nonResourceAttributes"`
	User                  string              `json:"user,omitempty"`
	UID                   string              `json:"uid,omitempty"`
	Groups                []string            `json:"groups,omitempty"`
	Extra                 map[string][]string `json:"extra,omitempty"`
}

type attributes struct {
	Path string `json:"path"`
	Verb string `json:"verb"`
}
