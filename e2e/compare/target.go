package compare

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The limits of one step. Watches in the scripts end after a few seconds.
const (
	stepLimit  = time.Minute
	untilLimit = 30 * time.Second
)

// tokens are the bearer tokens of the users that steps name. The stranger's token is not accepted.
var tokens = map[string]string{"admin": AdminToken, "restricted": RestrictedToken, "stranger": "leat-e2e-stranger"}

// Target is one of the two servers.
type Target struct {
	Name    string // in reports
	URL     string
	CA      []byte // PEM
	Kubectl string // the path of kubectl
	Folder  string // for the kubeconfig and kubectl's cache
	Hooks   *Hooks // webhooks that steps register; may be nil

	client *http.Client
}

// Start prepares the target for Run.
func (t *Target) Start() error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(t.CA)
	t.client = &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:   true,
			DisableCompression:  true, // steps ask for it
			MaxIdleConnsPerHost: 8,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	type object map[string]any
	config, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []object{{"name": "test", "cluster": object{"server": t.URL, "certificate-authority-data": t.CA}}},
		"users":    []object{{"name": "test", "user": object{"token": AdminToken}}},
		"contexts": []object{{"name": "test", "context": object{"cluster": "test", "user": "test"}}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(t.Kubeconfig(), config, 0o600)
}

// Kubeconfig returns the path of a kubeconfig file with the rights of an administrator.
func (t *Target) Kubeconfig() string { return filepath.Join(t.Folder, "kubeconfig") }

// Close closes the connections.
func (t *Target) Close() { t.client.CloseIdleConnections() }

// Do sends a request with the rights of an administrator.
func (t *Target) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+AdminToken)
	return t.client.Do(r)
}

// Run creates the namespace of the scenario, runs its steps in order, and returns the answers after masking.
func (t *Target) Run(ctx context.Context, s *Scenario) ([]*Answer, error) {
	r := &run{Target: t, scenario: s, mask: newMask(t.URL, t.Folder), answers: map[string]*Answer{}, begun: map[string]chan *Answer{}}
	namespace := &Step{Method: http.MethodPost, Path: "/api/v1/namespaces", Body: `{"metadata":{"name":"$ns"}}`, User: "admin"}
	if a, err := r.send(ctx, namespace); err != nil || a.Status != http.StatusCreated {
		return nil, fmt.Errorf("compare: %s: create the namespace of %s: %w", t.Name, s.ID, errors.Join(err, fmt.Errorf("%+v", a)))
	}
	for _, step := range s.Steps {
		a, err := r.step(ctx, step)
		if err != nil {
			return nil, fmt.Errorf("compare: %s: %s: %w", t.Name, step.ID, err)
		}
		r.answers[step.Name] = a
	}
	var masked []*Answer
	for _, step := range s.Steps {
		if later := r.begun[step.Name]; later != nil {
			r.answers[step.Name] = <-later
		}
		r.mask.learnPrefixes(r.expand(step, step.Body))
		masked = append(masked, r.mask.answer(r.answers[step.Name]))
	}
	return masked, nil
}

// run is a scenario on one server.
type run struct {
	*Target
	scenario *Scenario
	mask     *mask
	answers  map[string]*Answer      // before masking, by the name of the step
	begun    map[string]chan *Answer // of steps whose answer is read meanwhile
	turns    int                     // of the garbage collector, for which rest has waited
}

// step runs a step once, or until its answer is the expected one.
func (r *run) step(ctx context.Context, s *Step) (*Answer, error) {
	limited, cancel := context.WithTimeout(ctx, stepLimit)
	switch {
	case s.Rest:
		defer cancel()
		return r.rest(limited, s)
	case s.Meanwhile:
		return r.begin(limited, cancel, s)
	case s.Args != nil:
		defer cancel()
		return r.kubectl(limited, s)
	}
	defer cancel()
	deadline := time.Now().Add(untilLimit)
	for {
		a, err := r.send(limited, s)
		if err != nil || s.Until == 0 || a.Status == s.Until && a.contains(s.Contains) || time.Now().After(deadline) {
			return a, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-limited.Done():
			return nil, limited.Err()
		}
	}
}

