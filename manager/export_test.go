package manager

import "go.uber.org/zap"

// NewChecks returns a set of checks that is not one of a Manager.
func NewChecks(name string, showReasons bool, log *zap.Logger) *Checks {
	return newChecks(name, showReasons, log)
}
