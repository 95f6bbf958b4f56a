package runner

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"
)

// apiKind is a kind of objects for API servers. A number replaces each %d in an object.
type apiKind struct{ name, path, object string }

const podSpec = `{"containers":[{"name":"main","image":"registry.example/main:1","ports":[{"name":"http","containerPort":8080}],` +
	`"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"resources":{"requests":{"cpu":"100m","memory":"64Mi"}}}]}`

var (
	configMaps = apiKind{
		"configmap", "/api/v1/namespaces/default/configmaps",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m-%d"},"data":{"text":"` + strings.Repeat("x", 1<<10) + `"}}`,
	}
	pods = apiKind{
		"pod", "/api/v1/namespaces/default/pods",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p-%d","labels":{"app":"web"}},"spec":` + podSpec + `}`,
	}
	deployments = apiKind{
		"deployment", "/apis/apps/v1/namespaces/default/deployments",
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d-%d","labels":{"app":"web"}},"spec":{"replicas":3,` +
			`"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":` + podSpec + `}}}`,
	}
)

// do sends a request and returns the answer.
func (s *apiServer) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	res, err := s.open(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// open sends a request. The answer has a status of success.
func (s *apiServer) open(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		q.Header.Set("Content-Type", "application/merge-patch+json")
	}
	res, err := s.client.Do(q)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		defer res.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10)) // the status says enough without it
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, res.Status, text)
	}
	return res, nil
}

// create creates n objects with several writers. Their numbers begin with first.
func (s *apiServer) create(ctx context.Context, kind apiKind, first, n int) error {
	return inParallel(ctx, n, realWriters, func(ctx context.Context, i int) error {
		_, err := s.do(ctx, http.MethodPost, kind.path, fmt.Appendf(nil, kind.object, first+i))
		return err
	})
}

// list lists a collection a number of times, one after another.
func (s *apiServer) list(ctx context.Context, kind apiKind, times, objects int) error {
	for range times {
		answer, err := s.do(ctx, http.MethodGet, kind.path, nil)
		if err != nil {
			return err
		}
		if have := bytes.Count(answer, []byte(`"uid":`)); have < objects {
			return fmt.Errorf("the list has %d objects, and should have %d", have, objects)
		}
	}
	return nil
}

// fanOut opens watches and changes objects. It returns the processor time of the server, in seconds, from the first
// change until every watch has received all events.
func (s *apiServer) fanOut(ctx context.Context, kind apiKind, watches, changes int) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer, err := s.do(ctx, http.MethodGet, kind.path+"?limit=1", nil)
	if err != nil {
		return 0, err
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return 0, err
	}
	readers := &errgroup.Group{}
	for range watches {
		res, err := s.open(ctx, http.MethodGet, kind.path+"?watch=1&resourceVersion="+list.Metadata.ResourceVersion, nil)
		if err != nil {
			return 0, err
		}
		readers.Go(func() error {
			defer res.Body.Close()
			return readLines(res.Body, changes)
		})
	}
	return s.spent(func() error {
		for i := range changes {
			body := fmt.Appendf(nil, `{"data":{"change":"%d"}}`, i)
			path := kind.path + "/" + fmt.Sprintf("m-%d", i)
			if _, err := s.do(ctx, http.MethodPatch, path, body); err != nil {
				return err
			}
		}
		return readers.Wait()
	})
}

// readLines reads a number of lines, which are events.
func readLines(from io.Reader, lines int) error {
	in := bufio.NewReader(from)
	for range lines {
		for more := true; more; {
			var err error
			if _, more, err = in.ReadLine(); err != nil {
				return err
			}
		}
	}
	return nil
}