// begin sends a request, waits for the headers of its answer, and reads the rest while the next steps run.
func (r *run) begin(ctx context.Context, cancel context.CancelFunc, s *Step) (*Answer, error) {
	response, err := r.do(ctx, s)
	if err != nil {
		cancel()
		return nil, err
	}
	later := make(chan *Answer, 1)
	r.begun[s.Name] = later
	go func() {
		defer cancel()
		later <- readAll(response)
	}()
	return &Answer{}, nil
}

func (r *run) send(ctx context.Context, s *Step) (*Answer, error) {
	response, err := r.do(ctx, s)
	var failed *url.Error
	if errors.As(err, &failed) && ctx.Err() == nil {
		return &Answer{Failure: failed.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	return readAll(response), ctx.Err()
}

// readAll reads an answer to its end.
func readAll(r *http.Response) *Answer {
	defer r.Body.Close()
	content, err := io.ReadAll(r.Body)
	a := readAnswer(r, content, isWatch(r.Request))
	if err != nil {
		a.Failure = err.Error()
	}
	return a
}

// do sends the request of a step and returns when the headers of its answer are there.
func (r *run) do(ctx context.Context, s *Step) (*http.Response, error) {
	body, err := r.encode(s)
	if err != nil {
		return nil, err
	}
	path := strings.ReplaceAll(r.expand(s, s.Path), " ", "%20")
	request, err := http.NewRequestWithContext(ctx, s.Method, r.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "compare")
	if len(body) > 0 {
		request.Header.Set("Content-Type", defaultType(s))
	}
	if token := tokens[s.User]; token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for name, values := range s.Header {
		request.Header.Del(name)
		for _, v := range values {
			if v = r.expand(s, v); v != "none" {
				request.Header.Add(name, v)
			}
		}
	}
	return r.client.Do(request)
}

func defaultType(s *Step) string {
	switch {
	case s.Protobuf:
		return protobufType
	case s.Method == http.MethodPatch:
		return "application/merge-patch+json"
	}
	return "application/json"
}

func (r *run) encode(s *Step) ([]byte, error) {
	body := r.expand(s, s.Body)
	if s.Protobuf {
		return toProtobuf([]byte(body))
	}
	return []byte(body), nil
}

// isWatch reports whether the answer is a stream.
func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return watch == "1" || watch == "true" || strings.Contains(r.URL.Path, "/watch/")
}

// reference is a field of an earlier answer, such as {{create .metadata.uid}}.
var reference = regexp.MustCompile(`\{\{([a-z0-9-]+) \.([A-Za-z0-9_.]+)\}\}`)

// expand replaces $ns, $fill, $hooks, $ca and references. A field that is missing becomes "missing".
func (r *run) expand(s *Step, text string) string {
	text = r.Hooks.expand(strings.ReplaceAll(text, "$ns", r.scenario.Namespace()))
	if s.Fill > 0 {
		text = strings.ReplaceAll(text, "$fill", strings.Repeat("x", s.Fill))
	}
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		m := reference.FindStringSubmatch(found)
		a := r.answers[m[1]]
		if a == nil {
			return found
		}
		value := a.Value
		for _, name := range strings.Split(m[2], ".") {
			switch v := value.(type) {
			case map[string]any:
				value = v[name]
			case []any:
				i, err := strconv.Atoi(name)
				if err != nil || i >= len(v) {
					return "missing"
				}
				value = v[i]
			default:
				return "missing"
			}
		}
		if value == nil {
			return "missing"
		}
		return fmt.Sprint(value)
	})
}

// kubectl runs a command in the namespace of the scenario. Its cache is new, because it would otherwise remember the
// resources of another scenario.
func (r *run) kubectl(ctx context.Context, s *Step) (*Answer, error) {
	home := filepath.Join(r.Folder, r.scenario.Namespace())
	args := []string{"--kubeconfig", r.Kubeconfig(), "--cache-dir", filepath.Join(home, "cache"), "-n", r.scenario.Namespace()}
	for _, arg := range s.Args {
		args = append(args, r.expand(s, arg))
	}
	cmd := exec.CommandContext(ctx, r.Kubectl, args...)
	cmd.Env = []string{"HOME=" + home, "KUBECTL_KUBERC=false"}
	cmd.Stdin = strings.NewReader(r.expand(s, s.Body))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	a := &Answer{Command: true, Status: cmd.ProcessState.ExitCode(), Text: stdout.String(), Errors: stderr.String()}
	a.readOutput(s.Args)
	return a, ctx.Err()
}
