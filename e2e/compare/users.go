package compare

import "github.com/leatproject/leat/e2e/cluster"

// The tokens that both servers accept.
const (
	AdminToken      = cluster.AdminToken
	RestrictedToken = cluster.RestrictedToken
)
