package suite

import "testing"

func TestWorkqueue(t *testing.T) {
	const ordered = "the order of leat's queue cannot be replaced"
	tests{
		name: "queuetests", from: "util/workqueue",
		files:   []string{"queue_test.go"},
		imports: map[string]string{"k8s.io/client-go/util/workqueue": "github.com/leatproject/leat/adapter/clientgo/internal/suite/workqueue"},
		drop:    map[string]string{"TestCollapse": ordered, "TestCollapseWhileProcessing": ordered, "Touch": ordered},
		support: "package suite_test\n",
		skip: map[string]string{
			"TestQueueDrainageUsingShutDownWithDrainWithDirtyItem": "its Get must report the shutdown while a key will be ready again; leat's Get waits for that key, " +
				"so that no worker leaves before the last key",
		},
	}.run(t)
}
