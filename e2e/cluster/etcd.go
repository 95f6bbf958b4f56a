package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
)

// scratch is a key outside of /registry, which Kubernetes does not use.
var scratch = base64.StdEncoding.EncodeToString([]byte("leat-e2e"))

// Revision returns the newest revision of etcd, which is the newest resource version of the API server.
func (c *Cluster) Revision(ctx context.Context) (int64, error) {
	return c.ask(ctx, "range", map[string]any{"key": scratch})
}

// Advance makes one revision that no object has, and returns it. It needs no API server.
func (c *Cluster) Advance(ctx context.Context) (int64, error) {
	return c.ask(ctx, "put", map[string]any{"key": scratch, "value": scratch})
}

// Compact deletes all history, so that no known version can be watched from, and returns the oldest remaining revision.
// The API server answers from its watch cache until it is restarted.
func (c *Cluster) Compact(ctx context.Context) (int64, error) {
	// After a compaction at n, etcd still serves a watch of changes after n-1, which a client may know. Two additional
	// revisions make n-2 the newest version that a client can know.
	if _, err := c.Advance(ctx); err != nil {
		return 0, err
	}
	revision, err := c.Advance(ctx)
	if err != nil {
		return 0, err
	}
	_, err = c.ask(ctx, "compaction", map[string]any{"revision": revision, "physical": true})
	return revision, err
}

// ask posts to the JSON gateway of etcd, and returns the revision of the answer.
func (c *Cluster) ask(ctx context.Context, operation string, body map[string]any) (int64, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	status, answer, err := do(ctx, c.plain, http.MethodPost, c.etcdURL+"/v3/kv/"+operation, b)
	if err != nil {
		return 0, fmt.Errorf("cluster: etcd %s: %w", operation, err)
	}
	if status != http.StatusOK {
		return 0, fmt.Errorf("cluster: etcd %s: %d: %s", operation, status, answer)
	}
	var reply struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return 0, fmt.Errorf("cluster: etcd %s: %w", operation, err)
	}
	return reply.Header.Revision, nil
}
