package front

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Protocol names the agreement of both programs. Programs that come from different builds may run together if it is the
// same.
const Protocol = "leat-server-1"

// Path is where an etcd takes requests.
const Path = "/leat-server/serve"

// Request asks an etcd to serve the API at an address. It contains keys, so it is never printed.
type Request struct {
	Address     string
	Certificate []byte // PEM, with its key
	Key         []byte
	Cluster     Settings
}

// Settings are what all API servers of one etcd have in common. The names in JSON are flags of kube-apiserver.
type Settings struct {
	Modes       []string `json:"authorization-mode"`
	Anonymous   bool     `json:"anonymous-auth"`
	Tokens      []Token  `json:"token-auth-file"`
	ClientCA    []byte   `json:"client-ca-file"`
	Issuer      string   `json:"service-account-issuer"`
	Keys        [][]byte `json:"service-account-key-file"`
	SigningKey  []byte   `json:"service-account-signing-key-file"`
	Enabled     []string `json:"enable-admission-plugins"`
	Disabled    []string `json:"disable-admission-plugins"`
	Gates       string   `json:"feature-gates"`
	Controllers bool     `json:"LEAT_CONTROLLERS"`
	Reads       int      `json:"max-requests-inflight"`
	Writes      int      `json:"max-mutating-requests-inflight"`
	Queue       bool     `json:"enable-priority-and-fairness"`
}

// Token is a line of a token file.
type Token struct {
	Token, Name, UID string
	Groups           []string
}

// Differences returns the names of the settings that differ.
func (s Settings) Differences(t Settings) []string {
	fields := func(s Settings) map[string]json.RawMessage {
		out := map[string]json.RawMessage{}
		text, err := json.Marshal(s)
		if err == nil {
			err = json.Unmarshal(text, &out)
		}
		if err != nil {
			panic(fmt.Sprintf("front: encode strings and numbers: %v", err))
		}
		return out
	}
	mine, others := fields(s), fields(t)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(mine)), func(name string) bool {
		return string(mine[name]) == string(others[name])
	})
}
