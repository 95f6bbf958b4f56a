package suite

// The tests of client-go import these packages, so that go.mod must require their modules.
import (
	_ "github.com/google/go-cmp/cmp/cmpopts"
	_ "go.uber.org/goleak"
	_ "k8s.io/klog/v2/ktesting"
	_ "k8s.io/klog/v2/textlogger"
)
